//! The command `tw`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    tilewright::cli::main()
}
