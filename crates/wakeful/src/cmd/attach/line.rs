//! The connection line: what is known of the host, the thread and this view's own wishes, and how
//! far that can be trusted.

use std::time::Duration;

use wakeful_link::{ConnectionPhase, ConnectionState, DataStatus, Failure, Instant, Stage};
use wakeful_wire::{Phase, Timestamp};

use super::{super::threads::coarse, harmless::one_line, standing::reason};

/// The longest name, in characters.
const NAME_MAX: usize = 40;

/// What the line tells of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'a> {
    /// What the host is called.
    pub(super) name: &'a str,
    /// The link's clock.
    pub(super) now: Instant,
    /// The wall clock.
    pub(super) clock: Timestamp,
    /// The connection; nothing while the host is not known.
    pub(super) connection: Option<&'a ConnectionState>,
    /// How current the thread is.
    pub(super) status: DataStatus,
    /// Why the thread is not brought up to date on a healthy connection.
    pub(super) error: Option<&'a Failure>,
    /// Whether anything of it is shown.
    pub(super) shows: bool,
    /// Since when its turn runs.
    pub(super) running_since: Option<Timestamp>,
    /// How many permissions are asked for.
    pub(super) pending: usize,
    /// How many prompts wait for their turn.
    pub(super) queued: usize,
    /// How many calls of this view the host has not confirmed.
    pub(super) unconfirmed: usize,
}

/// The line, and whether it changes by time alone.
pub(super) fn line(facts: &Facts<'_>) -> (String, bool) {
    let (mut text, mut moves) = connection(facts);
    text.insert_str(0, &format!("{}: ", one_line(facts.name, NAME_MAX)));
    let live = facts.status == DataStatus::Live;
    if facts.shows && !live && facts.status != DataStatus::Deleted {
        text.push_str(" · what is shown may be old");
    }
    if facts.pending > 0 {
        text.push_str(" · waits for your answer");
    } else if let Some(since) = facts.running_since {
        if live {
            text.push_str(&format!(" · working {}", coarse(facts.clock.since(since))));
            moves = true;
        } else {
            text.push_str(" · was working");
        }
    }
    if facts.queued > 0 {
        text.push_str(&format!(" · {} queued", facts.queued));
    }
    if facts.unconfirmed > 0 {
        text.push_str(&format!(" · {} not confirmed", facts.unconfirmed));
    }
    (text, moves)
}

fn connection(facts: &Facts<'_>) -> (String, bool) {
    let Some(connection) = facts.connection else {
        return ("looking for it".to_owned(), false);
    };
    let why = reason(connection.last_failure.as_ref());
    match connection.phase {
        ConnectionPhase::Available => ("not connected".to_owned(), false),
        ConnectionPhase::Offline => {
            ("no network; goes on when there is one, /retry tries now".to_owned(), false)
        }
        ConnectionPhase::Connecting => (format!("{}{why}", connecting(connection)), false),
        ConnectionPhase::Backoff => {
            let left = connection.retry_at.map_or(Duration::ZERO, |at| facts.now.until(at));
            // Never "in 0 s" for what lies ahead.
            let seconds = left.as_millis().div_ceil(1_000);
            (format!("not connected, next try in {seconds} s{why}; /retry tries now"), true)
        }
        ConnectionPhase::Connected => (connected(connection, facts), false),
        ConnectionPhase::Blocked => (format!("cannot be entered{why}; /retry tries again"), false),
        ConnectionPhase::Asleep => {
            let what = match connection.environment {
                Some(Phase::Suspending) => "going to sleep",
                Some(_) | None => "asleep",
            };
            (format!("{what}; /wake, or a prompt, wakes it"), false)
        }
    }
}

fn connecting(connection: &ConnectionState) -> String {
    let stage = match connection.stage {
        Some(Stage::Waiting) | None => "waiting for its turn",
        Some(Stage::Preparing) => "asking for a way in",
        Some(Stage::Opening) => "opening",
        Some(Stage::Synchronizing) => "waiting for the host's hello",
    };
    let waking = match connection.environment {
        Some(Phase::Suspended | Phase::Starting) => "waking",
        Some(_) | None => "connecting",
    };
    match connection.attempt {
        0 | 1 => format!("{waking}: {stage}"),
        attempt => format!("{waking}, attempt {attempt}: {stage}"),
    }
}

fn connected(connection: &ConnectionState, facts: &Facts<'_>) -> String {
    if connection.verifying {
        return "connected, as far as is known; being checked".to_owned();
    }
    if let Some(error) = facts.error {
        let why = reason(Some(error));
        return format!("connected, but this thread cannot be brought up to date{why}");
    }
    match facts.status {
        DataStatus::Live => "live".to_owned(),
        DataStatus::Deleted => "connected; the thread is gone".to_owned(),
        DataStatus::Synchronizing | DataStatus::Cached | DataStatus::Empty => {
            "connected, being brought up to date".to_owned()
        }
    }
}
