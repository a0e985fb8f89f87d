//! How it stands with the host, as far as it is said in passing: what has changed, and whether it
//! is of no use to wait.
//!
//! When to connect is decided by the link alone. Here its state is only read.

use std::time::Duration;

use wakeful_link::{ConnectionPhase, ConnectionState, Failure, FailureReason, Instant};

use super::{harmless::one_line, screen::Connection};

/// How long a host that nothing is known of may take to appear.
const UNKNOWN_TIME: Duration = Duration::from_secs(30);
/// How long a kept copy may take to be read, before an unreachable host is the end of it.
const KEPT_TIME: Duration = Duration::from_millis(500);
/// An environment that falls asleep again is woken at most this often.
const WAKE_SPACING: Duration = Duration::from_secs(2);
/// The longest reason, in characters.
const REASON_MAX: usize = 300;

/// Who attaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Manner {
    /// Whether the environment is woken whenever it sleeps.
    pub(super) wakes: bool,
    /// Whether a person sits there who can say what to do, so that sleep is no reason to end.
    pub(super) stays: bool,
    /// Whether it only waits for an end, and so wakes to begin with and no more: what sleeps later
    /// was put to sleep by somebody.
    pub(super) waits: bool,
}

/// What there is to be said or done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Turn {
    /// It stands so, from now on; with a sentence for people.
    Say(Connection, Option<String>),
    /// The environment is to be woken.
    Wake,
    /// It sleeps, and nobody is there to wake it.
    EndsAsleep,
    /// It is of no use to wait.
    Ends(String),
}

/// What was last seen of the connection.
#[derive(Debug)]
pub(super) struct Standing {
    manner: Manner,
    since: Option<Instant>,
    phase: Option<ConnectionPhase>,
    attempt: u32,
    /// Whether there was a session at any time.
    was_connected: bool,
    backoff_since: Option<Instant>,
    woken: Option<Instant>,
    due: Option<Instant>,
}

/// What the link says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight<'a> {
    /// When.
    pub(super) now: Instant,
    /// The connection; nothing while the host is not known.
    pub(super) connection: Option<&'a ConnectionState>,
    /// Why the host cannot be known: its platform does not say.
    pub(super) platform: Option<&'a Failure>,
    /// Whether anything of the thread is shown.
    pub(super) shows: bool,
}

impl Standing {
    /// Nothing was seen yet.
    pub(super) const fn new(manner: Manner) -> Self {
        Self {
            manner,
            since: None,
            phase: None,
            attempt: 0,
            was_connected: false,
            backoff_since: None,
            woken: None,
            due: None,
        }
    }

    /// Whether there is a session.
    pub(super) fn is_connected(&self) -> bool {
        self.phase == Some(ConnectionPhase::Connected)
    }

    /// Whether the environment sleeps.
    pub(super) fn is_asleep(&self) -> bool {
        self.phase == Some(ConnectionPhase::Asleep)
    }

    /// When to look again, although nothing may have changed.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// Takes in how it stands.
    pub(super) fn look(&mut self, sight: Sight<'_>) -> Vec<Turn> {
        let since = *self.since.get_or_insert(sight.now);
        self.due = None;
        let Some(connection) = sight.connection else {
            return self.unknown(since, sight).into_iter().collect();
        };
        let mut turns = Vec::new();
        let before = self.phase.replace(connection.phase);
        let attempt = std::mem::replace(&mut self.attempt, connection.attempt);
        let entered = before != Some(connection.phase);
        if connection.phase != ConnectionPhase::Backoff {
            self.backoff_since = None;
        }
        match connection.phase {
            ConnectionPhase::Connected => {
                if entered {
                    turns.push(Turn::Say(Connection::Connected, None));
                }
                self.was_connected = true;
            }
            ConnectionPhase::Backoff => {
                if let Some(over) = self.unreachable(connection, sight) {
                    return vec![over];
                }
                if entered || attempt != connection.attempt {
                    let what =
                        if self.was_connected { "connection lost" } else { "not connected yet" };
                    let text = retrying(what, connection, sight.now);
                    turns.push(Turn::Say(Connection::Lost, Some(text)));
                }
            }
            ConnectionPhase::Offline if entered => {
                let text = "connection lost: this machine has no network".to_owned();
                turns.push(Turn::Say(Connection::Lost, Some(text)));
            }
            ConnectionPhase::Blocked => {
                let why = connection.last_failure.as_ref();
                turns.push(Turn::Ends(blocked(why)));
            }
            ConnectionPhase::Asleep => turns.extend(self.asleep(entered, sight.now)),
            ConnectionPhase::Connecting | ConnectionPhase::Available
                if before == Some(ConnectionPhase::Connected) =>
            {
                let why = reason(connection.last_failure.as_ref());
                let text = format!("connection lost, connecting again{why}");
                turns.push(Turn::Say(Connection::Lost, Some(text)));
            }
            ConnectionPhase::Offline | ConnectionPhase::Connecting | ConnectionPhase::Available => {
            }
        }
        if before.is_none() && self.manner.wakes && !self.is_connected() && self.woken.is_none() {
            self.woken = Some(sight.now);
            turns.push(Turn::Wake);
        }
        turns
    }

    fn unknown(&mut self, since: Instant, sight: Sight<'_>) -> Option<Turn> {
        if let Some(failure) = sight.platform {
            return Some(Turn::Ends(one_line(&failure.detail, REASON_MAX)));
        }
        let until = since.after(UNKNOWN_TIME);
        if sight.now >= until {
            return Some(Turn::Ends("the server does not list this environment".to_owned()));
        }
        self.due = Some(until);
        None
    }

    /// Who was never connected is told that nothing is there, unless something kept can be shown to
    /// a person meanwhile.
    fn unreachable(&mut self, connection: &ConnectionState, sight: Sight<'_>) -> Option<Turn> {
        let since = *self.backoff_since.get_or_insert(sight.now);
        let failure = connection.last_failure.as_ref()?;
        if self.was_connected || !is_unreachable(failure.reason) {
            return None;
        }
        if self.manner.stays {
            let until = since.after(KEPT_TIME);
            if sight.shows {
                return None;
            }
            if sight.now < until {
                self.due = Some(until);
                return None;
            }
        }
        Some(Turn::Ends(one_line(&failure.detail, REASON_MAX)))
    }

    fn asleep(&mut self, entered: bool, now: Instant) -> Vec<Turn> {
        let Manner { wakes, stays, waits } = self.manner;
        if !wakes || (waits && self.was_connected) {
            return match (entered, stays) {
                (true, true) => {
                    let text = "asleep; `/wake`, or a prompt, wakes it".to_owned();
                    vec![Turn::Say(Connection::Asleep, Some(text))]
                }
                (true, false) => {
                    let text = "asleep (`--wake` wakes it)".to_owned();
                    vec![Turn::Say(Connection::Asleep, Some(text)), Turn::EndsAsleep]
                }
                (false, _) => Vec::new(),
            };
        }
        let mut turns = Vec::new();
        if entered {
            turns.push(Turn::Say(Connection::Asleep, Some("asleep, waking it".to_owned())));
        }
        let may = self.woken.map_or(now, |woken| woken.after(WAKE_SPACING));
        if now >= may {
            self.woken = Some(now);
            turns.push(Turn::Wake);
        } else {
            self.due = Some(may);
        }
        turns
    }
}

/// Whether nothing is there, as opposed to something that says to come again.
const fn is_unreachable(reason: FailureReason) -> bool {
    match reason {
        FailureReason::Network
        | FailureReason::Timeout
        | FailureReason::Transport
        | FailureReason::Platform
        | FailureReason::Remote => true,
        FailureReason::Starting
        | FailureReason::Overloaded
        | FailureReason::Authentication
        | FailureReason::Permission
        | FailureReason::Configuration
        | FailureReason::Unsupported
        | FailureReason::Unusable
        | FailureReason::Asleep => false,
    }
}

fn retrying(what: &str, connection: &ConnectionState, now: Instant) -> String {
    let why = reason(connection.last_failure.as_ref());
    match connection.retry_at {
        Some(at) => {
            let seconds = now.until(at).as_secs_f64();
            format!("{what}, trying again in {seconds:.1} s{why}")
        }
        None => format!("{what}{why}"),
    }
}

/// The reason behind a sentence.
pub(super) fn reason(failure: Option<&Failure>) -> String {
    failure.map_or_else(String::new, |failure| {
        format!(" ({})", one_line(&failure.detail, REASON_MAX).trim_end_matches('.'))
    })
}

fn blocked(failure: Option<&Failure>) -> String {
    let detail = failure.map_or("The host cannot be entered.", |failure| failure.detail.as_str());
    one_line(detail, REASON_MAX)
}
