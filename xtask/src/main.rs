//! The project's own chores. `cargo xtask` alone lists them.

mod docs;
mod nightly;
mod setup;
mod step;
mod test;
mod wasm;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use step::say;

const USAGE: &str = "\
cargo xtask setup          install what the tests need; harmless to repeat
cargo xtask test           everything that must hold: format, lints, licences, tests, documentation
cargo xtask test --fast    format, lints and the quick tests
cargo xtask test --page    the tests that run in a browser's page
cargo xtask docs           write the reference pages anew
cargo xtask nightly [N]    the properties that find more the longer they run, from their run N on
cargo xtask ci             setup, then test";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["setup"] => setup::run(),
        ["test"] => test::run(test::Scope::All),
        ["test", "--fast"] => test::run(test::Scope::Fast),
        ["test", "--page"] => wasm::test(wasm::Beside::Package),
        ["docs"] => docs::run(),
        ["nightly"] => nightly::run(None),
        ["nightly", first] => nightly::run(Some(first)),
        ["ci"] => setup::run().and_then(|()| test::run(test::Scope::All)),
        _ => {
            say(USAGE);
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// The root of the checkout.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}
