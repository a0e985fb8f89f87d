//! `cargo xtask test`: everything that must hold, from the cheap to the dear.

use crate::step::{self, Steps, command, find};

/// How much is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// What answers within a minute or two.
    Fast,
    /// Everything.
    All,
}

/// The integration tests that start the whole program, real programs behind it, or a browser.
/// They are told by the names of their test binaries.
const SLOW: &str = "binary(/^(system|browser)/)";

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
        steps.step("whole system", || nextest("binary(/^system/)", &["--no-tests", "pass"]));
        steps.step("browser", || nextest("binary(/^browser/)", &["--no-tests", "pass"]));
    }
    steps.finish()
}

fn nextest(filter: &str, more: &[&str]) -> anyhow::Result<()> {
    installed("cargo-nextest")?;
    let args = ["nextest", "run", "--locked", "--workspace", "--filterset", filter];
    cargo(&[args.as_slice(), more].concat())
}

fn cargo(args: &[&str]) -> anyhow::Result<()> {
    step::run(command("cargo", args))
}

fn installed(program: &str) -> anyhow::Result<()> {
    anyhow::ensure!(find(program).is_some(), "{program} is missing: run `cargo xtask setup`");
    Ok(())
}
