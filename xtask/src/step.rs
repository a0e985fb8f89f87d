//! Running programs, and saying so.

use std::{
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};

/// Writes a line to standard error, where the programs that are run write theirs.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// A command in the root of the checkout.
pub(crate) fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(crate::root());
    command
}

/// Says what is run, runs it, and fails if it does.
pub(crate) fn run(mut command: Command) -> anyhow::Result<()> {
    let shown = shown(&command);
    say(&format!("  $ {shown}"));
    let status = command.status().with_context(|| format!("`{shown}` cannot be run"))?;
    if !status.success() {
        bail!("`{shown}` failed with {status}");
    }
    Ok(())
}

/// The same, with what it prints on standard output in a file.
pub(crate) fn run_into(mut command: Command, file: &Path) -> anyhow::Result<()> {
    let output = File::create(file).with_context(|| format!("{}", file.display()))?;
    command.stdout(output);
    run(command)
}

/// What a command prints on standard output; `None` where it cannot be run or fails.
pub(crate) fn output(mut command: Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn shown(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|arg| {
        let arg = arg.to_string_lossy();
        let plain = !arg.is_empty() && !arg.contains([' ', '(', ')', '|', '&', '\'', '"']);
        if plain { arg.into_owned() } else { format!("'{arg}'") }
    }));
    words.join(" ")
}

/// Where a program is: on `PATH`, where Debian keeps those that only root needs, or where cargo
/// installs its own and finds them itself.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from).or(home);
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .chain(cargo.map(|cargo| cargo.join("bin")))
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}

/// Fails if a program is not there.
pub(crate) fn installed(program: &str) -> anyhow::Result<()> {
    anyhow::ensure!(find(program).is_some(), "{program} is missing: run `cargo xtask setup`");
    Ok(())
}

/// Steps that are run one after the other, each timed; a failed one does not stop those after it,
/// so that one run shows everything.
#[derive(Debug, Default)]
pub(crate) struct Steps(Vec<Step>);

#[derive(Debug)]
struct Step {
    name: &'static str,
    took: Duration,
    failure: Option<String>,
}

impl Steps {
    /// Runs one.
    pub(crate) fn step(&mut self, name: &'static str, work: impl FnOnce() -> anyhow::Result<()>) {
        say(&format!("\n== {name}"));
        let begun = Instant::now();
        let failure = work().err().map(|error| format!("{error:#}"));
        let took = begun.elapsed();
        let word = if failure.is_some() { "FAILED" } else { "ok" };
        say(&format!("== {name}: {word} after {:.1} s", took.as_secs_f64()));
        self.0.push(Step { name, took, failure });
    }

    /// Says how each went, and fails if one did.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        say("");
        let mut failed = Vec::new();
        for step in &self.0 {
            let word = step.failure.as_deref().unwrap_or("ok");
            say(&format!("{:>8.1} s  {:<24}{word}", step.took.as_secs_f64(), step.name));
            if step.failure.is_some() {
                failed.push(step.name);
            }
        }
        let total: Duration = self.0.iter().map(|step| step.took).sum();
        say(&format!("{:>8.1} s  in all", total.as_secs_f64()));
        if !failed.is_empty() {
            bail!("failed: {}", failed.join(", "));
        }
        Ok(())
    }
}
