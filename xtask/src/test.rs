//! `cargo xtask test`: everything that must hold, from the cheap to the dear.

use std::fs;

use crate::{
    root,
    step::{self, Steps, command, installed},
    wasm,
};

/// How much is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// What answers within a minute or two.
    Fast,
    /// Everything.
    All,
}

/// The integration tests that start the whole program, and real programs behind it, or that measure
/// seconds. They are told by the names of their test binaries.
const SLOW: &str = "binary(/^(system|faults)/)";

/// Runs the steps and says how each went.
pub(crate) fn run(scope: Scope) -> anyhow::Result<()> {
    let mut steps = Steps::default();
    steps.step("format", || cargo(&["fmt", "--all", "--check"]));
    steps.step("lints", || {
        let scope = ["clippy", "--locked", "--workspace", "--all-targets"];
        cargo(&[scope.as_slice(), &["--", "--deny", "warnings"]].concat())
    });
    if scope == Scope::All {
        // Advisories need a database that is fetched over the network.
        steps.step("licences and sources", || {
            installed("cargo-deny")?;
            cargo(&["deny", "--locked", "check", "bans", "licenses", "sources"])
        });
    }
    steps.step("quick tests", || nextest(&format!("not {SLOW}"), &[]));
    if scope == Scope::All {
        steps.step("tests in documentation", || {
            cargo(&["test", "--locked", "--workspace", "--doc", "--quiet"])
        });
        steps.step("documentation", || {
            let mut doc = command(
                "cargo",
                &["doc", "--locked", "--workspace", "--no-deps", "--document-private-items"],
            );
            // Private items are documented as well, so links to them lead somewhere.
            let flags = "--deny warnings --allow rustdoc::private-intra-doc-links";
            doc.env("RUSTDOCFLAGS", flags);
            step::run(doc)
        });
        steps.step("tests in a page", || wasm::test(wasm::Beside::Workspace));
        steps.step("whole system", || nextest(SLOW, &["--no-tests", "pass"]));
        steps.step("browser", browser);
        steps.step("bindings of the client", bindings);
    }
    steps.finish()
}

/// The journeys of `e2e`, in a real browser, one after the other: each starts the whole program.
fn browser() -> anyhow::Result<()> {
    installed("node")?;
    cargo(&["build", "--locked", "--package", "wakeful"])?;
    node_tests("e2e")
}

/// The client as an application in another language has it, against the whole program. Cargo builds
/// the library and what generates the bindings with the test; the program is the one of the journeys.
fn bindings() -> anyhow::Result<()> {
    installed("cargo-nextest")?;
    cargo(&["build", "--locked", "--package", "wakeful"])?;
    // With the program among the packages, what both need is compiled with the same features.
    let packages = ["--package", "wakeful", "--package", "wakeful-client-ffi"];
    let which = ["--features", "wakeful-client-ffi/bindgen", "--test", "python"];
    let how = ["nextest", "run", "--locked", "--run-ignored", "only"];
    let mut test = command("cargo", &[how.as_slice(), &packages, &which].concat());
    test.env("WAKEFUL_PROGRAM", root().join("target/debug/wakeful"));
    step::run(test)
}

/// The tests of a directory that node's test runner runs, one file after the other.
pub(crate) fn node_tests(directory: &str) -> anyhow::Result<()> {
    let mut files: Vec<String> = Vec::new();
    for entry in fs::read_dir(root().join(directory))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".test.js") {
            files.push(format!("{directory}/{name}"));
        }
    }
    files.sort();
    anyhow::ensure!(!files.is_empty(), "there are no tests in {directory}");
    let flags = ["--test", "--test-concurrency=1", "--test-reporter=spec"];
    let args: Vec<&str> = flags.into_iter().chain(files.iter().map(String::as_str)).collect();
    step::run(command("node", &args))
}

fn nextest(filter: &str, more: &[&str]) -> anyhow::Result<()> {
    installed("cargo-nextest")?;
    let args = ["nextest", "run", "--locked", "--workspace", "--filterset", filter];
    cargo(&[args.as_slice(), more].concat())
}

fn cargo(args: &[&str]) -> anyhow::Result<()> {
    step::run(command("cargo", args))
}
