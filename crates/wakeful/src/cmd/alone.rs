//! `envd`: a host of its own, on this machine.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::CommandFactory as _;
use wakeful_envd::alone::{AloneOptions, alone_blocking};
use wakeful_wire::{sandbox::subcommand, template::SHELL_AGENT};

use super::{
    args::{Cli, EnvdArgs},
    pair,
};
use crate::{config::nearest::suggestion, env, output::to_stderr};

/// `wakeful envd --workspace DIR`: runs until it is ended. On the program's first thread, to which
/// its agents are bound.
pub(super) fn run(args: EnvdArgs) -> anyhow::Result<ExitCode> {
    Ok(alone_blocking(options(args)?))
}

fn options(args: EnvdArgs) -> anyhow::Result<AloneOptions> {
    if !args.workspace.is_dir() {
        bail!("{} is no directory", args.workspace.display());
    }
    let workspace = std::path::absolute(&args.workspace)
        .with_context(|| format!("{} has no path", args.workspace.display()))?;
    let mut agents = std::collections::BTreeMap::new();
    for (name, command) in args.agent {
        if agents.insert(name.clone(), command).is_some() {
            bail!("--agent {name} is given more than once");
        }
    }
    if let Some(name) = &args.default_agent
        && name != SHELL_AGENT
        && !agents.contains_key(name)
    {
        let known = agents.keys().map(String::as_str).chain([SHELL_AGENT]);
        bail!("--default-agent {name} is none of the agents{}", suggestion(name, known));
    }
    Ok(AloneOptions {
        workspace,
        listen: args.listen,
        agents,
        default_agent: args.default_agent,
        label: args.label.unwrap_or_default(),
        public: args.public_address,
        state: pair::state(args.state)?,
        variables: env::inherited(),
    })
}

/// What a person reads who gave no arguments: a sandbox's spec does not come from a terminal.
pub(super) fn help() -> ExitCode {
    let mut cli = Cli::command();
    cli.build();
    if let Some(command) = cli.find_subcommand_mut(subcommand::ENVD) {
        to_stderr(command.render_long_help().to_string().trim_end());
    }
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(directory: &std::path::Path) -> EnvdArgs {
        EnvdArgs {
            workspace: directory.to_owned(),
            listen: AloneOptions::LISTEN,
            agent: vec![("coder".to_owned(), "coder acp".to_owned())],
            default_agent: None,
            label: None,
            public_address: None,
            state: Some("/s".into()),
        }
    }

    #[test]
    fn agents_are_named_once_and_the_default_is_one_of_them() {
        let directory = tempfile::tempdir().unwrap();
        let args = || args(directory.path());
        let set = options(args()).unwrap();
        assert_eq!(set.agents["coder"], "coder acp");
        assert_eq!((set.state, set.label), ("/s".into(), String::new()));
        let twice = EnvdArgs { agent: [args().agent, args().agent].concat(), ..args() };
        assert!(options(twice).unwrap_err().to_string().contains("more than once"));
        let with = |default: &str| EnvdArgs { default_agent: Some(default.to_owned()), ..args() };
        assert!(options(with("coder")).is_ok() && options(with("shell")).is_ok());
        let wrong = options(with("codr")).unwrap_err().to_string();
        assert!(wrong.contains("did you mean `coder`?"), "{wrong}");
        let nowhere = EnvdArgs { workspace: directory.path().join("none"), ..args() };
        assert!(options(nowhere).unwrap_err().to_string().contains("is no directory"));
    }
}
