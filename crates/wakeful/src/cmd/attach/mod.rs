//! `attach`: one thread at a time at a terminal, followed exactly, with what a person says to it.
//!
//! The client runtime keeps the connection and holds the thread; nothing here decides when to
//! connect.
//!
//! | part | what it does |
//! |---|---|
//! | `session` | decides what is shown, sent and said, and when it ends |
//! | `standing`, `line` | how it stands with the host: in passing, and as a line that stays |
//! | `pick` | which thread |
//! | `shown`, `told` | what is known of a thread, and what of that is new |
//! | `outbox` | what the host has not confirmed |
//! | `render`, `program` | text for people, JSON for programs |
//! | `follow`, `terminal`, `bar` | the world |

mod answer;
mod args;
mod bar;
mod change;
mod diff;
mod follow;
mod harmless;
mod line;
mod outbox;
mod pick;
mod program;
mod render;
mod screen;
mod session;
mod shown;
mod standing;
mod terminal;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod told;

use std::process::ExitCode;

use anyhow::anyhow;
use uuid::Uuid;
use wakeful_client::signals;
use wakeful_wire::rpc::ClientId;

pub use args::{Approve, AttachArgs};

use self::{
    bar::Bar,
    follow::Follow,
    pick::Wanted,
    render::Render,
    screen::{Screen, has_colours},
    session::{End, Session, Setting},
    terminal::Terminal,
};
use super::threads;
use crate::{connect::Reached, output::Output};

/// How `attach` ends.
mod exit {
    /// It was left, or the last turn completed.
    pub(super) const DONE: u8 = 0;
    /// The environment sleeps.
    pub(super) const ASLEEP: u8 = 3;
    /// With `--until-idle`: the last turn did not complete, or the thread was deleted.
    pub(super) const NOT_COMPLETED: u8 = 4;
    /// It was left by an interrupt, as a shell reports it.
    pub(super) const INTERRUPTED: u8 = 130;
    /// It was told to end by a signal, as a shell reports it.
    pub(super) const TERMINATED: u8 = 143;
}

/// Follows a thread, by its id or the beginning of one; the newest one where none is given. With
/// `output.json` each item is one JSON value in a line. `url` names the server as for the runtime,
/// which is left to the caller to close.
///
/// Ends with 0 when it is left or the thread is idle (`until_idle`) after a completed turn, 3 when
/// the environment sleeps and nobody is there to wake it, 4 when it is idle after a turn that did
/// not complete, 130 by an interrupt.
///
/// # Errors
/// The host cannot be reached at the first try and nothing kept of it can be shown to a person; it
/// cannot be entered; it does not know the thread or has none; or standard output is closed.
pub async fn attach(
    output: Output,
    url: Option<&str>,
    reached: &Reached,
    thread: Option<&str>,
    args: &AttachArgs,
) -> anyhow::Result<ExitCode> {
    // A view that lasts outlives networks and suspensions.
    let _watching = signals::attach(&reached.client);
    let mut terminal = Terminal::open(!output.json);
    let variables = crate::env::snapshot();
    let render = !output.json;
    let moves = variables.get("TERM").is_none_or(|term| term != "dumb");
    let screen = terminal.shows && !output.json;
    let mut wanted = Wanted::read(thread);
    let ended = loop {
        let session = Session::new(Setting {
            name: reached.name.clone(),
            wanted,
            options: *args,
            interactive: terminal.types,
            screen,
        });
        let render =
            render.then(|| Render::new(has_colours(terminal.shows, &variables), terminal.types));
        let follow = Follow {
            client: &reached.client,
            host: reached.host,
            session,
            screen: Screen::new(output, render),
            bar: (screen && moves).then(Bar::default),
            inputs: &mut terminal.inputs,
            fresh: || ClientId::from_uuid(Uuid::new_v4()),
        };
        match follow.run().await {
            Ok(End::NotListed) => {
                let text = thread.unwrap_or_default();
                let place = (reached.host, reached.name.clone());
                match threads::find_unlisted(url, place, &reached.name, text).await {
                    Ok(found) => wanted = Wanted::Thread(found),
                    Err(error) => break Err(error),
                }
            }
            Ok(End::Code(code)) => break Ok(code),
            Ok(End::Failed(why)) => break Err(anyhow!(why)),
            Err(error) => break Err(error),
        }
    };
    Ok(ExitCode::from(ended?))
}
