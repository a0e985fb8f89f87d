//! What each command takes. The texts here are what `--help` teaches.

mod host;
mod remote;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use host::{
    AttachCommand, EnvdArgs, PairArgs, SendArgs, SessionsArgs, StatusArgs, ThreadsArgs,
};
pub use remote::{
    DownloadArgs, ExtendArgs, LoginArgs, LogsArgs, OpenArgs, ProjectsArgs, ProjectsWhat, Remote,
    SignupArgs, TokensArgs, TokensWhat, UploadArgs, VarsArgs, VarsWhat, WaitArgs,
};

use crate::config::layers::FlagValue;

/// Agent environments that sleep when nobody needs them and wake on the first byte of any visit.
#[derive(Debug, Parser)]
#[command(
    name = "wakeful",
    version,
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = "\
First steps:
  wakeful up                                          run everything on this machine
  wakeful signup http://wakeful.localhost:7878 --user ada
  wakeful projects create 'My site'                   make a project
  wakeful open 'My site'                              print where it is, and open it
  wakeful explain 'My site'                           why it is awake, when it will sleep
  wakeful send 'My site' 'Add a contact page' --wait  give its agent something to do

Where a command takes ENV, it can be an id, the beginning of one, a project's title, or
PROJECT/SLUG. threads, status, attach, send and sessions also take a paired host: its name, or
host:NAME.
Every command takes --json. It ends with 1 when it failed, 2 when it was not
understood."
)]
pub struct Cli {
    /// Print JSON for programs; errors as problem JSON on standard error
    #[arg(long, global = true)]
    pub json: bool,

    /// The server to speak to, instead of the one signed in to last [env: WAKEFUL_URL]
    #[arg(long, global = true, value_name = "URL", hide_short_help = true)]
    pub url: Option<String>,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run everything on this machine: gateway, control plane, database and sandboxes
    #[command(after_help = "\
Examples:
  wakeful up
  wakeful up --listen 0.0.0.0:80 --domain agents.example.org --data /var/lib/wakeful
  wakeful up --set idle.app=20m --set wake.budget=90s

Settings also come from wakeful.toml and from WAKEFUL_… variables; `wakeful config show` prints
each and where it came from.")]
    Up(Box<UpArgs>),

    /// Something that is asked of a server.
    #[command(flatten)]
    Remote(Remote),

    /// Run a host of its own: the agents of a directory of this machine, without a server
    #[command(after_help = "\
Examples:
  wakeful envd --workspace ~/site
  wakeful envd --workspace ~/site --agent coder='coder acp' --listen 0.0.0.0:7880
  wakeful envd --workspace ~/site --public-address https://lab.example.org/site

It prints a command for another machine, `wakeful pair URL CODE`, which then sees and steers its
threads. `wakeful pair` on this machine prints another. The threads are kept in the workspace, in
.wakeful. Agents run as you, without isolation. It ends with SIGTERM, SIGINT or SIGHUP.")]
    Envd(EnvdArgs),

    /// Check this machine: configuration, isolation, templates' programs
    Doctor(ConfigArgs),

    /// Show the configuration
    Config(ConfigCommand),

    /// The shipped demo's page; started by the template `demo`
    #[command(hide = true)]
    Demo,

    /// Print a reference page of the documentation
    #[command(hide = true)]
    Reference {
        /// Which one.
        page: Page,
    },
}

/// A reference page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Page {
    /// `docs/configuration.md`.
    Configuration,
    /// `docs/environment.md`.
    Environment,
    /// `docs/commands.md`.
    Commands,
}

/// Flags that set settings.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigArgs {
    /// The configuration file [default: wakeful.toml if there is one] [env: WAKEFUL_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Addresses to listen on.
    #[arg(
        long,
        value_name = "ADDRESS",
        help = "Address and port to listen on; can be given more than once \
                [default: 127.0.0.1:7878 and [::1]:7878]"
    )]
    pub listen: Vec<String>,

    /// Directory of everything that is kept [default: .wakeful]
    #[arg(long, value_name = "DIR")]
    pub data: Option<String>,

    /// Domain of the dashboard, with surfaces on names below it [default: wakeful.localhost]
    #[arg(long, value_name = "NAME")]
    pub domain: Option<String>,

    /// What people type, where a TLS proxy stands in front
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,

    /// How many per-core runtimes serve requests [default: one for each processor]
    #[arg(long, value_name = "N")]
    pub cores: Option<String>,

    /// Leave sandboxes running when stopped, for the next start to adopt
    #[arg(long)]
    pub keep_sandboxes: bool,

    /// How the log is written: text or json
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,

    /// What is logged: a level, or directives such as info,wakeful_gateway=debug
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,

    /// Any other setting; can be given more than once
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err("expected KEY=VALUE, for example idle.app=20m".to_owned()),
    }
}

impl ConfigArgs {
    /// The flags as a layer of the configuration. A flag of its own beats `--set`.
    #[must_use]
    pub fn layer(&self) -> Vec<FlagValue> {
        let mut layer: Vec<FlagValue> = self
            .set
            .iter()
            .map(|(key, value)| FlagValue {
                flag: format!("--set {key}"),
                key: key.clone(),
                values: vec![value.clone()],
            })
            .collect();
        let mut add = |flag: &str, key: &str, values: Vec<String>| {
            if !values.is_empty() {
                layer.push(FlagValue { flag: flag.to_owned(), key: key.to_owned(), values });
            }
        };
        let one = |value: &Option<String>| value.iter().cloned().collect::<Vec<_>>();
        add("--listen", "listen", self.listen.clone());
        add("--data", "data", one(&self.data));
        add("--domain", "domain", one(&self.domain));
        add("--public-url", "public_url", one(&self.public_url));
        add("--cores", "cores", one(&self.cores));
        add("--log-format", "log.format", one(&self.log_format));
        add("--log-level", "log.level", one(&self.log_level));
        if self.keep_sandboxes {
            add("--keep-sandboxes", "keep_sandboxes", vec!["true".to_owned()]);
        }
        layer
    }
}

/// `wakeful up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// Settings.
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// `wakeful config`.
#[derive(Debug, Args)]
pub struct ConfigCommand {
    /// What to do with it.
    #[command(subcommand)]
    pub what: ConfigWhat,
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigWhat {
    /// Print each value and where it came from
    Show(Box<ConfigArgs>),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_tree_of_commands_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_visible_command_says_what_it_does() {
        for command in Cli::command().get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
        }
    }

    #[test]
    fn a_flag_of_its_own_beats_set() {
        let args = ConfigArgs {
            listen: vec!["127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned()],
            set: vec![("listen".to_owned(), "127.0.0.1:3".to_owned())],
            keep_sandboxes: true,
            ..ConfigArgs::default()
        };
        let layers = crate::config::Layers { flags: args.layer(), ..Default::default() };
        let config = crate::config::Config::resolve(&layers).unwrap();
        assert_eq!(config.listen.iter().map(|a| a.port()).collect::<Vec<_>>(), [1, 2]);
        assert!(config.keep_sandboxes);
        assert_eq!(config.origins["listen"].to_string(), "--listen");
    }
}
