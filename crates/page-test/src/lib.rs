//! What `#[test]` means in a browser's page.
//!
//! A crate that compiles for the browser runs its unit tests there as they stand. It says, once:
//!
//! ```ignore
//! #[cfg(all(test, target_arch = "wasm32"))]
//! #[macro_use]
//! extern crate wakeful_page_test;
//! ```
//!
//! and every `#[test]` below becomes an export of the module that `cargo test --no-run` builds.
//! `e2e/wasm` calls each in an instance of its own, so that no test sees what another left behind
//! and a test that panics ends nothing but itself.
//!
//! # What this crate never does
//!
//! It lends a test nothing of the browser: no clock, no randomness, no output. A module that asks
//! for more than the two functions below gets a function that fails the test. On every other target
//! this crate is empty.

#![cfg(target_arch = "wasm32")]

use std::{fmt::Debug, panic};

pub use wakeful_page_test_macro::test;

#[expect(unsafe_code, reason = "these two, which only read what they are given, are the page's")]
#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// The name of the test that begins, as UTF-8.
    safe fn begun(text: *const u8, bytes: usize);
    /// Why it failed, as UTF-8. The last call counts.
    safe fn failed(text: *const u8, bytes: usize);
}

/// What a test may return.
pub trait Outcome {
    /// Why it failed; `None` if it did not.
    fn problem(self) -> Option<String>;
}

impl Outcome for () {
    fn problem(self) -> Option<String> {
        None
    }
}

impl<E: Debug> Outcome for Result<(), E> {
    fn problem(self) -> Option<String> {
        self.err().map(|error| format!("Error: {error:?}"))
    }
}

/// Runs a test and tells the page its name, and why it failed if it did.
///
/// `path` begins with the name of the crate, which the page is not told. A panic is told with its
/// place, and then ends the instance by a trap.
pub fn run<T: Outcome>(path: &str, test: fn() -> T) {
    let name = path.split_once("::").map_or(path, |(_, name)| name);
    begun(name.as_ptr(), name.len());
    panic::set_hook(Box::new(|panic| fail(&panic.to_string())));
    if let Some(problem) = test().problem() {
        fail(&problem);
    }
}

fn fail(problem: &str) {
    failed(problem.as_ptr(), problem.len());
}
