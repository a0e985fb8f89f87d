//! The one binary. Everything is in the library, so that tests reach it.

fn main() -> std::process::ExitCode {
    wakeful::cmd::main()
}
