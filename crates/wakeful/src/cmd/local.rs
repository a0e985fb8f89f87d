//! Commands that need no server: `up`, `config show`, `doctor` and the reference pages.

use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use clap::CommandFactory as _;

use super::args::{Cli, ConfigArgs, ConfigCommand, ConfigWhat, Page, UpArgs};
use crate::{
    config::{
        Layers,
        build::{self, Resolved},
        reference, show,
    },
    doctor,
    env::CONFIG,
    output::{self, Output},
    telemetry,
};

/// The most bytes of a configuration file.
const FILE_MAX: u64 = 1 << 20;
/// The file that is read where none is named.
const FILE: &str = "wakeful.toml";

/// Gathers the layers from flags, the process environment and the file, and resolves them.
fn load(args: &ConfigArgs, variables: BTreeMap<String, String>) -> anyhow::Result<Resolved> {
    let named = args
        .config
        .clone()
        .or_else(|| variables.get(CONFIG).filter(|name| !name.is_empty()).map(PathBuf::from));
    let file = match &named {
        Some(path) => Some(read_file(path)?),
        None if Path::new(FILE).exists() => Some(read_file(Path::new(FILE))?),
        None => None,
    };
    let layers = Layers {
        flags: args.layer(),
        variables,
        file,
        directory: std::env::current_dir().context("the working directory cannot be found")?,
        machine_cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
    };
    Ok(build::resolve_settings(&layers)?)
}

fn read_file(path: &Path) -> anyhow::Result<(String, String)> {
    let name = path.display().to_string();
    let mut text = String::new();
    let read = fs::File::open(path)
        .and_then(|file| file.take(FILE_MAX + 1).read_to_string(&mut text))
        .with_context(|| format!("the configuration file {name} cannot be read"))?;
    if read as u64 > FILE_MAX {
        bail!("the configuration file {name} is larger than {FILE_MAX} bytes");
    }
    Ok((name, text))
}

/// `wakeful up`.
pub(super) fn up(args: UpArgs) -> anyhow::Result<ExitCode> {
    let variables = crate::env::snapshot();
    let colour = variables.get("NO_COLOR").is_none_or(String::is_empty);
    let resolved = load(&args.config, variables)?;
    telemetry::start(&resolved.config.log, colour)?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    crate::up::run(resolved.config)?;
    Ok(ExitCode::SUCCESS)
}

/// `wakeful config …`.
pub(super) fn config(output: Output, command: ConfigCommand) -> anyhow::Result<ExitCode> {
    let ConfigWhat::Show(args) = command.what;
    let resolved = load(&args, crate::env::snapshot())?;
    for warning in &resolved.config.warnings {
        output.note(&format!("warning: {warning}"));
    }
    output.print(&show::json(&resolved), |_| text(&resolved))?;
    Ok(ExitCode::SUCCESS)
}

fn text(resolved: &Resolved) -> String {
    let rows: Vec<[String; 3]> = show::lines(resolved)
        .into_iter()
        .map(|line| {
            let value = match line.in_force {
                Some(in_force) => format!("{} ({in_force})", line.value.to_toml()),
                None => line.value.to_toml(),
            };
            [line.key.to_owned(), value, line.origin]
        })
        .collect();
    let templates: Vec<[String; 4]> = resolved
        .config
        .templates
        .iter()
        .map(|(name, template)| {
            let surfaces: Vec<_> = template.surfaces.keys().map(ToString::to_string).collect();
            let env: Vec<_> = show::redacted(template)
                .env
                .into_iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            [name.to_string(), template.title(name).to_owned(), surfaces.join(" "), env.join(" ")]
        })
        .collect();
    let settings = output::table(["SETTING", "VALUE", "FROM"], &rows);
    let templates = output::table(["TEMPLATE", "TITLE", "SURFACES", "VARIABLES"], &templates);
    format!("{settings}\n{templates}")
}

/// `wakeful doctor`.
pub(super) fn doctor(output: Output, args: &ConfigArgs) -> anyhow::Result<ExitCode> {
    let variables = crate::env::snapshot();
    let path = variables.get("PATH").cloned().unwrap_or_default();
    let findings = match load(args, variables) {
        Ok(Resolved { config, .. }) => {
            let mut findings = doctor::examine(&config, &path);
            let probe = std::env::current_exe()
                .context("the path of this program cannot be found")
                .and_then(|program| {
                    doctor::isolation::probe(
                        &program,
                        &doctor::isolation::wanted(&config.isolation),
                    )
                });
            findings.extend(doctor::isolated(&config, &probe));
            findings
        }
        Err(error) => vec![doctor::Finding::bad("configuration", format!("{error:#}"))],
    };
    output.print(&findings, |findings| doctor::text(findings))?;
    Ok(if findings.iter().any(doctor::Finding::is_bad) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// `wakeful demo`: serves the demo's page until it is ended.
pub(super) fn demo() -> anyhow::Result<ExitCode> {
    let variables = crate::env::snapshot();
    let port = variables.get("PORT").and_then(|port| port.parse().ok());
    let port = port.context("PORT must hold the port to serve")?;
    let demo = wakeful_envd::demo::Demo {
        workspace: std::env::current_dir().context("the working directory cannot be found")?,
        greeting: variables.get("GREETING").cloned(),
        dashboard_url: variables.get("WAKEFUL_DASHBOARD_URL").cloned(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(wakeful_envd::demo::serve(port, demo))? {}
}

/// `wakeful reference PAGE`.
pub(super) fn reference(output: Output, page: Page) -> anyhow::Result<ExitCode> {
    let text = match page {
        Page::Configuration => reference::configuration(),
        Page::Environment => reference::environment(),
        Page::Commands => commands(),
    };
    output.line(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The page of commands: each one's help.
pub(super) fn commands() -> String {
    let mut page = format!("# Commands\n\n{}\n", reference::GENERATED.trim_end());
    describe(&mut page, Cli::command(), "");
    page
}

fn describe(page: &mut String, command: clap::Command, parent: &str) {
    let name = format!("{parent}{}", command.get_name());
    let mut shown = command.clone().bin_name(&name).display_name(&name).term_width(100);
    // What is global or generated is told once, at the top.
    if !parent.is_empty() {
        shown = shown.disable_help_flag(true);
    }
    let help = shown.render_long_help().to_string();
    let lines: Vec<_> = help.lines().map(str::trim_end).collect();
    page.push_str(&format!("\n## `{name}`\n\n```text\n{}\n```\n", lines.join("\n").trim_end()));
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        if inner.get_name() != "help" {
            describe(page, inner.clone(), &format!("{name} "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_pages_are_up_to_date() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let pages = [
            ("configuration.md", reference::configuration()),
            ("environment.md", reference::environment()),
            ("commands.md", commands()),
        ];
        for (name, expected) in pages {
            let committed = fs::read_to_string(docs.join(name)).unwrap_or_default();
            assert!(committed == expected, "docs/{name} is stale: run `cargo xtask docs`");
        }
    }
}
