//! `attach`: one thread at a terminal, followed exactly, with what a person says to it.
//!
//! `state` and `told` derive what is new, `render` makes text of it, `session` decides, and only
//! `follow` and `terminal` touch the world.

mod answer;
mod args;
mod change;
mod diff;
mod follow;
mod harmless;
mod outbox;
mod render;
mod screen;
mod session;
mod state;
mod terminal;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod told;

use std::process::ExitCode;

use anyhow::bail;
use uuid::Uuid;
use wakeful_wire::rpc::{ClientId, ShellRow, ShellSnapshot, ThreadId};

pub use args::{Approve, AttachArgs};

use self::{
    follow::Follow,
    render::Render,
    screen::{Screen, has_colours},
    session::Session,
    state::Following,
    terminal::Terminal,
};
use crate::{
    host::{HostClient, HostError},
    output::Output,
};

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
}

/// Follows a thread, the newest one where none is given. With `output.json` each item is one JSON
/// value in a line.
///
/// Ends with 0 when it is left or the thread is idle (`until_idle`) after a completed turn, 3 when
/// the environment sleeps and is not to be woken, 4 when it is idle after a turn that did not
/// complete, 130 by an interrupt.
///
/// # Errors
/// The host cannot be reached at the first try, refuses, does not know the thread or has none; the
/// session was revoked; or standard output is closed.
pub async fn attach(
    output: Output,
    host: HostClient,
    thread: Option<ThreadId>,
    args: &AttachArgs,
) -> anyhow::Result<ExitCode> {
    let mut terminal = Terminal::open(!output.json);
    let render = (!output.json).then(|| {
        let colours = has_colours(terminal.shows, &crate::env::snapshot());
        Render::new(colours, terminal.types)
    });
    let mut screen = Screen::new(output, render);
    let thread = match thread {
        Some(thread) => thread,
        None => match newest(&host, args.wake).await {
            Ok(thread) => thread,
            Err(error) if is_asleep(&error) => {
                screen.connection(screen::Connection::Asleep)?;
                screen.note("asleep (`--wake` wakes it)")?;
                return Ok(ExitCode::from(exit::ASLEEP));
            }
            Err(error) => return Err(error),
        },
    };
    let session = Session::new(Following::new(thread), *args, terminal.types);
    let follow = Follow {
        session,
        screen,
        inputs: &mut terminal.inputs,
        fresh: || ClientId::from_uuid(Uuid::new_v4()),
        chance: super::backoff::chance,
    };
    Ok(ExitCode::from(follow.run(&host).await?))
}

fn is_asleep(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<HostError>(), Some(HostError::Asleep { .. }))
}

/// The thread in which somebody did something last.
async fn newest(host: &HostClient, wake: bool) -> anyhow::Result<ThreadId> {
    let shell: ShellSnapshot = host.get("/shell?families=true&older_settled=true", wake).await?;
    let rows = shell.rows.iter().map(|row| &**row);
    let Some(newest) = most_recent(rows) else {
        bail!("there is no thread yet; `wakeful send {} 'what to do'` begins one", host.label());
    };
    Ok(newest)
}

fn most_recent<'a>(rows: impl Iterator<Item = &'a ShellRow>) -> Option<ThreadId> {
    rows.max_by_key(|row| (row.active_at, row.id)).map(|row| row.id)
}
