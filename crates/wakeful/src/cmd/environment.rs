//! `envs`, `open`, `wake`, `suspend`, `restart`, `extend` and `explain`.

use std::{io::IsTerminal as _, process::ExitCode, time::Duration};

use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;
use wakeful_wire::{
    EnvId, Phase,
    api::{AwakeBecause, Environment, Explain, SurfaceView},
};

use super::{
    args::{ExtendArgs, OpenArgs, WaitArgs},
    select,
};
use crate::{
    client::Client,
    config::{duration, nearest::suggestion},
    output::{self, Output, printable},
};

/// How often a wait looks again.
const LOOK: Duration = Duration::from_millis(300);

/// What [`AwakeBecause::Clock`] names where somebody has extended the time.
const EXTENDED: &str = "extended";

/// `wakeful envs`.
pub(super) async fn list(client: &Client, output: Output) -> anyhow::Result<ExitCode> {
    let projects = select::projects(client).await?;
    let environments: Vec<&Environment> =
        projects.iter().flat_map(|project| &project.environments).collect();
    output.print(&environments, |_| {
        let rows: Vec<_> = projects
            .iter()
            .flat_map(|project| project.environments.iter().map(move |env| (project, env)))
            .map(|(project, env)| {
                [
                    env.id.to_string(),
                    format!("{}/{}", project.title, env.slug),
                    env.phase.to_string(),
                    sleeps(env),
                ]
            })
            .collect();
        output::table(["ID", "ENVIRONMENT", "PHASE", "SLEEPS"], &rows)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// When an environment sleeps, in a word or two.
fn sleeps(env: &Environment) -> String {
    match env.phase {
        Phase::Ready if !env.leases.is_empty() => "held".to_owned(),
        Phase::Ready => {
            let left = env.clocks.agent.expires_in_ms.max(env.clocks.app.expires_in_ms);
            format!("in {}", rounded(left))
        }
        Phase::Failed => {
            env.failure.as_ref().map(|failure| failure.reason.clone()).unwrap_or_default()
        }
        Phase::Suspended
        | Phase::Starting
        | Phase::Frozen
        | Phase::Suspending
        | Phase::Disabled
        | Phase::Publishing
        | Phase::Deleted => "-".to_owned(),
    }
}

/// A duration of milliseconds in whole seconds, rounded up.
fn rounded(millis: u64) -> String {
    duration::text(Duration::from_secs(millis.div_ceil(1_000)))
}

/// `wakeful open`.
pub(super) async fn open(
    client: &Client,
    options: OpenArgs,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let env = select::find_environment(client, &options.env).await?;
    let surface = match &options.surface {
        Some(name) => surface(&env, name)?,
        None => home(client, &env).await?,
    };
    let shown =
        json!({ "surface": surface.name, "url": surface.url, "path_url": surface.path_url });
    output.print(&shown, |_| surface.url.clone())?;
    if !options.print && !output.json && std::io::stdout().is_terminal() {
        let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        // The address has been printed: a machine without a browser is no failure.
        let _ = std::process::Command::new(opener)
            .arg(&surface.url)
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn();
    }
    Ok(ExitCode::SUCCESS)
}

fn surface(env: &Environment, name: &str) -> anyhow::Result<SurfaceView> {
    let names = || env.surfaces.iter().map(|surface| surface.name.as_str());
    let found = env.surfaces.iter().find(|surface| surface.name.as_str() == name);
    found.cloned().with_context(|| {
        let known: Vec<_> = names().collect();
        format!(
            "there is no surface `{name}`{}; there are: {}",
            suggestion(name, names()),
            known.join(", ")
        )
    })
}

/// The surface that the server names as home, else `agent`, else the first.
async fn home(client: &Client, env: &Environment) -> anyhow::Result<SurfaceView> {
    let id = env.id.to_string();
    let full: Value = client.get(&["api", "environments", &id]).await?;
    let home = full["home"].as_str().unwrap_or("agent");
    let found = env.surfaces.iter().find(|surface| surface.name.as_str() == home);
    let found = found.or_else(|| env.surfaces.first()).cloned();
    found.context("the environment has no surface")
}

/// `wakeful wake`.
pub(super) async fn wake(
    client: &Client,
    options: WaitArgs,
    output: Output,
) -> anyhow::Result<ExitCode> {
    change(client, options, output, "wake", Phase::Ready).await
}

/// `wakeful suspend`.
pub(super) async fn suspend(
    client: &Client,
    options: WaitArgs,
    output: Output,
) -> anyhow::Result<ExitCode> {
    change(client, options, output, "suspend", Phase::Suspended).await
}

/// `wakeful restart`.
pub(super) async fn restart(
    client: &Client,
    options: WaitArgs,
    output: Output,
) -> anyhow::Result<ExitCode> {
    change(client, options, output, "restart", Phase::Ready).await
}

/// Asks for a change of phase and waits for it.
async fn change(
    client: &Client,
    options: WaitArgs,
    output: Output,
    verb: &str,
    goal: Phase,
) -> anyhow::Result<ExitCode> {
    let before = select::find_environment(client, &options.env).await?;
    let id = before.id.to_string();
    let request = client.request(Method::POST, ["api", "environments", &id, verb]);
    let now: Value = client.json(request.json(&json!({}))).await?;
    let asked_for = match now.get("generation").and_then(Value::as_u64) {
        // What is seen from this generation on is the answer to our request.
        Some(generation) => generation,
        None => before.generation.0,
    };
    let env = if options.no_wait {
        fetch(client, before.id).await?
    } else {
        // A restart passes through other phases before it is ready again, with a new sandbox.
        let old = if verb == "restart" { before.sandbox } else { None };
        let done = |env: &Environment| {
            env.phase == goal
                && env.generation.0 >= asked_for
                && (old.is_none() || env.sandbox != old)
        };
        wait(client, before.id, done, goal, options.timeout, output).await?
    };
    output.print(&env, |env| format!("{} is {}.", options.env, env.phase))?;
    Ok(ExitCode::SUCCESS)
}

/// Looks until `done` says so; fails when it cannot come true any more, or time is up.
async fn wait(
    client: &Client,
    id: EnvId,
    done: impl Fn(&Environment) -> bool,
    goal: Phase,
    patience: Duration,
    output: Output,
) -> anyhow::Result<Environment> {
    let deadline = Instant::now() + patience;
    let bar =
        if output.shows_progress() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    bar.set_style(ProgressStyle::default_spinner());
    bar.enable_steady_tick(Duration::from_millis(120));
    loop {
        let env = fetch(client, id).await?;
        if done(&env) {
            bar.finish_and_clear();
            return Ok(env);
        }
        if goal == Phase::Ready && matches!(env.phase, Phase::Failed | Phase::Disabled) {
            bar.finish_and_clear();
            let reason = env.failure.as_ref().map(|failure| printable(&failure.reason));
            let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            bail!("the environment is {}{reason}", env.phase);
        }
        if Instant::now() >= deadline {
            bar.finish_and_clear();
            bail!("it is still {} after {}", env.phase, duration::text(patience));
        }
        bar.set_message(waiting_for(&env));
        tokio::time::sleep(LOOK).await;
    }
}

/// What a person who waits wants to read.
fn waiting_for(env: &Environment) -> String {
    let missing: Vec<_> = env
        .surfaces
        .iter()
        .filter(|surface| !surface.ready)
        .filter_map(|surface| {
            let reason = surface.reason.as_deref()?;
            Some(format!("{}: {}", surface.name, printable(reason)))
        })
        .collect();
    if missing.is_empty() {
        env.phase.to_string()
    } else {
        format!("{} ({})", env.phase, missing.join(", "))
    }
}

async fn fetch(client: &Client, id: EnvId) -> anyhow::Result<Environment> {
    Ok(client.get(&["api", "environments", &id.to_string()]).await?)
}

/// `wakeful extend`.
pub(super) async fn extend(
    client: &Client,
    options: ExtendArgs,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let env = select::find_environment(client, &options.env).await?;
    // A part of a minute is a minute: it never sleeps before it was told to.
    let minutes = options.length.as_secs().div_ceil(60);
    let id = env.id.to_string();
    let body = json!({ "minutes": minutes });
    client.post::<Value>(&["api", "environments", &id, "extend"], &body).await?;
    explain(client, &id, output).await
}

/// `wakeful explain`.
pub(super) async fn explain(
    client: &Client,
    env: &str,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let env = select::find_environment(client, env).await?;
    let id = env.id.to_string();
    let explain: Explain = client.get(&["api", "environments", &id, "explain"]).await?;
    output.print(&explain, describe)?;
    Ok(ExitCode::SUCCESS)
}

fn describe(explain: &Explain) -> String {
    let mut text = format!("{}\n", printable(&explain.sentence));
    for because in &explain.awake_because {
        let line = match because {
            AwakeBecause::Clock { surface, expires_in_ms } if surface == EXTENDED => {
                format!("somebody keeps it awake for another {}", rounded(*expires_in_ms))
            }
            AwakeBecause::Clock { surface, expires_in_ms } => {
                format!("the {surface} clock runs for another {}", rounded(*expires_in_ms))
            }
            AwakeBecause::Lease { surface, what, count, .. } => {
                let plural = if *count == 1 { "" } else { "s" };
                format!("{count} open {}{plural} on {surface}", what.as_str())
            }
        };
        text.push_str(&format!("  - {}\n", printable(&line)));
    }
    text
}

#[cfg(test)]
mod tests {
    use wakeful_wire::{SurfaceName, Timestamp, gate::LeaseKind};

    use super::*;

    #[test]
    fn an_explanation_lists_each_reason() {
        let explain = Explain {
            phase: Phase::Ready,
            awake_because: vec![
                AwakeBecause::Clock { surface: "agent".to_owned(), expires_in_ms: 90_500 },
                AwakeBecause::Clock { surface: "extended".to_owned(), expires_in_ms: 1 },
                AwakeBecause::Lease {
                    surface: SurfaceName::app(),
                    what: LeaseKind::Socket,
                    count: 2,
                    since: Timestamp(0),
                },
            ],
            sleeps_in_ms: None,
            sentence: "Awake.".to_owned(),
        };
        let expected = "Awake.\n  - the agent clock runs for another 1m31s\n  \
                        - somebody keeps it awake for another 1s\n  - 2 open sockets on app\n";
        assert_eq!(describe(&explain), expected);
    }
}
