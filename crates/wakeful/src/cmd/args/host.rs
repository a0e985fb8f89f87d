//! What the commands about threads and the hosts that hold them take.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;
use wakeful_envd::{alone::AloneOptions, credential::HttpAddress};
use wakeful_wire::{
    host::{Scope, Scopes},
    template::SHELL_AGENT,
};

use super::super::attach::AttachArgs;

/// The longest name of an agent, in bytes.
const AGENT_NAME_MAX: usize = 26;

/// `wakeful threads`.
#[derive(Debug, Args)]
pub struct ThreadsArgs {
    /// An environment or paired host [default: all of them]
    pub env: Option<String>,
    /// Also show idle subagents and older settled threads; nothing is cached then
    #[arg(long)]
    pub all: bool,
    /// Go on, and show the lists anew whenever they change; q or Ctrl-C ends it
    #[arg(long, conflicts_with_all = ["settled", "search"])]
    pub watch: bool,
    /// Wake the environment if it sleeps
    #[arg(long, requires = "env")]
    pub wake: bool,
    /// List settled threads alone, newest first, the older ones among them
    #[arg(long, conflicts_with_all = ["all", "search"])]
    pub settled: bool,
    /// List the threads that hold these words, wherever they are put
    #[arg(long, value_name = "WORDS", conflicts_with = "all")]
    pub search: Option<String>,
    /// How many threads --settled and --search list at most
    #[arg(long, value_name = "N", default_value_t = LISTED, value_parser = listed)]
    pub limit: usize,
}

/// How many threads of a search, or of the settled ones, are listed where nobody says.
const LISTED: usize = 50;
/// How many are listed at most.
const LISTED_MAX: usize = 1_000;

fn listed(text: &str) -> Result<usize, String> {
    let many = text.parse().ok().filter(|many| (1..=LISTED_MAX).contains(many));
    many.ok_or_else(|| format!("expected a number from 1 to {LISTED_MAX}"))
}

/// `wakeful status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// An environment or paired host [default: all of them]
    pub env: Option<String>,
    /// Go on, and show what changes; q or Ctrl-C ends it
    #[arg(long)]
    pub watch: bool,
}

/// `wakeful attach`.
#[derive(Debug, Args)]
pub struct AttachCommand {
    /// The environment or paired host
    pub env: String,
    /// The thread: its id or the beginning of one [default: the newest]
    pub thread: Option<String>,
    /// How to attach.
    #[command(flatten)]
    pub how: AttachArgs,
}

/// `wakeful send`.
#[derive(Debug, Args)]
pub struct SendArgs {
    /// The environment or paired host
    pub env: String,
    /// The prompt; `-` reads it from standard input
    #[arg(allow_hyphen_values = true)]
    pub text: String,
    /// Send it to this thread: its id or the beginning of one [default: a new thread]
    #[arg(long, value_name = "THREAD", conflicts_with_all = ["agent", "title", "directory"])]
    pub thread: Option<String>,
    /// The new thread's agent [default: the environment's]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The new thread's title
    #[arg(long, value_name = "TITLE")]
    pub title: Option<String>,
    /// The directory of the workspace that the new thread works in [default: its root]
    #[arg(long, value_name = "DIR")]
    pub directory: Option<String>,
    /// Show what happens until nothing is left to do
    #[arg(long, conflicts_with = "attach")]
    pub wait: bool,
    /// Show what happens and go on, as `wakeful attach` does
    #[arg(long)]
    pub attach: bool,
}

/// `wakeful pair`.
#[derive(Debug, Args)]
pub struct PairArgs {
    /// The address that the other machine shows
    #[arg(value_name = "URL")]
    pub address: Option<String>,
    /// The code that the other machine shows; asked for where it is left out
    #[arg(value_name = "CODE", requires = "address")]
    pub code: Option<String>,
    /// What to call the host here; for a code, what to call the client that comes with it
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// List the hosts that this machine is paired with
    #[arg(long, conflicts_with_all = ["address", "name", "forget"])]
    pub list: bool,
    /// Forget a host
    #[arg(long, value_name = "NAME", conflicts_with_all = ["address", "name"])]
    pub forget: Option<String>,
    /// For a code: what its client may do, such as read,write [default: everything]
    #[arg(
        long,
        value_name = "SCOPES",
        conflicts_with_all = ["address", "list", "forget"],
        value_parser = scopes
    )]
    pub scopes: Option<Scopes>,
    /// For a code: the host's workspace, where several hosts run on this machine
    #[arg(long, value_name = "DIR", conflicts_with_all = ["address", "list", "forget"])]
    pub workspace: Option<PathBuf>,
    /// For a code: the host's state directory, if it was started with another
    #[arg(long, value_name = "DIR", conflicts_with_all = ["address", "list", "forget"])]
    pub state: Option<PathBuf>,
}

/// `wakeful sessions`.
#[derive(Debug, Args)]
pub struct SessionsArgs {
    /// The environment or paired host
    pub env: String,
    /// End a session: its id or the beginning of one
    #[arg(long, value_name = "ID", conflicts_with = "revoke_others")]
    pub revoke: Option<String>,
    /// End every session but the one of this machine
    #[arg(long)]
    pub revoke_others: bool,
}

/// `wakeful envd`.
#[derive(Debug, Args)]
pub struct EnvdArgs {
    /// The directory that agents work in; it also keeps the threads
    #[arg(long, value_name = "DIR")]
    pub workspace: PathBuf,
    /// Where to listen; port 0 takes any
    #[arg(long, value_name = "ADDRESS", default_value_t = AloneOptions::LISTEN)]
    pub listen: SocketAddr,
    /// An agent that speaks the Agent Client Protocol, beside the built-in `shell`; can be given
    /// more than once
    #[arg(long, value_name = "NAME=COMMAND", value_parser = agent)]
    pub agent: Vec<(String, String)>,
    /// The agent of a thread for which nobody chose one [default: the only --agent, else shell]
    #[arg(long, value_name = "NAME")]
    pub default_agent: Option<String>,
    /// What clients show as its name [default: the machine's and the workspace's]
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// What clients are to use, where a proxy stands in front
    #[arg(long, value_name = "URL", value_parser = public_address)]
    pub public_address: Option<HttpAddress>,
    /// Where its identity is kept, outside of the workspace
    /// [default: $XDG_STATE_HOME/wakeful, else ~/.local/state/wakeful]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

fn agent(text: &str) -> Result<(String, String), String> {
    let Some((name, command)) = text.split_once('=') else {
        return Err("expected NAME=COMMAND, for example coder='coder acp'".to_owned());
    };
    let fits = name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        && (1..=AGENT_NAME_MAX).contains(&name.len());
    if !fits {
        return Err(format!(
            "a name has 1 to {AGENT_NAME_MAX} lower-case letters, digits and dashes"
        ));
    }
    if name == SHELL_AGENT {
        return Err(format!("`{SHELL_AGENT}` is built in"));
    }
    if command.trim().is_empty() {
        return Err("the command is empty".to_owned());
    }
    Ok((name.to_owned(), command.to_owned()))
}

fn public_address(text: &str) -> Result<HttpAddress, String> {
    HttpAddress::parse(text)
        .map_err(|_| "expected an address like https://lab.example.org/host".to_owned())
}

/// Unknown names are refused here, although a text from a newer peer may hold them: what a person
/// mistypes must not silently become less.
fn scopes(text: &str) -> Result<Scopes, String> {
    let names = || Scope::ALL.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", ");
    text.split([',', ' '])
        .map(|name| {
            let found = Scope::ALL.iter().copied().find(|scope| scope.as_str() == name);
            found.ok_or_else(|| format!("`{name}` is none of {}", names()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cmd::args::{Cli, Command, Remote};

    fn parse(args: &[&str]) -> Result<Command, clap::error::ErrorKind> {
        Cli::try_parse_from(std::iter::once("wakeful").chain(args.iter().copied()))
            .map(|cli| cli.command)
            .map_err(|error| error.kind())
    }

    #[test]
    fn a_host_takes_agents_by_name_and_command() {
        let args = [
            "envd",
            "--workspace",
            "/w",
            "--agent",
            "a=x --y=z",
            "--agent",
            "b-2=b",
            "--label",
            "L",
        ];
        let Ok(Command::Envd(envd)) = parse(&args) else { panic!("not understood") };
        let agents = [("a", "x --y=z"), ("b-2", "b")];
        assert_eq!(envd.agent, agents.map(|(name, command)| (name.to_owned(), command.to_owned())));
        assert_eq!(envd.listen, AloneOptions::LISTEN);
        for wrong in ["a", "=x", "A=x", "shell=x", "a= ", "abcdefghijklmnopqrstuvwxyza=x"] {
            assert!(parse(&["envd", "--workspace", "/w", "--agent", wrong]).is_err(), "{wrong}");
        }
        let address = "--public-address";
        assert!(parse(&["envd", "--workspace", "/w", address, "https://a.example/h"]).is_ok());
        assert!(parse(&["envd", "--workspace", "/w", address, "ftp://a.example"]).is_err());
        assert!(parse(&["envd", "--label", "L"]).is_err(), "without a workspace");
    }

    #[test]
    fn scopes_are_named_one_by_one_and_never_dropped() {
        assert_eq!(scopes("write,read").unwrap().to_string(), "read write");
        assert!(scopes("read,wriet").unwrap_err().contains("`wriet` is none of read, write"));
        assert!(scopes("").is_err());
    }

    #[test]
    fn what_belongs_to_a_new_thread_is_refused_for_an_old_one() {
        use clap::error::ErrorKind::ArgumentConflict;
        let Ok(Command::Remote(Remote::Send(send))) = parse(&["send", "Site", "-v is broken"])
        else {
            panic!("not understood")
        };
        assert_eq!(send.text, "-v is broken");
        for more in [["--agent", "a"], ["--title", "t"], ["--directory", "d"]] {
            let args = [&["send", "Site", "x", "--thread", "0199"], &more[..]].concat();
            assert_eq!(parse(&args).unwrap_err(), ArgumentConflict, "{more:?}");
        }
        let both = ["send", "Site", "x", "--wait", "--attach"];
        assert_eq!(parse(&both).unwrap_err(), ArgumentConflict);
    }

    #[test]
    fn pairing_lists_forgets_offers_or_enters() {
        for good in [
            &["pair"][..],
            &["pair", "http://10.0.0.2:7880"],
            &["pair", "http://10.0.0.2:7880", "ABCD-EFGH", "--name", "lab"],
            &["pair", "--list"],
            &["pair", "--forget", "lab"],
            &["pair", "--scopes", "read", "--workspace", "/w"],
        ] {
            assert!(parse(good).is_ok(), "{good:?}");
        }
        for bad in [
            &["pair", "--list", "--forget", "lab"][..],
            &["pair", "http://10.0.0.2:7880", "CODE", "--list"],
            &["pair", "http://10.0.0.2:7880", "CODE", "--scopes", "read"],
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn all_lists_can_be_watched_and_one_can_be_woken() {
        assert!(parse(&["threads", "--watch"]).is_ok());
        assert!(parse(&["threads", "--wake"]).is_err());
        assert!(parse(&["threads", "Site", "--watch", "--all", "--wake"]).is_ok());
        assert!(parse(&["threads", "--settled", "--limit", "200"]).is_ok());
        assert!(parse(&["threads", "--search", "contact page"]).is_ok());
        assert!(parse(&["status", "Site", "--watch"]).is_ok());
        for limit in ["0", "1001", "many"] {
            assert!(parse(&["threads", "--settled", "--limit", limit]).is_err(), "{limit}");
        }
        for both in [["--settled", "--watch"], ["--settled", "--all"]] {
            assert!(parse(&[&["threads"], &both[..]].concat()).is_err(), "{both:?}");
        }
    }
}
