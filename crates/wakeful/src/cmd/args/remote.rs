//! What the commands take that speak to a server.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{AttachCommand, PairArgs, SendArgs, SessionsArgs, StatusArgs, ThreadsArgs};

/// What is asked of a server.
#[derive(Debug, Subcommand)]
pub enum Remote {
    /// Sign in to a server and keep a token for it
    #[command(after_help = "\
Examples:
  wakeful login http://wakeful.localhost:7878 --user ada
  wakeful login https://agents.example.org --user ada --token wk_…
  pass agents | wakeful login https://agents.example.org --user ada --password-stdin

Without --token and --password-stdin it asks for the password. The token is kept in
$XDG_CONFIG_HOME/wakeful/credentials.json, which only you can read.")]
    Login(LoginArgs),

    /// Make an account on a server and sign in to it
    #[command(after_help = "\
Example:
  wakeful signup http://wakeful.localhost:7878 --user ada")]
    Signup(SignupArgs),

    /// Sign out and forget the stored token
    Logout,

    /// Who you are to the server
    Whoami,

    /// List, make and revoke tokens
    Tokens(TokensArgs),

    /// List, create and delete projects
    #[command(after_help = "\
Examples:
  wakeful projects
  wakeful projects create 'My site' --template demo
  wakeful projects list --deleted
  wakeful projects rm 'My site'")]
    Projects(ProjectsArgs),

    /// List environments
    Envs,

    /// Print an environment's address and open it in the browser
    #[command(after_help = "\
Examples:
  wakeful open 'My site'             its home surface
  wakeful open 'My site' db          its surface db
  wakeful open 'My site' --print     the address alone")]
    Open(OpenArgs),

    /// Wake an environment and wait until it is ready
    Wake(WaitArgs),

    /// Put an environment to sleep and wait until it sleeps
    Suspend(WaitArgs),

    /// Stop an environment's programs and start them anew
    Restart(WaitArgs),

    /// Keep an environment awake for longer
    #[command(after_help = "\
Examples:
  wakeful extend 'My site'               an hour from now
  wakeful extend 'My site' --for 2h30m")]
    Extend(ExtendArgs),

    /// Say why an environment is awake and when it will sleep
    Explain {
        /// The environment: id, beginning of an id, project's title, or PROJECT/SLUG
        env: String,
    },

    /// List the threads of environments and paired hosts
    #[command(after_help = "\
Examples:
  wakeful threads                    of every environment and every paired host
  wakeful threads --watch            the same, followed; with --json a line for each change
  wakeful threads 'My site' --wake   wake it, if it sleeps
  wakeful threads lab --all          of the paired host lab, with everything that is put aside
  wakeful threads --settled          those that are done with, of all hosts, newest first
  wakeful threads --search 'contact page'
A sleeping environment is shown as asleep and left so. What is shown of a host that sleeps or cannot
be reached is as it was when it was last seen, and says so; hosts that can answer are waited for, for
ten seconds at most.")]
    Threads(ThreadsArgs),

    /// Show what the connection to each environment and paired host is doing, and why
    #[command(after_help = "\
Examples:
  wakeful status                     every environment and every paired host in a line
  wakeful status 'My site'           all that is known of one
  wakeful status --watch             followed; with --json a line for each change
It connects as every other command does, and shows what comes of it: the environment's phase, how far
the connection is, by which way, why it is not there, and when it is tried again. It wakes nothing.")]
    Status(StatusArgs),

    /// Follow a thread, answer its agent and write to it
    #[command(after_help = "\
Examples:
  wakeful attach 'My site'
  wakeful attach 'My site' 0199f0a0
  wakeful attach 'My site' --wake          wake it, now and whenever it falls asleep
  wakeful attach lab --until-idle          end when there is nothing left to do

At a terminal the bottom row says how it stands with the host: live, trying again in 12 s and why,
asleep. What was kept of the thread is shown at once and marked until the host has confirmed it.
Lines are prompts for the agent; one that is typed while the host is away is sent, once, when it is
back. /help lists what else can be told: /threads and /switch, /queue, /allow and /deny, /cancel,
/older, /retry, /wake. Ctrl-C ends the running turn, twice it leaves.
It ends with 3 when the environment sleeps and nobody is there to wake it.")]
    Attach(AttachCommand),

    /// Send a prompt to an agent; a sleeping environment is woken for it
    #[command(after_help = "\
Examples:
  wakeful send 'My site' 'Add a contact page'
  wakeful send 'My site' --thread 0199f0a0 'And a map' --wait
  wakeful send 'My site' --agent shell --directory web 'make test' --attach
  git diff | wakeful send 'My site' -
It prints the thread's id as soon as the prompt is delivered. A prompt for an environment is kept by
the server: once it is taken it is delivered, even if this command is ended. It is delivered once,
however often this command had to try.")]
    Send(SendArgs),

    /// Pair with a host of its own, or get a code for the one that runs here
    #[command(after_help = "\
Examples:
  wakeful pair                                        here, where `wakeful envd` runs: a code
  wakeful pair http://192.168.1.7:7880 ABCD-EFGH      there: pair with it
  wakeful pair http://192.168.1.7:7880 --name lab     the same, and ask for the code
  wakeful pair --scopes read                          a code for somebody who may only look
  wakeful pair --list
  wakeful pair --forget lab
A code is good once, for some minutes. What may be done: read, write, approve, terminal, sessions.")]
    Pair(PairArgs),

    /// List and end the sessions of a host: who can see and steer its threads
    #[command(after_help = "\
Examples:
  wakeful sessions 'My site'
  wakeful sessions lab --revoke 0199f0a0
  wakeful sessions lab --revoke-others
A sleeping environment is woken. What a session that has ended had is worth nothing from then on.")]
    Sessions(SessionsArgs),

    /// Print the logs of an environment's programs
    #[command(after_help = "\
Examples:
  wakeful logs 'My site' --tail 50
  wakeful logs 'My site' --surface app -f")]
    Logs(LogsArgs),

    /// Copy files and directories into an environment's workspace
    #[command(after_help = "\
Examples:
  wakeful upload 'My site' index.html style.css
  wakeful upload 'My site' ./public --to site      becomes site/public/…
  wakeful upload 'My site' ./public/ --to site     becomes site/…
It works whether or not the environment is awake.")]
    Upload(UploadArgs),

    /// Copy a file out of an environment's workspace
    #[command(after_help = "\
Examples:
  wakeful download 'My site' report.csv
  wakeful download 'My site' data/report.csv -o /tmp/report.csv
  wakeful download 'My site' notes.txt -o -        to standard output")]
    Download(DownloadArgs),

    /// Delete a project; `restore` undoes it for some days
    Rm {
        /// The project: id, beginning of an id, or title
        project: String,
    },

    /// Bring a deleted project back
    Restore {
        /// The project: id, beginning of an id, or title
        project: String,
    },

    /// List, set and remove an environment's variables and secrets
    #[command(after_help = "\
Examples:
  wakeful vars 'My site'
  wakeful vars 'My site' set GREETING=hello MODE=fast
  printf %s \"$KEY\" | wakeful vars 'My site' set API_KEY --secret
  wakeful vars 'My site' unset GREETING
Programs see a change when the environment starts the next time.")]
    Vars(VarsArgs),

    /// List the templates that a project can be made from
    Templates,

    /// Follow phase changes and the progress of long work
    Events {
        /// Only this project's: id, beginning of an id, or title
        project: Option<String>,
    },

    /// Print the server's OpenAPI document
    Openapi,
}

/// Signing in.
#[derive(Debug, Args)]
pub struct LoginArgs {
    /// The server's address.
    #[arg(value_name = "URL", help = "The server, such as http://wakeful.localhost:7878")]
    pub server: String,
    /// Your name there
    #[arg(long, value_name = "NAME")]
    pub user: String,
    /// A token made on the account page or by `wakeful tokens create`
    #[arg(long, value_name = "TOKEN", conflicts_with = "password_stdin")]
    pub token: Option<String>,
    /// Read the password from standard input
    #[arg(long)]
    pub password_stdin: bool,
}

/// Signing up.
#[derive(Debug, Args)]
pub struct SignupArgs {
    /// The server's address.
    #[arg(value_name = "URL", help = "The server, such as http://wakeful.localhost:7878")]
    pub server: String,
    /// The name to take: lower-case letters, digits and dashes
    #[arg(long, value_name = "NAME")]
    pub user: String,
    /// Read the password from standard input
    #[arg(long)]
    pub password_stdin: bool,
    /// Take no password: only tokens sign in
    #[arg(long, conflicts_with = "password_stdin")]
    pub no_password: bool,
}

/// `wakeful tokens`.
#[derive(Debug, Args)]
pub struct TokensArgs {
    /// What to do with them; lists them where absent.
    #[command(subcommand)]
    pub what: Option<TokensWhat>,
}

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub enum TokensWhat {
    /// List them
    List,
    /// Make one and print it, once
    Create {
        /// What it is for
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Revoke one
    Rm {
        /// Its id, as listed
        id: String,
    },
}

/// `wakeful projects`.
#[derive(Debug, Args)]
pub struct ProjectsArgs {
    /// What to do with them; lists them where absent.
    #[command(subcommand)]
    pub what: Option<ProjectsWhat>,
}

/// What to do with projects.
#[derive(Debug, Subcommand)]
pub enum ProjectsWhat {
    /// List them
    List {
        /// Those that can be restored, instead
        #[arg(long)]
        deleted: bool,
    },
    /// Make one
    Create {
        /// Its title
        title: String,
        /// What its environment runs [default: the server's default template]
        #[arg(long, value_name = "NAME")]
        template: Option<String>,
    },
    /// Delete one; `restore` undoes it for some days
    Rm {
        /// The project: id, beginning of an id, or title
        project: String,
    },
}

/// `wakeful open`.
#[derive(Debug, Args)]
pub struct OpenArgs {
    /// The environment: id, beginning of an id, project's title, or PROJECT/SLUG
    pub env: String,
    /// Which surface [default: the template's home]
    pub surface: Option<String>,
    /// Only print the address
    #[arg(long)]
    pub print: bool,
}

/// Commands that change a phase.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// The environment: id, beginning of an id, project's title, or PROJECT/SLUG
    pub env: String,
    /// Do not wait until it is done
    #[arg(long)]
    pub no_wait: bool,
    /// How long to wait at most
    #[arg(long, value_name = "DURATION", default_value = "3m", value_parser = duration)]
    pub timeout: std::time::Duration,
}

fn duration(text: &str) -> Result<std::time::Duration, String> {
    crate::config::duration::parse(text).map_err(|why| format!("it {why}, for example 30m"))
}

/// `wakeful extend`.
#[derive(Debug, Args)]
pub struct ExtendArgs {
    /// The environment: id, beginning of an id, project's title, or PROJECT/SLUG
    pub env: String,
    /// For how long from now, in whole minutes up to a day
    #[arg(long = "for", value_name = "DURATION", default_value = "1h", value_parser = duration)]
    pub length: std::time::Duration,
}

/// `wakeful logs`.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// The environment: id, beginning of an id, project's title, or PROJECT/SLUG
    pub env: String,
    /// Which surface's program [default: the template's home]
    #[arg(long, value_name = "NAME")]
    pub surface: Option<String>,
    /// How many of the last lines
    #[arg(long, value_name = "LINES")]
    pub tail: Option<u32>,
    /// Go on with what is written from now on
    #[arg(short, long)]
    pub follow: bool,
}

/// `wakeful upload`.
#[derive(Debug, Args)]
pub struct UploadArgs {
    /// The project: id, beginning of an id, or title
    pub project: String,
    /// Files and directories
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// The directory of the workspace to put them in [default: its root]
    #[arg(long, value_name = "DIR")]
    pub to: Option<String>,
}

/// `wakeful download`.
#[derive(Debug, Args)]
pub struct DownloadArgs {
    /// The project: id, beginning of an id, or title
    pub project: String,
    /// The file's path in the workspace
    pub path: String,
    /// Where to write it; `-` for standard output [default: the file's own name, here]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write over a file that exists
    #[arg(long)]
    pub force: bool,
}

/// `wakeful vars`.
#[derive(Debug, Args)]
pub struct VarsArgs {
    /// The environment: id, beginning of an id, project's title, or PROJECT/SLUG
    pub env: String,
    /// What to do with them; lists them where absent.
    #[command(subcommand)]
    pub what: Option<VarsWhat>,
}

/// What to do with variables.
#[derive(Debug, Subcommand)]
pub enum VarsWhat {
    /// List them; secrets without their values
    List,
    /// Set some
    Set {
        /// NAME=VALUE; with --secret one NAME, its value on standard input
        #[arg(required = true, value_name = "NAME=VALUE")]
        variables: Vec<String>,
        /// Keep the value secret: it is never shown again, and read from standard input so that
        /// it is in no history and no process list
        #[arg(long)]
        secret: bool,
    },
    /// Remove some
    Unset {
        /// Their names
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}
