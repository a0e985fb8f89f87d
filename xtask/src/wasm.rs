//! Rust for the browser, and the tests that run there.
//!
//! Whoever has the target beside their own compiler uses that. Where it cannot be had so, Debian's
//! `rustc-web` compiles for the browser, and everything else stays with the usual compiler. That
//! package comes without a standard library for the target, so its sources are compiled once, into
//! `.tools/wasm`.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};

use crate::{
    root,
    setup::apt,
    step::{self, command, find, installed, say},
    test::node_tests,
};

const TARGET: &str = "wasm32-unknown-unknown";

/// What compiles for the browser where the usual compiler does not, and its source.
const PACKAGES: &[&str] = &["rustc-web", "cargo-web", "rust-web-src"];
const RUSTC: &str = "/usr/bin/rustc";
const CARGO: &str = "/usr/bin/cargo";

/// The crate whose tests run in the browser.
const TESTED: &str = "wakeful-link";

/// A compiler that can compile for the browser.
enum Compiler {
    /// The usual one.
    Usual,
    /// Debian's, with the standard library in `.tools/wasm`.
    Debian,
}

/// Installs one, unless there is one.
pub(crate) fn setup() -> anyhow::Result<()> {
    say("\n== Rust for the browser");
    if Compiler::find().is_some() {
        say("  there already");
        return Ok(());
    }
    let added = find("rustup").is_some()
        && step::run(command("rustup", &["target", "add", TARGET])).is_ok();
    if added {
        return Ok(());
    }
    if find("apt-get").is_none() {
        bail!("install Rust's target {TARGET} by your system's own means");
    }
    say("  the usual compiler cannot have the target, so Debian's is installed beside it");
    apt(&["update"])?;
    apt(&[&["install", "--yes", "--no-install-recommends"], PACKAGES].concat())?;
    standard_library()
}

/// Compiles the standard library of Debian's compiler.
fn standard_library() -> anyhow::Result<()> {
    let files = step::output(command("dpkg", &["--listfiles", "rust-web-src"]));
    let lock = files
        .as_deref()
        .and_then(|files| files.lines().find(|file| file.ends_with("/library/Cargo.lock")));
    let lock = Path::new(lock.context("the sources of the standard library are not there")?);
    let manifest = lock.with_file_name("sysroot").join("Cargo.toml");
    let build = home().join("build");
    let mut cargo = Command::new(CARGO);
    cargo
        .current_dir(root())
        .args(["build", "--locked", "--release", "--target", TARGET, "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(&build)
        .env("RUSTC", RUSTC)
        // What Rust's own build says to a released compiler, so that it compiles its own library.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", "-Zforce-unstable-if-unmarked -Cembed-bitcode=yes");
    step::run(cargo)?;
    let libraries = home().join("lib/rustlib").join(TARGET).join("lib");
    if libraries.exists() {
        fs::remove_dir_all(&libraries)?;
    }
    fs::create_dir_all(&libraries)?;
    for entry in fs::read_dir(build.join(TARGET).join("release/deps"))? {
        let file = entry?.path();
        if let (Some("rlib"), Some(name)) =
            (file.extension().and_then(|extension| extension.to_str()), file.file_name())
        {
            fs::copy(&file, libraries.join(name))?;
        }
    }
    fs::remove_dir_all(&build)?;
    // Last, since it says that all of it is there.
    let version = debian_version().context("Debian's compiler does not run")?;
    fs::write(home().join(MARK), version)?;
    Ok(())
}

/// The file that says for which compiler the standard library was compiled.
const MARK: &str = ".installed";

/// Where the standard library of Debian's compiler is.
fn home() -> PathBuf {
    root().join(".tools/wasm")
}

fn debian_version() -> Option<String> {
    step::output(command(RUSTC, &["--version", "--verbose"]))
}

impl Compiler {
    /// Finds one.
    fn find() -> Option<Self> {
        let args = ["--print", "target-libdir", "--target", TARGET];
        let usual = step::output(command("rustc", &args));
        if usual.is_some_and(|directory| Path::new(&directory).exists()) {
            return Some(Self::Usual);
        }
        let installed = fs::read_to_string(home().join(MARK)).ok()?;
        (debian_version()? == installed).then_some(Self::Debian)
    }

    /// A cargo that compiles by it.
    fn cargo(&self) -> anyhow::Result<Command> {
        match self {
            Self::Usual => Ok(command("cargo", &[])),
            Self::Debian => {
                let mut cargo = command(CARGO, &[]);
                let mut flags = OsString::from("--sysroot=");
                flags.push(home());
                cargo
                    .env("RUSTC", RUSTC)
                    .env("CARGO_ENCODED_RUSTFLAGS", flags)
                    .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker()?);
                Ok(cargo)
            }
        }
    }
}

/// The linker of the usual compiler, which Debian packs apart.
fn linker() -> anyhow::Result<PathBuf> {
    let ask = |what| step::output(command("rustc", &["--print", what]));
    let (Some(sysroot), Some(host)) = (ask("sysroot"), ask("host-tuple")) else {
        bail!("rustc does not say where it is");
    };
    Ok(Path::new(&sysroot).join("lib/rustlib").join(host).join("bin/rust-lld"))
}

/// Which packages cargo builds to say what tests there are natively: the choice that was built before
/// is at hand, any other is compiled anew.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Beside {
    /// All of the workspace.
    Workspace,
    /// The tested crate alone.
    Package,
}

/// Runs the unit tests of the client's connections in a browser's page, and fails unless all pass
/// and are those that there are natively.
pub(crate) fn test(beside: Beside) -> anyhow::Result<()> {
    installed("node")?;
    installed("cargo-nextest")?;
    node_tests("e2e/wasm")?;
    let compiler =
        Compiler::find().context("no compiler here knows the browser: run `cargo xtask setup`")?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let directory = root().join(target).join("wasm");
    fs::create_dir_all(&directory)?;

    let built = directory.join("built.json");
    let mut cargo = compiler.cargo()?;
    cargo
        .args(["test", "--locked", "--no-run", "--lib", "--package", TESTED, "--target", TARGET])
        .args(["--message-format", "json-render-diagnostics", "--target-dir"])
        .arg(&directory);
    step::run_into(cargo, &built)?;

    let native = directory.join("native.json");
    let only = format!("package({TESTED}) and kind(lib)");
    let mut list = command("cargo", &["nextest", "list", "--locked", "--message-format", "json"]);
    list.args(["--filterset", &only]).args(match beside {
        Beside::Workspace => &["--workspace"][..],
        Beside::Package => &["--lib", "--package", TESTED],
    });
    step::run_into(list, &native)?;

    let mut run = command("node", &["e2e/wasm/run.js", TESTED]);
    run.arg(built).arg(native);
    step::run(run)
}
