//! What a connection is doing, in words for people that promise nothing and hide nothing.

use std::time::Duration;

use wakeful_link::{
    ConnectionPhase, ConnectionState, DataStatus, Failure, FailureReason, Instant, Stage,
    platform::PlatformState,
};
use wakeful_wire::{Phase, Timestamp};

use super::HostView;
use crate::{
    cmd::threads::{ago, coarse},
    output::printable,
};

/// Whether a moment that is to come is told by the seconds until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cmd) enum Countdown {
    /// It is: the text is drawn anew each second, or read at once.
    Shown,
    /// Only that it will come: the text stands for longer.
    Hidden,
    /// It is not: the client that would try again is about to end.
    Over,
}

/// What a host's connection is doing, why, and what comes next.
pub(in crate::cmd) fn words(host: &HostView, now: Instant, countdown: Countdown) -> String {
    let connection = &host.connection;
    match connection.phase {
        ConnectionPhase::Connected if connection.verifying => {
            "connected, and being asked whether it still is".to_owned()
        }
        ConnectionPhase::Connected => connected(host),
        ConnectionPhase::Connecting => connecting(connection),
        ConnectionPhase::Backoff => {
            let next = next_try(connection.retry_at, now, countdown);
            match &connection.last_failure {
                Some(failure) => format!("{next}: {}", why(Some(failure))),
                None => next,
            }
        }
        ConnectionPhase::Offline => "waits for the network".to_owned(),
        ConnectionPhase::Blocked => blocked(host),
        ConnectionPhase::Asleep => asleep(connection.environment).to_owned(),
        ConnectionPhase::Available if host.paused => "paused".to_owned(),
        ConnectionPhase::Available => "not connected".to_owned(),
    }
}

fn connected(host: &HostView) -> String {
    match (&host.error, host.status) {
        (Some(error), _) => {
            format!("connected, but its list cannot be brought up to date: {}", why(Some(error)))
        }
        (None, DataStatus::Live | DataStatus::Deleted) => "connected".to_owned(),
        (None, DataStatus::Empty | DataStatus::Cached | DataStatus::Synchronizing) => {
            "connected, its list is being brought up to date".to_owned()
        }
    }
}

fn connecting(connection: &ConnectionState) -> String {
    let stage = match connection.stage {
        Some(Stage::Waiting) => "waits for its turn to connect",
        Some(Stage::Preparing) => "being entered",
        Some(Stage::Opening) | None => "connecting",
        Some(Stage::Synchronizing) => "connecting, its greeting is awaited",
    };
    match (connection.attempt, &connection.last_failure) {
        (0 | 1, _) | (_, None) => stage.to_owned(),
        (attempt, failure) => format!("{stage}, try {attempt}: {}", why(failure.as_ref())),
    }
}

fn next_try(at: Option<Instant>, now: Instant, countdown: Countdown) -> String {
    match (at, countdown) {
        (Some(at), Countdown::Shown) => {
            // Rounded up: a second before the try it is one second, and never nothing.
            let left = now.until(at) + Duration::from_millis(999);
            format!("not connected, next try in {}", coarse(left.max(Duration::from_secs(1))))
        }
        (_, Countdown::Over) => "not connected".to_owned(),
        (_, Countdown::Hidden) | (None, Countdown::Shown) => {
            "not connected, to be tried again".to_owned()
        }
    }
}

fn blocked(host: &HostView) -> String {
    let failure = host.connection.last_failure.as_ref();
    let cause = match failure.map(|failure| failure.reason) {
        Some(FailureReason::Authentication) if host.env.is_none() => {
            "pairing needed (`wakeful pair`)"
        }
        Some(FailureReason::Authentication) => "sign-in needed (`wakeful login`)",
        Some(FailureReason::Permission) => "not allowed",
        Some(FailureReason::Unsupported) => "an update is needed",
        Some(FailureReason::Unusable) => {
            return format!("{}: {}", unusable(host.connection.environment), why(failure));
        }
        _ => "cannot be connected to as it is",
    };
    format!("{cause}: {}", why(failure))
}

const fn unusable(phase: Option<Phase>) -> &'static str {
    match phase {
        Some(Phase::Failed) => "failed",
        Some(Phase::Disabled) => "disabled",
        Some(Phase::Deleted) => "deleted",
        Some(_) | None => "cannot be used",
    }
}

/// Sleep is no error, and is left by itself when somebody needs the environment.
const fn asleep(phase: Option<Phase>) -> &'static str {
    match phase {
        Some(Phase::Starting) => "starting",
        Some(Phase::Suspending) => "falling asleep",
        Some(_) | None => "asleep",
    }
}

fn why(failure: Option<&Failure>) -> String {
    let detail = failure.map_or("nobody said why", |failure| failure.detail.as_str());
    printable(detail.trim_end_matches('.'))
}

/// What a platform's stream is doing.
pub(in crate::cmd) fn platform_words(
    state: &PlatformState,
    now: Instant,
    countdown: Countdown,
) -> String {
    match state {
        PlatformState::Idle => "not connected".to_owned(),
        PlatformState::Opening { last_failure: None } => "connecting".to_owned(),
        PlatformState::Opening { last_failure } => {
            format!("connecting again: {}", why(last_failure.as_ref()))
        }
        PlatformState::Following => "connected".to_owned(),
        PlatformState::Backoff { last_failure, retry_at } => {
            format!("{}: {}", next_try(Some(*retry_at), now, countdown), why(Some(last_failure)))
        }
        PlatformState::Offline => "waits for the network".to_owned(),
        PlatformState::Blocked(failure) => {
            let cause = if failure.reason == FailureReason::Authentication {
                "sign-in needed (`wakeful login`)"
            } else {
                "cannot be connected to as it is"
            };
            format!("{cause}: {}", why(Some(failure)))
        }
    }
}

/// How current what is shown of a host is.
pub(in crate::cmd) fn data_words(host: &HostView, now: Timestamp) -> String {
    match (host.status, host.as_of) {
        (DataStatus::Live, _) => "live".to_owned(),
        (DataStatus::Empty | DataStatus::Deleted, _) => "nothing is known".to_owned(),
        (DataStatus::Cached | DataStatus::Synchronizing, _) if host.list.is_none() => {
            "nothing is known".to_owned()
        }
        (DataStatus::Cached, Some(at)) => format!("as it was {}", ago(at, now)),
        (DataStatus::Cached, None) => "as it was before".to_owned(),
        (DataStatus::Synchronizing, Some(at)) => {
            format!("as it was {}, being brought up to date", ago(at, now))
        }
        (DataStatus::Synchronizing, None) => "being brought up to date".to_owned(),
    }
}

/// A connection's phase, for programs and for columns.
pub(in crate::cmd) const fn phase_word(phase: ConnectionPhase) -> &'static str {
    match phase {
        ConnectionPhase::Available => "available",
        ConnectionPhase::Offline => "offline",
        ConnectionPhase::Connecting => "connecting",
        ConnectionPhase::Backoff => "backoff",
        ConnectionPhase::Connected => "connected",
        ConnectionPhase::Blocked => "blocked",
        ConnectionPhase::Asleep => "asleep",
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{host, paired},
        *,
    };

    const NOW: Instant = Instant(100_000);

    fn said(change: impl FnOnce(&mut HostView)) -> String {
        let mut host = host("Site/dev");
        change(&mut host);
        words(&host, NOW, Countdown::Shown)
    }

    fn failed(reason: FailureReason, detail: &str) -> Option<Failure> {
        Some(Failure::new(reason, detail))
    }

    #[test]
    fn a_connection_says_what_it_does_and_never_promises_what_will_not_come() {
        type Change = &'static dyn Fn(&mut HostView);
        let table: [(Change, &str); 16] = [
            (&|_| {}, "connected"),
            (&|host| host.connection.verifying = true, "connected, and being asked"),
            (&|host| host.status = DataStatus::Synchronizing, "connected, its list is being"),
            (
                &|host| {
                    host.status = DataStatus::Cached;
                    host.error = failed(FailureReason::Remote, "No.");
                },
                "connected, but its list cannot be brought up to date: No",
            ),
            (
                &|host| {
                    host.connection.phase = ConnectionPhase::Connecting;
                    host.connection.stage = Some(Stage::Opening);
                    host.connection.attempt = 1;
                },
                "connecting",
            ),
            (
                &|host| {
                    host.connection.phase = ConnectionPhase::Connecting;
                    host.connection.stage = Some(Stage::Waiting);
                },
                "waits for its turn",
            ),
            (
                &|host| {
                    host.connection.phase = ConnectionPhase::Connecting;
                    host.connection.stage = Some(Stage::Preparing);
                    host.connection.attempt = 3;
                    host.connection.last_failure = failed(FailureReason::Network, "No route.");
                },
                "being entered, try 3: No route",
            ),
            (
                &|host| {
                    host.connection.phase = ConnectionPhase::Backoff;
                    host.connection.retry_at = Some(NOW.after(Duration::from_millis(11_200)));
                    host.connection.last_failure = failed(FailureReason::Network, "No route.");
                },
                "not connected, next try in 12s: No route",
            ),
            (
                &|host| {
                    host.connection.phase = ConnectionPhase::Backoff;
                    host.connection.retry_at = Some(Instant(0));
                },
                "not connected, next try in 1s",
            ),
            (&|host| host.connection.phase = ConnectionPhase::Offline, "waits for the network"),
            (&|host| host.connection.phase = ConnectionPhase::Asleep, "asleep"),
            (
                &|host| {
                    host.connection.phase = ConnectionPhase::Asleep;
                    host.connection.environment = Some(Phase::Suspending);
                },
                "falling asleep",
            ),
            (
                &|host| {
                    host.connection.phase = ConnectionPhase::Blocked;
                    host.connection.last_failure =
                        failed(FailureReason::Authentication, "The session was revoked.");
                },
                "sign-in needed (`wakeful login`): The session was revoked",
            ),
            (
                &|host| {
                    host.connection.phase = ConnectionPhase::Blocked;
                    host.connection.environment = Some(Phase::Failed);
                    host.connection.last_failure = failed(FailureReason::Unusable, "It broke.");
                },
                "failed: It broke",
            ),
            (
                &|host| {
                    host.connection.phase = ConnectionPhase::Available;
                    host.paused = true;
                },
                "paused",
            ),
            (&|host| host.connection.phase = ConnectionPhase::Available, "not connected"),
        ];
        for (change, expected) in table {
            let text = said(change);
            assert!(text.starts_with(expected), "{text:?} {expected:?}");
        }
        let mut lab = paired("lab");
        lab.connection.phase = ConnectionPhase::Blocked;
        lab.connection.last_failure = failed(FailureReason::Authentication, "Unknown.");
        assert!(words(&lab, NOW, Countdown::Shown).starts_with("pairing needed"));
    }

    #[test]
    fn text_that_stands_for_long_counts_no_seconds_and_no_word_steers_the_terminal() {
        let mut host = host("Site/dev");
        host.connection.phase = ConnectionPhase::Backoff;
        host.connection.retry_at = Some(NOW.after(Duration::from_secs(12)));
        host.connection.last_failure = failed(FailureReason::Network, "\u{1b}[2J.");
        let early = words(&host, NOW, Countdown::Hidden);
        let later = words(&host, NOW.after(Duration::from_secs(5)), Countdown::Hidden);
        assert_eq!(early, later);
        assert!(!early.contains('\u{1b}') && early.contains("tried again"), "{early}");
        let over = words(&host, NOW, Countdown::Over);
        assert!(over.starts_with("not connected: "), "{over}");
    }

    #[test]
    fn cached_data_say_so_and_how_old_they_are() {
        let now = Timestamp(1_000_000_000);
        let mut host = host("Site/dev");
        assert_eq!(data_words(&host, now), "live");
        host.status = DataStatus::Cached;
        assert_eq!(data_words(&host, now), "as it was before");
        host.as_of = Some(Timestamp(now.0 - 180_000));
        assert_eq!(data_words(&host, now), "as it was 3m ago");
        host.status = DataStatus::Synchronizing;
        assert_eq!(data_words(&host, now), "as it was 3m ago, being brought up to date");
        host.list = None;
        assert_eq!(data_words(&host, now), "nothing is known");
    }

    #[test]
    fn a_platform_says_what_its_stream_does() {
        let failure = Failure::new(FailureReason::Network, "No route.");
        let retry_at = NOW.after(Duration::from_secs(3));
        let table = [
            (PlatformState::Following, "connected"),
            (PlatformState::Opening { last_failure: None }, "connecting"),
            (
                PlatformState::Backoff { last_failure: failure.clone(), retry_at },
                "not connected, next try in 3s: No route",
            ),
            (
                PlatformState::Blocked(Failure::new(FailureReason::Authentication, "Unknown.")),
                "sign-in needed (`wakeful login`): Unknown",
            ),
            (PlatformState::Opening { last_failure: Some(failure) }, "connecting again: No route"),
        ];
        for (state, expected) in table {
            assert_eq!(platform_words(&state, NOW, Countdown::Shown), expected);
        }
    }
}
