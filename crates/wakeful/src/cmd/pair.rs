//! `pair`: entering a host of its own by the code that it shows, and asking the one that runs here
//! for such a code.

use std::{io::IsTerminal as _, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, bail};
use serde_json::json;
use wakeful_client::{clock::now, credentials::PairedHost, pairing::Pairing};
use wakeful_envd::alone::ask::{Local, Status};

use super::{args::PairArgs, prompt, threads::coarse, which::PAIRED};
use crate::{
    connect, env,
    output::{self, Output, printable},
};

/// `wakeful pair`.
pub(super) async fn pair(options: PairArgs, output: Output) -> anyhow::Result<ExitCode> {
    if options.list {
        return list(output);
    }
    if let Some(name) = &options.forget {
        return forget(name, output).await;
    }
    match &options.address {
        Some(address) => enter(address, &options, output).await,
        None => offer(&options, output).await,
    }
}

/// What is shown of a paired host: never its secret.
fn shown(host: &PairedHost) -> serde_json::Value {
    json!({ "name": host.name, "address": host.address, "host": host.host })
}

fn list(output: Output) -> anyhow::Result<ExitCode> {
    let hosts = connect::paired()?.list()?;
    output.print(&hosts.iter().map(shown).collect::<Vec<_>>(), |_| {
        let rows: Vec<_> = hosts
            .iter()
            .map(|host| [host.name.clone(), host.address.clone(), host.host.to_string()])
            .collect();
        output::table(["NAME", "ADDRESS", "HOST"], &rows)
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn forget(name: &str, output: Output) -> anyhow::Result<ExitCode> {
    let name = name.strip_prefix(PAIRED).unwrap_or(name);
    let hosts = connect::paired()?;
    let known = hosts.find(name)?.map(|host| host.host);
    let Some(known) = known else {
        bail!("no paired host is called `{}`; `wakeful pair --list` lists them", printable(name));
    };
    // First what opens the host: without it nothing else of it is taken up again.
    hosts.forget(known)?;
    connect::clear(known).await;
    output.print(&json!({ "forgotten": name }), |_| {
        format!(
            "{} is forgotten here. The session stays on its side until somebody ends it there.",
            printable(name)
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Pairs with a host.
async fn enter(address: &str, options: &PairArgs, output: Output) -> anyhow::Result<ExitCode> {
    let code = match &options.code {
        Some(code) => code.clone(),
        None if std::io::stdin().is_terminal() => prompt::from_terminal("Code")?,
        None => prompt::from_stdin()?,
    };
    let (hosts, key) = (connect::paired()?, connect::key()?);
    let pairing = Pairing { hosts: &hosts, key: &key, label: connect::label() };
    let host = match pairing.enter(address, &code, options.name.as_deref()).await {
        Ok(host) => host,
        Err(error) => bail!("{}", printable(&format!("{error:#}"))),
    };
    output.print(&shown(&host), |_| {
        let name = &host.name;
        format!(
            "Paired with {name} at {}.\n\n  wakeful threads {name}\n  wakeful send {name} 'Hello'",
            host.address
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Asks the host of this machine for a code.
async fn offer(options: &PairArgs, output: Output) -> anyhow::Result<ExitCode> {
    let state = state(options.state.clone())?;
    let running = Local::running(&state).await;
    let here = match &options.workspace {
        Some(workspace) => {
            let whole = workspace
                .canonicalize()
                .with_context(|| format!("{} is no workspace", workspace.display()))?;
            Some(whole)
        }
        None => None,
    };
    let beside = std::env::current_dir().ok();
    let (local, status) = pick(running, here, beside)?;
    let offered = local.offer(options.name.clone(), options.scopes.clone()).await?;
    let command = format!("wakeful pair {} {}", offered.address, offered.code);
    let value = json!({
        "label": status.label, "workspace": status.workspace, "address": offered.address,
        "code": offered.code, "expires_at": offered.expires_at, "command": command,
    });
    output.print(&value, |_| {
        let left = coarse(now().until(offered.expires_at));
        let label = printable(&status.label);
        format!("To connect to {label} from elsewhere, within {left}, once:\n\n    {command}")
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The host that is meant: of the workspace that was named, else the only one, else the one whose
/// workspace one stands in.
fn pick<L>(
    mut running: Vec<(L, Status)>,
    named: Option<PathBuf>,
    beside: Option<PathBuf>,
) -> anyhow::Result<(L, Status)> {
    let wanted = match (named, running.len()) {
        (None, 0) => bail!("no host runs here: `wakeful envd --workspace DIR` starts one"),
        (None, 1) => return Ok(running.remove(0)),
        (Some(named), _) => Some(named),
        (None, _) => beside,
    };
    // The deepest, where one workspace is inside of another.
    let fitting =
        |status: &Status| wanted.as_ref().is_some_and(|at| at.starts_with(&status.workspace));
    let found = (0..running.len())
        .filter(|index| fitting(&running[*index].1))
        .max_by_key(|index| running[*index].1.workspace.components().count());
    match found {
        Some(index) => Ok(running.swap_remove(index)),
        None => {
            let all: Vec<_> =
                running.iter().map(|(_, status)| status.workspace.display().to_string()).collect();
            let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
            bail!("name the host by --workspace; hosts run here for: {}", printable(&all))
        }
    }
}

/// The state directory of hosts of their own.
///
/// # Errors
/// None was named and there is no place for one.
pub(super) fn state(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let state = named.or_else(env::state_dir).context(
        "there is no place for a host's state: set HOME or XDG_STATE_HOME, or give --state",
    )?;
    std::path::absolute(&state).with_context(|| format!("{} is no directory", state.display()))
}

#[cfg(test)]
mod tests {
    use wakeful_wire::HostId;

    use super::*;

    fn running(workspaces: &[&str]) -> Vec<(usize, Status)> {
        let id = HostId::from_uuid(uuid::Uuid::nil());
        let status = |workspace: &&str| Status {
            id,
            label: String::new(),
            workspace: PathBuf::from(workspace),
            address: String::new(),
            pid: 1,
        };
        workspaces.iter().map(status).enumerate().collect()
    }

    #[test]
    fn the_only_host_is_meant_or_the_one_that_is_named_or_stood_in() {
        type Case = (&'static [&'static str], Option<&'static str>, &'static str, Option<usize>);
        let table: [Case; 9] = [
            (&[], None, "/w", None),
            (&["/w"], None, "/elsewhere", Some(0)),
            (&["/w"], Some("/v"), "/w", None),
            (&["/w", "/v"], Some("/v"), "/w", Some(1)),
            (&["/w", "/v"], None, "/v/deep", Some(1)),
            (&["/w", "/w/deep"], None, "/w/deep/er", Some(1)),
            (&["/w/deep", "/w"], None, "/w/other", Some(1)),
            (&["/w", "/v"], None, "/ww", None),
            (&[], Some("/v"), "/v", None),
        ];
        for (workspaces, named, beside, expected) in table {
            let picked = pick(running(workspaces), named.map(PathBuf::from), Some(beside.into()));
            assert_eq!(picked.ok().map(|(index, _)| index), expected, "{workspaces:?} {beside}");
        }
    }
}
