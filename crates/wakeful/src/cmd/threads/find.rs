//! The thread that a person means.

use wakeful_link::{DataStatus, Failure, FailureReason};
use wakeful_wire::{HostId, rpc::ThreadId};

use super::{
    super::{
        hosts::{self, Tries, connected, until},
        short,
    },
    PATIENCE,
};
use crate::connect::{self, Reached};

/// The thread that `text` is the id of, or the beginning of one, among all that the host has. A
/// whole id is not looked up. The host is woken for it. `place` is the host and what it is called,
/// `env` how a person named it.
///
/// # Errors
/// The list cannot be had, or no thread fits, or several do.
pub(in crate::cmd) async fn find_unlisted(
    url: Option<&str>,
    place: (HostId, String),
    env: &str,
    text: &str,
) -> anyhow::Result<ThreadId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    // A list that leaves threads out does not show that only one fits.
    let client = connect::client(connect::Options {
        url: url.map(str::to_owned),
        focus: Some(vec![place.0]),
        keep_alive: false,
        whole_lists: true,
    })
    .await?;
    let (host, name) = place;
    let whole = Reached { client, host, name };
    let found = look(&whole, env, text).await;
    whole.client.close().await;
    found
}

async fn look(whole: &Reached, env: &str, text: &str) -> anyhow::Result<ThreadId> {
    connected(whole, Tries::First).await?;
    let host = whole.host;
    let ids = until(&whole.client, PATIENCE, |link, _| {
        let shell = link.shell(host)?;
        if let Some(error) = &shell.error {
            return Some(Err(error.clone()));
        }
        let list = shell.list.as_ref().filter(|_| shell.status == DataStatus::Live)?;
        Some(Ok(list.rows().map(|row| row.id).collect::<Vec<_>>()))
    })
    .await;
    let late = || Err(Failure::new(FailureReason::Timeout, "Its list does not come."));
    let ids = ids.unwrap_or_else(late).map_err(|failure| hosts::failed(whole, failure))?;
    let list = format!("wakeful threads {env} --all");
    short::find(ids, text, "thread", &list)
}
