//! `cargo xtask docs`: the reference pages, as the program itself tells them, and the schemas of
//! its messages.

use std::{fs, path::Path};

use anyhow::Context as _;

use crate::{
    root,
    step::{self, command, say},
};

/// The pages below `docs` that are made from the source.
const PAGES: &[&str] = &["configuration", "environment", "commands"];

/// The schemas, below `docs` as well.
const SCHEMA: &str = "protocol/rpc.schema.json";

/// Writes them.
pub(crate) fn run() -> anyhow::Result<()> {
    for page in PAGES {
        let args = ["run", "--locked", "--quiet", "--package", "wakeful", "--", "reference", page];
        write(&root().join("docs").join(page).with_extension("md"), &args)?;
    }
    let args =
        ["run", "--locked", "--quiet", "--package", "wakeful-wire", "--example", "rpc_schema"];
    write(&root().join("docs").join(SCHEMA), &args)
}

/// Writes what a run of cargo prints.
fn write(file: &Path, args: &[&str]) -> anyhow::Result<()> {
    let text = step::output(command("cargo", args))
        .with_context(|| format!("`cargo {}` failed", args.join(" ")))?;
    fs::write(file, format!("{text}\n"))?;
    say(&format!("  wrote {}", file.display()));
    Ok(())
}
