//! `cargo xtask setup`: what the tests need beside Rust.
//!
//! Real programs that environments run go below `.tools`, at the versions that are committed in
//! `xtask/tools`; `.tools/bin` holds those that the tests start. What is there already is left
//! alone, so a second run does nothing.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};

use crate::{
    root,
    step::{self, command, find, say},
    wasm,
};

/// A program, and the Debian package that brings it.
const PROGRAMS: &[(&str, &str)] = &[
    ("cc", "build-essential"),
    ("pkg-config", "pkg-config"),
    ("python3", "python3"),
    ("sqlite3", "sqlite3"),
    ("curl", "curl"),
    ("chromium", "chromium"),
    ("nginx", "nginx-light"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
];

/// Cargo's own tools: the program, the crate, and the version that is installed where it is absent.
const CARGO_TOOLS: &[(&str, &str, &str)] =
    &[("cargo-nextest", "cargo-nextest", "0.9.143"), ("cargo-deny", "cargo-deny", "0.20.2")];

/// Installs whatever is missing.
pub(crate) fn run() -> anyhow::Result<()> {
    debian_packages()?;
    python_tools()?;
    node_tools()?;
    agents()?;
    cargo_tools()?;
    wasm::setup()?;
    say("\nEverything that the tests need is there.");
    Ok(())
}

/// The packages of the system.
fn debian_packages() -> anyhow::Result<()> {
    say("\n== programs of the system");
    let mut packages: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(program, _)| find(program).is_none())
        .map(|(_, package)| *package)
        .collect();
    let venv = command(&python(), &["-c", "import venv, ensurepip"]);
    if step::output(venv).is_none() {
        packages.push("python3-venv");
    }
    if packages.is_empty() {
        say("  all there");
        return Ok(());
    }
    say(&format!("  missing: {}", packages.join(" ")));
    if find("apt-get").is_none() {
        bail!("install the missing programs by your system's own means: {}", packages.join(" "));
    }
    apt(&["update"])?;
    let mut install = vec!["install", "--yes", "--no-install-recommends"];
    install.extend(packages);
    apt(&install)
}

/// Runs `apt-get`, by `sudo` where that is needed.
pub(crate) fn apt(args: &[&str]) -> anyhow::Result<()> {
    let is_root = step::output(command("id", &["-u"])).is_some_and(|id| id == "0");
    let mut words = vec![];
    if !is_root {
        words.push("sudo");
    }
    words.extend(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
    words.extend(args);
    step::run(command(words[0], &words[1..]))
}

/// The system's own Python where there is one: a sandbox may read it, but not one in a home.
fn python() -> String {
    let system = "/usr/bin/python3";
    if Path::new(system).exists() { system.to_owned() } else { "python3".to_owned() }
}

/// Datasette, in a virtual environment.
fn python_tools() -> anyhow::Result<()> {
    say("\n== Datasette");
    let home = root().join(".tools/python");
    let wanted = root().join("xtask/tools/python/requirements.txt");
    if !is_current(&home, &wanted)? {
        let shown = home.display().to_string();
        step::run(command(&python(), &["-m", "venv", "--clear", &shown]))?;
        let pip = home.join("bin/pip").display().to_string();
        let wanted = wanted.display().to_string();
        let flags = ["install", "--quiet", "--disable-pip-version-check", "--no-deps"];
        step::run(command(&pip, &[flags.as_slice(), &["--requirement", &wanted]].concat()))?;
    }
    mark(&home, &wanted)?;
    link("datasette", &home.join("bin/datasette"))
}

/// OpenCode and Playwright's core.
fn node_tools() -> anyhow::Result<()> {
    say("\n== OpenCode and Playwright");
    if !cfg!(target_arch = "x86_64") {
        say("  left out: the committed versions are for x86-64; tests that need them will say so");
        return Ok(());
    }
    let home = node_packages("node", "ci")?;
    link("opencode", &home.join("node_modules/opencode-linux-x64/bin/opencode"))
}

/// Other people's agents, which `system_agents` talks to. They are nothing but scripts, so that
/// they run wherever node does.
fn agents() -> anyhow::Result<()> {
    say("\n== agents");
    // Some of their optional packages exist for other platforms only, and `ci` takes that for a lock
    // file out of date. The versions and sums of the lock file hold all the same.
    let home = node_packages("agents", "install")?;
    for name in ["qwen", "gemini", "pi-acp"] {
        link(name, &home.join("node_modules/.bin").join(name))?;
    }
    Ok(())
}

/// Installs what is committed in `xtask/tools/NAME` into `.tools/NAME`, which is returned, by
/// this command of npm.
fn node_packages(name: &str, how: &str) -> anyhow::Result<PathBuf> {
    let home = root().join(".tools").join(name);
    let source = root().join("xtask/tools").join(name);
    let wanted = source.join("package-lock.json");
    if !is_current(&home, &wanted)? {
        fs::create_dir_all(&home)?;
        for name in ["package.json", "package-lock.json"] {
            fs::copy(source.join(name), home.join(name))?;
        }
        // No script of a package runs: what is used of them needs none.
        let flags = [how, "--ignore-scripts", "--no-audit", "--no-fund"];
        let mut npm = command("npm", &flags);
        npm.current_dir(&home);
        step::run(npm)?;
    }
    mark(&home, &wanted)?;
    Ok(home)
}

/// Whether what is installed in `home` is what `wanted` says.
fn is_current(home: &Path, wanted: &Path) -> anyhow::Result<bool> {
    let text = fs::read(wanted).with_context(|| format!("{} is missing", wanted.display()))?;
    let current = fs::read(home.join(MARK)).is_ok_and(|installed| installed == text);
    if current {
        say("  there already");
    }
    Ok(current)
}

/// Remembers what was installed, once all of it was.
fn mark(home: &Path, wanted: &Path) -> anyhow::Result<()> {
    fs::copy(wanted, home.join(MARK))?;
    Ok(())
}

/// The file in a tool's directory that says what is installed there.
const MARK: &str = ".installed";

/// Puts a program into `.tools/bin`.
fn link(name: &str, program: &Path) -> anyhow::Result<()> {
    if !program.exists() {
        bail!("{} was not installed", program.display());
    }
    let bin: PathBuf = root().join(".tools/bin");
    fs::create_dir_all(&bin)?;
    let link = bin.join(name);
    if fs::read_link(&link).is_ok_and(|target| target == program) {
        return Ok(());
    }
    match fs::remove_file(&link) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    std::os::unix::fs::symlink(program, &link)?;
    say(&format!("  {} -> {}", link.display(), program.display()));
    Ok(())
}

/// The test runner and the licence check.
fn cargo_tools() -> anyhow::Result<()> {
    for (program, name, version) in CARGO_TOOLS {
        say(&format!("\n== {name}"));
        if find(program).is_some() {
            say("  there already");
            continue;
        }
        step::run(command("cargo", &["install", "--locked", name, "--version", version]))?;
    }
    Ok(())
}
