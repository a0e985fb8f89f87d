//! The thread that a person means.

use wakeful_link::DataStatus;
use wakeful_wire::rpc::ThreadId;

use super::{
    super::{
        hosts::{self, Tries, connected, until},
        short,
    },
    PATIENCE,
};
use crate::connect::{self, Reached};

/// The thread that `text` is the id of, or the beginning of one. A whole id is not looked up. The
/// host is woken for it.
///
/// # Errors
/// The list cannot be had, or no thread fits, or several do.
pub(in crate::cmd) async fn find(
    url: Option<&str>,
    reached: &Reached,
    env: &str,
    text: &str,
) -> anyhow::Result<ThreadId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    // A list that leaves threads out does not show that only one fits.
    let client = connect::client(connect::Options {
        url: url.map(str::to_owned),
        focus: Some(vec![reached.host]),
        keep_alive: false,
        whole_lists: true,
    })
    .await?;
    let whole = Reached { client, ..reached.clone() };
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
    let late = || {
        let detail = "Its list does not come.";
        Err(wakeful_link::Failure::new(wakeful_link::FailureReason::Timeout, detail))
    };
    let ids = ids.unwrap_or_else(late).map_err(|failure| hosts::failed(whole, failure))?;
    let list = format!("wakeful threads {env} --all");
    short::find(ids, text, "thread", &list)
}
