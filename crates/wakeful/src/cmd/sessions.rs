//! `sessions`: who can enter a host, and the end of it.

use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::json;
use wakeful_client::clock::now;
use wakeful_wire::{
    HostSessionId,
    rpc::{Call, Empty, SessionItem, SessionList, SessionRevoke},
};

use super::{
    args::SessionsArgs,
    hosts::{Tries, call, connected, failed},
    short,
    threads::{ago, coarse},
    which,
};
use crate::{
    client::Client,
    connect::Reached,
    output::{self, Output},
};

/// `wakeful sessions`.
pub(super) async fn sessions(
    url: Option<&str>,
    client: impl FnOnce() -> anyhow::Result<Client>,
    options: SessionsArgs,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let reached = which::choose(client, &options.env).await?.reach(url).await?;
    let ended = run(&reached, &options, output).await;
    reached.client.close().await;
    ended
}

async fn run(
    reached: &Reached,
    options: &SessionsArgs,
    output: Output,
) -> anyhow::Result<ExitCode> {
    connected(reached, Tries::First).await?;
    if options.revoke_others {
        ask(reached, Call::SessionRevokeOthers(Empty {})).await?;
        output.print(&json!({ "revoked": "others" }), |_| {
            "Every other session has ended.".to_owned()
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(text) = &options.revoke {
        let id = match text.parse::<HostSessionId>() {
            Ok(id) => id,
            Err(_) => {
                let command = format!("wakeful sessions {}", options.env);
                let ids = list(reached).await?.sessions.into_iter().map(|session| session.id);
                short::find(ids, text, "session", &command)?
            }
        };
        ask(reached, Call::SessionRevoke(SessionRevoke { session: id })).await?;
        output.print(&json!({ "revoked": id }), |_| format!("Session {id} has ended."))?;
        return Ok(ExitCode::SUCCESS);
    }
    output.print(&list(reached).await?, table)?;
    Ok(ExitCode::SUCCESS)
}

/// Does something to sessions, once.
async fn ask(reached: &Reached, asked: Call) -> anyhow::Result<()> {
    let host = reached.host;
    let answer = call(reached, |link, now| link.call(now, host, asked)).await;
    answer.map_err(|refused| failed(reached, refused.failure))?;
    Ok(())
}

/// A host tells its sessions by a subscription, of which the first item is all of them.
async fn list(reached: &Reached) -> anyhow::Result<SessionList> {
    let host = reached.host;
    let asked = Call::SessionSubscribe(Empty {});
    let first = call(reached, |link, now| link.first(now, host, asked)).await;
    let first = first.map_err(|refused| failed(reached, refused.failure))?;
    match serde_json::from_value(first).context("the host's answer cannot be read")? {
        SessionItem::Snapshot { sessions } => Ok(SessionList { sessions }),
        SessionItem::Change { .. } | SessionItem::Unknown => {
            anyhow::bail!("the host's answer cannot be read")
        }
    }
}

fn table(list: &SessionList) -> String {
    let now = now();
    let length = short::length(list.sessions.iter().map(|session| session.id));
    let rows: Vec<[String; 7]> = list
        .sessions
        .iter()
        .map(|session| {
            let connected = match (session.connections, session.last_connected_at) {
                (0, None) => "never".to_owned(),
                (0, Some(at)) => ago(at, now),
                (1, _) => "now".to_owned(),
                (many, _) => format!("now, {many} times"),
            };
            let expires = if session.expires_at > now {
                format!("in {}", coarse(now.until(session.expires_at)))
            } else {
                "expired".to_owned()
            };
            [
                short::id(session.id, length),
                session.label.clone(),
                session.subject.to_string(),
                session.method.as_str().to_owned(),
                session.scopes.to_string(),
                connected,
                expires,
            ]
        })
        .collect();
    output::table(["SESSION", "CLIENT", "USER", "BY", "SCOPES", "CONNECTED", "EXPIRES"], &rows)
}

#[cfg(test)]
mod tests {
    use wakeful_wire::{
        Timestamp,
        host::{Scopes, SessionMethod, SessionView},
    };

    use super::*;

    #[test]
    fn a_session_says_whose_it_is_and_when_it_ends() {
        let session = |connections, last_connected_at, expires_at| SessionView {
            id: "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f".parse().unwrap(),
            subject: "ada".parse().unwrap(),
            scopes: Scopes::all(),
            method: SessionMethod::Pairing,
            label: "terminal on lab\u{1b}".to_owned(),
            issued_at: Timestamp(0),
            expires_at,
            last_connected_at,
            connections,
        };
        let later = Timestamp(now().0 + 7_230_000);
        let sessions = vec![
            session(0, None, Timestamp(1)),
            session(1, Some(Timestamp(0)), later),
            session(3, Some(Timestamp(0)), later),
        ];
        let text = table(&SessionList { sessions });
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("SESSION   CLIENT"), "{text}");
        assert!(lines[1].contains("never") && lines[1].ends_with("expired"), "{text}");
        assert!(lines[2].contains("ada") && lines[2].contains("pairing"), "{text}");
        assert!(lines[2].contains(" now ") && lines[2].ends_with("in 2h"), "{text}");
        assert!(lines[3].contains("now, 3 times") && !text.contains('\u{1b}'), "{text}");
    }
}
