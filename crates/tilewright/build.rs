//! Tells the program which compiler built it: tables of `tw bench` are headed by it.

use std::process::Command;

fn main() {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler).arg("--version").output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
    println!("cargo::rustc-env=TW_RUSTC={}", version.unwrap_or_else(|_| "an unknown compiler".to_string()));
    println!("cargo::rerun-if-changed=build.rs");
}
