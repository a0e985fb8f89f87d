//! `threads --watch`: a list that is printed anew whenever it changes.

use std::{io::IsTerminal as _, process::ExitCode, time::Duration};

use tokio::time::Instant;
use wakeful_wire::rpc::{Call, CallId, ServerFrame, ShellSubscribe};

use super::{
    super::{
        backoff::{Backoff, chance},
        which::Chosen,
    },
    list::{List, omissions},
    now, table,
};
use crate::{
    host::{Ended, HostError, HostSocket},
    output::{Output, printable},
};

/// How long changes are gathered before the list is printed.
const GATHERED: Duration = Duration::from_millis(150);
/// How often ages are told anew while nothing changes.
const AGED: Duration = Duration::from_secs(30);
/// The longest pause between two tries to connect.
const PAUSE_MAX: Duration = Duration::from_secs(15);

/// Follows a list until it is interrupted, or refused for good. A sleeping environment is woken at
/// most once, at the beginning, and only if `wake` says so.
pub(super) async fn watch(
    chosen: &Chosen,
    all: bool,
    mut wake: bool,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let host = chosen.host()?;
    let mut shown = Shown { name: chosen.name(), output, last: None };
    let mut list = List::default();
    let mut backoff = Backoff::endless(PAUSE_MAX);
    loop {
        match host.connect(wake).await {
            Ok(mut socket) => {
                wake = false;
                let ended = follow(&mut socket, &mut list, all, &mut backoff, &mut shown).await?;
                shown.say(&ended_because(&ended))?;
            }
            Err(HostError::Asleep { phase }) => {
                let phase = phase.map_or("asleep", wakeful_wire::Phase::as_str);
                shown.say(phase)?;
            }
            Err(error) if error.is_passing() => shown.say(&error.to_string())?,
            Err(error) => return Err(error.into()),
        }
        list.complete = false;
        if let Some(pause) = backoff.pause(chance()) {
            tokio::time::sleep(pause).await;
        }
    }
}

fn ended_because(ended: &Ended) -> String {
    match ended.code {
        Some(4503) => "asleep".to_owned(),
        Some(_) | None => ended.to_string(),
    }
}

/// Follows a list for as long as the socket lasts.
///
/// # Errors
/// The subscription is refused, or nothing can be printed any more.
async fn follow(
    socket: &mut HostSocket,
    list: &mut List,
    all: bool,
    backoff: &mut Backoff,
    shown: &mut Shown,
) -> anyhow::Result<Ended> {
    let mut call = match subscribe(socket, list, all).await {
        Ok(call) => call,
        Err(ended) => return Ok(ended),
    };
    // When the list is to be printed. It only goes on from there when it has been printed.
    let mut due: Option<Instant> = None;
    loop {
        let frame = match due {
            None => socket.next().await,
            Some(at) => match tokio::time::timeout_at(at, socket.next()).await {
                Ok(frame) => frame,
                Err(_) => {
                    shown.list(list)?;
                    due = Some(Instant::now() + AGED);
                    continue;
                }
            },
        };
        match frame {
            Err(ended) => return Ok(ended),
            Ok(ServerFrame::Item { id, item }) if id == call => {
                shown.item(&item)?;
                let Ok(item) = serde_json::from_value(item) else {
                    // Something that changes the list and cannot be read: begun anew, whole.
                    *list = List::default();
                    return Ok(Ended { code: None, reason: "an item cannot be read".to_owned() });
                };
                list.apply(item);
                if list.complete {
                    backoff.reset();
                    let soon = Instant::now() + GATHERED;
                    due = Some(due.map_or(soon, |due| due.min(soon)));
                }
            }
            Ok(ServerFrame::Error { id, problem }) if id == call => {
                return Err(HostError::from(problem).into());
            }
            Ok(ServerFrame::End { id }) if id == call => {
                call = match subscribe(socket, list, all).await {
                    Ok(call) => call,
                    Err(ended) => return Ok(ended),
                };
            }
            Ok(_) => {}
        }
    }
}

async fn subscribe(socket: &mut HostSocket, list: &List, all: bool) -> Result<CallId, Ended> {
    let subscribe = ShellSubscribe { cursor: list.cursor, omit: omissions(all) };
    socket.request(&Call::ShellSubscribe(subscribe)).await
}

/// What is on the screen.
struct Shown {
    name: String,
    output: Output,
    /// The last text: the same is not printed twice.
    last: Option<String>,
}

impl Shown {
    /// A program gets each item as it comes.
    fn item(&self, item: &serde_json::Value) -> anyhow::Result<()> {
        if self.output.json { self.output.line(&item.to_string()) } else { Ok(()) }
    }

    /// A person gets the whole list: on a terminal in the place of the one before.
    fn list(&mut self, list: &List) -> anyhow::Result<()> {
        let table = table::table(&list.rows, list.older_settled.as_ref(), now());
        self.text(format!("{}\n{}", printable(&self.name), super::indented(&table)))
    }

    /// Says why there is nothing to follow.
    fn say(&mut self, why: &str) -> anyhow::Result<()> {
        if self.output.json {
            return Ok(());
        }
        self.text(format!("{}\n  {}\n", printable(&self.name), printable(why)))
    }

    fn text(&mut self, text: String) -> anyhow::Result<()> {
        if self.output.json || self.last.as_ref() == Some(&text) {
            return Ok(());
        }
        let place = if std::io::stdout().is_terminal() {
            "\u{1b}[H\u{1b}[2J"
        } else if self.last.is_some() {
            "\n"
        } else {
            ""
        };
        self.output.raw(format!("{place}{text}").as_bytes())?;
        self.last = Some(text);
        Ok(())
    }
}
