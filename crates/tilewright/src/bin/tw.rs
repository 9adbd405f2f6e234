//! The command `tw`.

fn main() -> std::process::ExitCode {
    tilewright::cli::main()
}
