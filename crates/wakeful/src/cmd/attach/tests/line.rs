use std::time::Duration;

use wakeful_link::{
    ConnectionPhase as P, ConnectionState, DataStatus as D, Failure, FailureReason, Instant, Stage,
};
use wakeful_wire::{Phase, Timestamp};

use super::super::line::{Facts, line};

const NOW: Instant = Instant(50_000);

fn facts(connection: &ConnectionState, status: D) -> Facts<'_> {
    Facts {
        name: "Site/dev",
        now: NOW,
        clock: Timestamp(100_000),
        connection: Some(connection),
        status,
        error: None,
        shows: true,
        running_since: None,
        pending: 0,
        queued: 0,
        unconfirmed: 0,
    }
}

fn said(connection: &ConnectionState, status: D) -> String {
    line(&facts(connection, status)).0
}

#[test]
fn the_line_says_how_it_stands_and_never_that_old_things_are_new() {
    let why = Failure::new(FailureReason::Network, "Nobody\u{1b}[2J there.");
    let of = |phase, change: &dyn Fn(&mut ConnectionState)| {
        let mut state = ConnectionState { phase, ..ConnectionState::default() };
        change(&mut state);
        state
    };
    let plain = |phase| of(phase, &|_| {});
    let stage = |stage, attempt| {
        of(P::Connecting, &|state| (state.stage, state.attempt) = (Some(stage), attempt))
    };
    let backoff = of(P::Backoff, &|state| {
        state.retry_at = Some(NOW.after(Duration::from_millis(11_001)));
        state.last_failure = Some(why.clone());
    });
    let old = " · what is shown may be old";
    let table = [
        (plain(P::Connected), D::Live, "live", ""),
        (plain(P::Connected), D::Synchronizing, "connected, being brought up to date", old),
        (
            of(P::Connected, &|state| state.verifying = true),
            D::Live,
            "connected, as far as is known; being checked",
            "",
        ),
        (
            backoff,
            D::Cached,
            "not connected, next try in 12 s (Nobody there); /retry tries now",
            old,
        ),
        (
            plain(P::Offline),
            D::Cached,
            "no network; goes on when there is one, /retry tries now",
            old,
        ),
        (stage(Stage::Waiting, 1), D::Cached, "connecting: waiting for its turn", old),
        (stage(Stage::Opening, 3), D::Cached, "connecting, attempt 3: opening", old),
        (
            of(P::Connecting, &|state| {
                state.stage = Some(Stage::Preparing);
                state.environment = Some(Phase::Starting);
            }),
            D::Cached,
            "waking: asking for a way in",
            old,
        ),
        (plain(P::Asleep), D::Cached, "asleep; /wake, or a prompt, wakes it", old),
        (
            of(P::Asleep, &|state| state.environment = Some(Phase::Suspending)),
            D::Cached,
            "going to sleep; /wake, or a prompt, wakes it",
            old,
        ),
    ];
    for (connection, status, expected, mark) in table {
        assert_eq!(said(&connection, status), format!("Site/dev: {expected}{mark}"));
    }
}

#[test]
fn a_thread_that_fails_on_a_healthy_connection_is_not_called_a_lost_one() {
    let connection = ConnectionState { phase: P::Connected, ..ConnectionState::default() };
    let error = Failure::new(FailureReason::Remote, "Refused.");
    let facts = Facts { error: Some(&error), ..facts(&connection, D::Cached) };
    let (text, _) = line(&facts);
    assert!(text.contains("connected, but this thread cannot be brought up to date (Refused)"));
    assert!(!text.contains("try"), "no transport retry is promised: {text}");
}

#[test]
fn what_the_thread_does_stands_behind_and_time_moves_the_line_only_where_it_says_a_time() {
    let connection = ConnectionState { phase: P::Connected, ..ConnectionState::default() };
    let live = facts(&connection, D::Live);
    assert_eq!(line(&live), ("Site/dev: live".to_owned(), false));
    let working = Facts { running_since: Some(Timestamp(35_000)), queued: 2, ..live };
    assert_eq!(line(&working), ("Site/dev: live · working 1m · 2 queued".to_owned(), true));
    let asked = Facts { pending: 1, unconfirmed: 1, ..working };
    let text = "Site/dev: live · waits for your answer · 2 queued · 1 not confirmed";
    assert_eq!(line(&asked), (text.to_owned(), false));
    let old = Facts { status: D::Cached, ..working };
    assert!(line(&old).0.contains("was working"));
    let backoff = ConnectionState { phase: P::Backoff, ..ConnectionState::default() };
    assert!(line(&facts(&backoff, D::Cached)).1);
    let nobody = Facts { connection: None, shows: false, ..live };
    assert_eq!(line(&nobody).0, "Site/dev: looking for it");
}
