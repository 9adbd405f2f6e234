//! The command `tw`.
#![forbid(unsafe_code)]

#[global_allocator]
static ALLOCATOR: tilewright::block::ReturnedAtOnce = tilewright::block::ReturnedAtOnce;

fn main() -> std::process::ExitCode {
    tilewright::cli::main()
}
