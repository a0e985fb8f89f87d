//! `cargo xtask docs`: the reference pages, as the program itself tells them.

use std::fs;

use anyhow::Context as _;

use crate::{
    root,
    step::{self, command, say},
};

/// The pages below `docs` that are made from the source.
const PAGES: &[&str] = &["configuration", "environment", "commands"];

/// Writes them.
pub(crate) fn run() -> anyhow::Result<()> {
    for page in PAGES {
        let args = ["run", "--locked", "--quiet", "--package", "wakeful", "--", "reference", page];
        let text = step::output(command("cargo", &args))
            .with_context(|| format!("`cargo {}` failed", args.join(" ")))?;
        let file = root().join("docs").join(page).with_extension("md");
        fs::write(&file, format!("{text}\n"))?;
        say(&format!("  wrote {}", file.display()));
    }
    Ok(())
}
