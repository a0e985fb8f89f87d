//! Which thread is shown, where a person named none, or the beginning of one.

use std::{sync::Arc, time::Duration};

use anyhow::{anyhow, bail};
use wakeful_link::{
    ConnectionPhase, ConnectionState, DataStatus, FailureClass, Instant, shell::ShellState,
};
use wakeful_wire::rpc::{ShellRow, ThreadId};

use super::super::short;

/// How long the present list is waited for where one is kept that can be shown meanwhile.
pub(super) const LIST_WAIT: Duration = Duration::from_millis(1_500);

/// The thread that a person wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The one in which something happened last.
    Newest,
    /// The one whose id begins like this. One that is listed is meant before one that is not.
    Named(String),
    /// This one.
    Thread(ThreadId),
}

impl Wanted {
    /// What was given for a thread. A whole id is not looked up.
    pub(super) fn read(text: Option<&str>) -> Self {
        match text {
            None => Self::Newest,
            Some(text) => text.parse().map_or_else(|_| Self::Named(text.to_owned()), Self::Thread),
        }
    }
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Picked {
    /// This thread.
    Thread(ThreadId),
    /// It is not known yet.
    Later,
    /// None that the list has; it may be among those that it leaves out.
    NotListed,
}

/// How somebody looks for a thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Search<'a> {
    /// What for.
    pub(super) wanted: &'a Wanted,
    /// Whether what is kept will do where the host does not answer.
    pub(super) kept_will_do: bool,
    /// What the host is called, for commands in sentences.
    pub(super) name: &'a str,
    /// Since when.
    pub(super) since: Instant,
}

impl Search<'_> {
    /// Picks the thread.
    ///
    /// # Errors
    /// There is none, several are meant, or the list is refused.
    pub(super) fn pick(
        self,
        now: Instant,
        connection: &ConnectionState,
        shell: &ShellState,
    ) -> anyhow::Result<Picked> {
        let Self { wanted, name, .. } = self;
        if let Wanted::Thread(thread) = wanted {
            return Ok(Picked::Thread(*thread));
        }
        if let Some(error) = &shell.error
            && error.class() == FailureClass::Blocked
        {
            bail!("the list of threads cannot be had: {}", error.detail);
        }
        let live = shell.verified && shell.status == DataStatus::Live;
        let waited = now.since(self.since) >= LIST_WAIT;
        let may_be_old = self.kept_will_do && (waited || is_away(connection));
        let Some(list) = shell.list.as_ref().filter(|_| live || may_be_old) else {
            return Ok(Picked::Later);
        };
        match wanted {
            Wanted::Thread(thread) => Ok(Picked::Thread(*thread)),
            Wanted::Newest => match most_recent(list.rows().map(Arc::as_ref)) {
                Some(newest) => Ok(Picked::Thread(newest)),
                None if live => Err(anyhow!(
                    "there is no thread yet; `wakeful send {name} 'what to do'` begins one"
                )),
                None => Ok(Picked::Later),
            },
            Wanted::Named(text) => {
                let ids = || list.rows().map(|row| row.id);
                let several = ids().filter(|id| id.to_string().starts_with(text)).count() > 1;
                let command = format!("wakeful threads {name} --all");
                match short::find(ids(), text, "thread", &command) {
                    Ok(found) => Ok(Picked::Thread(found)),
                    Err(error) if several => Err(error),
                    Err(_) if live => Ok(Picked::NotListed),
                    Err(_) => Ok(Picked::Later),
                }
            }
        }
    }
}

/// Whether nothing is on its way from the host.
const fn is_away(connection: &ConnectionState) -> bool {
    match connection.phase {
        ConnectionPhase::Asleep
        | ConnectionPhase::Backoff
        | ConnectionPhase::Offline
        | ConnectionPhase::Blocked => true,
        ConnectionPhase::Available | ConnectionPhase::Connecting | ConnectionPhase::Connected => {
            false
        }
    }
}

fn most_recent<'a>(rows: impl Iterator<Item = &'a ShellRow>) -> Option<ThreadId> {
    rows.max_by_key(|row| (row.active_at, row.id)).map(|row| row.id)
}
