//! The commands: what each takes, and where it is carried out.
//!
//! `up`, `envd` and the daemons inside a sandbox run here; every other command speaks to a server over its
//! public API, as anybody's program can.

mod account;
mod alone;
pub mod args;
pub mod attach;
mod backoff;
mod environment;
mod files;
mod hosts;
mod local;
mod pair;
mod project;
mod prompt;
mod select;
mod send;
mod sessions;
mod short;
mod status;
mod stream;
mod threads;
mod variables;
mod which;

use std::{io::IsTerminal as _, process::ExitCode};

use clap::{CommandFactory as _, FromArgMatches as _};

use wakeful_wire::{Problem, sandbox::subcommand};

use crate::{
    client::{Client, ClientError},
    output::{Output, to_stderr},
};
use args::{AttachCommand, Cli, Command, Remote};
use hosts::failure::HostFailure;

/// Parses the process's arguments, runs the command, and says how the process ends: 0 when it
/// worked, 1 when it did not, 2 when it was not understood.
#[must_use]
pub fn main() -> ExitCode {
    // What runs inside a sandbox must come first: it needs a process that has done nothing yet,
    // and takes arguments that are no flags of ours.
    let mut args = std::env::args_os().skip(1);
    match args.next().as_deref().and_then(std::ffi::OsStr::to_str) {
        // With arguments it is a host of its own, for people.
        Some(subcommand::ENVD) if args.next().is_none() => {
            if std::io::stdin().is_terminal() {
                return alone::help();
            }
            return wakeful_envd::main_blocking(std::io::stdin());
        }
        Some(subcommand::SHIM) => return wakeful_envd::exec_shim(args),
        Some(subcommand::TETHER) => return wakeful_envd::agent::tether(args),
        Some(subcommand::PROBE) => {
            return wakeful_envd::probe_isolation(std::io::stdin(), std::io::stdout());
        }
        Some(_) | None => {}
    }
    let matches = match Cli::command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            // Help and version are "errors" that belong on standard output and end well.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(2);
        }
    };
    let output = Output { json: cli.json };
    match run(cli) {
        Ok(code) => code,
        Err(error) => fail(output, &error),
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let output = Output { json: cli.json };
    match cli.command {
        Command::Up(up) => local::up(*up),
        Command::Envd(options) => alone::run(options),
        Command::Demo => local::demo(),
        Command::Reference { page } => local::reference(output, page),
        Command::Config(command) => local::config(output, command),
        Command::Doctor(options) => local::doctor(output, &options),
        Command::Remote(command) => {
            // The one place where a provider of cryptography is chosen for the process.
            let _ = rustls::crypto::ring::default_provider().install_default();
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?
                .block_on(remote(command, cli.url, output))
        }
    }
}

/// Commands that speak to a server.
async fn remote(command: Remote, url: Option<String>, output: Output) -> anyhow::Result<ExitCode> {
    let variables = crate::env::snapshot();
    let client = || Client::signed_in(url.as_deref(), &variables);
    match command {
        Remote::Login(options) => account::login(options, &variables, output).await,
        Remote::Signup(options) => account::sign_up(options, &variables, output).await,
        Remote::Logout => account::logout(url.as_deref(), &variables, output).await,
        Remote::Whoami => account::whoami(&client()?, output).await,
        Remote::Tokens(options) => account::tokens(&client()?, options, output).await,
        Remote::Projects(options) => project::projects(&client()?, options, output).await,
        Remote::Rm { project } => project::remove(&client()?, &project, output).await,
        Remote::Restore { project } => project::restore(&client()?, &project, output).await,
        Remote::Templates => project::templates(&client()?, output).await,
        Remote::Envs => environment::list(&client()?, output).await,
        Remote::Open(options) => environment::open(&client()?, options, output).await,
        Remote::Wake(options) => environment::wake(&client()?, options, output).await,
        Remote::Suspend(options) => environment::suspend(&client()?, options, output).await,
        Remote::Restart(options) => environment::restart(&client()?, options, output).await,
        Remote::Extend(options) => environment::extend(&client()?, options, output).await,
        Remote::Explain { env } => environment::explain(&client()?, &env, output).await,
        Remote::Threads(options) => threads::threads(url.as_deref(), client, options, output).await,
        Remote::Status(options) => status::status(url.as_deref(), client, options, output).await,
        Remote::Attach(options) => attached(url.as_deref(), client, options, output).await,
        Remote::Send(options) => send::send(url.as_deref(), client, options, output).await,
        Remote::Pair(options) => pair::pair(options, output).await,
        Remote::Sessions(options) => {
            sessions::sessions(url.as_deref(), client, options, output).await
        }
        Remote::Logs(options) => stream::logs(&client()?, options, output).await,
        Remote::Events { project } => stream::events(&client()?, project, output).await,
        Remote::Upload(options) => files::upload(&client()?, options, output).await,
        Remote::Download(options) => files::download(&client()?, options, output).await,
        Remote::Vars(options) => variables::run(&client()?, options, output).await,
        Remote::Openapi => stream::openapi(url.as_deref(), &variables, output).await,
    }
}

/// `wakeful attach`.
async fn attached(
    url: Option<&str>,
    client: impl FnOnce() -> anyhow::Result<Client>,
    options: AttachCommand,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let reached = which::choose(client, &options.env).await?.reach(url).await?;
    let thread = options.thread.as_deref();
    let ended = attach::attach(output, url, &reached, thread, &options.how).await;
    reached.client.close().await;
    ended
}

/// What a server said, where it said something.
fn problem(error: &anyhow::Error) -> Option<&Problem> {
    error.downcast_ref::<ClientError>().and_then(ClientError::problem)
}

/// Says on standard error why a command failed.
fn fail(output: Output, error: &anyhow::Error) -> ExitCode {
    if error.chain().any(is_closed_pipe) {
        // Whoever read our output has what they wanted, as in `wakeful envs | head -1`.
        return ExitCode::SUCCESS;
    }
    if output.json {
        let value = match (problem(error), error.downcast_ref::<HostFailure>()) {
            (Some(problem), _) => serde_json::json!(problem),
            (None, Some(failure)) => failure.json(),
            (None, None) => {
                serde_json::json!({ "title": "Failed", "detail": format!("{error:#}") })
            }
        };
        to_stderr(&value.to_string());
    } else {
        to_stderr(&format!("error: {error:#}"));
    }
    ExitCode::FAILURE
}

fn is_closed_pipe(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
