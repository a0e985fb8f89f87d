use std::time::Duration;

use wakeful_link::{ConnectionPhase, ConnectionState, Failure, FailureReason, Instant};

use super::super::{
    screen::Connection,
    standing::{Manner, Sight, Standing, Turn},
};

const PERSON: Manner = Manner { wakes: false, stays: true, waits: false };
const PROGRAM: Manner = Manner { wakes: false, stays: false, waits: false };
const WAKER: Manner = Manner { wakes: true, stays: false, waits: false };
const WAITER: Manner = Manner { wakes: true, stays: false, waits: true };

struct Desk {
    standing: Standing,
    now: Instant,
    connection: ConnectionState,
    shows: bool,
}

impl Desk {
    fn new(manner: Manner) -> Self {
        Self {
            standing: Standing::new(manner),
            now: Instant(1_000),
            connection: ConnectionState::default(),
            shows: false,
        }
    }

    fn wait(&mut self, millis: u64) {
        self.now = self.now.after(Duration::from_millis(millis));
    }

    fn phase(&mut self, phase: ConnectionPhase) -> Vec<Turn> {
        if phase == ConnectionPhase::Connecting {
            self.connection.attempt += 1;
        }
        self.connection.phase = phase;
        self.look()
    }

    /// An attempt that failed, and the next one in two seconds.
    fn fail(&mut self, reason: FailureReason) -> Vec<Turn> {
        self.connection.attempt += 1;
        self.connection.last_failure = Some(Failure::new(reason, "Nobody there."));
        self.connection.retry_at = Some(self.now.after(Duration::from_secs(2)));
        self.phase(ConnectionPhase::Backoff)
    }

    fn look(&mut self) -> Vec<Turn> {
        self.standing.look(Sight {
            now: self.now,
            connection: Some(&self.connection),
            platform: None,
            shows: self.shows,
        })
    }
}

fn say(connection: Connection, text: &str) -> Turn {
    Turn::Say(connection, Some(text.to_owned()))
}

fn connected() -> Turn {
    Turn::Say(Connection::Connected, None)
}

#[test]
fn each_loss_and_each_failed_attempt_is_said_once_and_so_is_the_return() {
    let mut desk = Desk::new(PROGRAM);
    assert_eq!(desk.phase(ConnectionPhase::Connecting), []);
    assert_eq!(desk.phase(ConnectionPhase::Connected), [connected()]);
    assert_eq!(desk.look(), []);
    let lost = || say(Connection::Lost, "connection lost, trying again in 2.0 s (Nobody there)");
    assert_eq!(desk.fail(FailureReason::Transport), [lost()]);
    desk.wait(300);
    desk.connection.retry_at = Some(desk.now);
    assert_eq!(desk.look(), [], "a wait that was shortened is the same one");
    // Between two looks an attempt was made and failed.
    assert_eq!(desk.fail(FailureReason::Network), [lost()]);
    assert_eq!(desk.phase(ConnectionPhase::Connecting), []);
    assert_eq!(desk.phase(ConnectionPhase::Connected), [connected()]);
    desk.connection.generation += 1;
    assert_eq!(desk.look(), [], "a socket that took another's place is no loss");
}

#[test]
fn a_session_that_ends_without_a_wait_is_a_loss_too() {
    let mut desk = Desk::new(PROGRAM);
    desk.phase(ConnectionPhase::Connected);
    let turns = desk.phase(ConnectionPhase::Connecting);
    assert_eq!(turns, [say(Connection::Lost, "connection lost, connecting again")]);
    assert_eq!(desk.look(), []);
    let turns = desk.phase(ConnectionPhase::Offline);
    assert!(matches!(&turns[..], [Turn::Say(Connection::Lost, _)]));
}

#[test]
fn who_was_never_connected_is_told_at_once_that_nobody_is_there() {
    let over = || [Turn::Ends("Nobody there.".to_owned())];
    for reason in [FailureReason::Network, FailureReason::Transport, FailureReason::Platform] {
        assert_eq!(Desk::new(PROGRAM).fail(reason), over());
    }
    for reason in [FailureReason::Starting, FailureReason::Overloaded] {
        let turns = Desk::new(PROGRAM).fail(reason);
        assert!(matches!(&turns[..], [Turn::Say(Connection::Lost, _)]), "{turns:?}");
    }
}

#[test]
fn a_person_to_whom_something_kept_is_shown_is_left_with_it() {
    let mut desk = Desk::new(PERSON);
    assert_eq!(
        desk.fail(FailureReason::Network)[..1],
        [say(Connection::Lost, "not connected yet, trying again in 2.0 s (Nobody there)")]
    );
    assert!(desk.standing.poll_timeout().is_some(), "what is kept may still be read");
    desk.shows = true;
    desk.wait(600);
    assert_eq!(desk.look(), []);
    let mut nothing = Desk::new(PERSON);
    nothing.fail(FailureReason::Network);
    nothing.wait(600);
    assert_eq!(nothing.look(), [Turn::Ends("Nobody there.".to_owned())]);
}

#[test]
fn what_cannot_be_mended_by_waiting_is_an_error() {
    let mut desk = Desk::new(PERSON);
    desk.phase(ConnectionPhase::Connected);
    let revoked = Failure::new(FailureReason::Authentication, "The session was revoked.");
    desk.connection.last_failure = Some(revoked);
    let turns = desk.phase(ConnectionPhase::Blocked);
    assert_eq!(turns, [Turn::Ends("The session was revoked.".to_owned())]);
}

#[test]
fn sleep_ends_it_unless_somebody_stays_or_it_is_to_be_woken() {
    let mut program = Desk::new(PROGRAM);
    let turns = program.phase(ConnectionPhase::Asleep);
    let said = say(Connection::Asleep, "asleep (`--wake` wakes it)");
    assert_eq!(turns, [said, Turn::EndsAsleep]);

    let mut person = Desk::new(PERSON);
    let turns = person.phase(ConnectionPhase::Asleep);
    assert_eq!(turns, [say(Connection::Asleep, "asleep; `/wake`, or a prompt, wakes it")]);
    assert_eq!(person.look(), []);

    let mut waker = Desk::new(WAKER);
    assert_eq!(waker.phase(ConnectionPhase::Connecting), [Turn::Wake], "from the beginning");
    waker.phase(ConnectionPhase::Connected);
    waker.wait(60_000);
    let turns = waker.phase(ConnectionPhase::Asleep);
    assert_eq!(turns, [say(Connection::Asleep, "asleep, waking it"), Turn::Wake]);
    waker.phase(ConnectionPhase::Connecting);
    waker.wait(100);
    let turns = waker.phase(ConnectionPhase::Asleep);
    assert!(!turns.contains(&Turn::Wake), "not faster than it can fall asleep: {turns:?}");
    let due = waker.standing.poll_timeout().unwrap();
    waker.now = due;
    assert_eq!(waker.look(), [Turn::Wake]);
}

#[test]
fn who_only_waits_wakes_to_begin_with_and_never_what_somebody_put_to_sleep_later() {
    let mut waiter = Desk::new(WAITER);
    assert!(waiter.phase(ConnectionPhase::Asleep).contains(&Turn::Wake));
    waiter.phase(ConnectionPhase::Connected);
    waiter.wait(60_000);
    let turns = waiter.phase(ConnectionPhase::Asleep);
    assert!(turns.contains(&Turn::EndsAsleep) && !turns.contains(&Turn::Wake), "{turns:?}");
}

#[test]
fn who_is_connected_already_wakes_nothing() {
    assert_eq!(Desk::new(WAKER).phase(ConnectionPhase::Connected), [connected()]);
}

#[test]
fn a_host_that_never_appears_or_cannot_is_an_error() {
    let failure = Failure::new(FailureReason::Platform, "No answer.");
    let mut standing = Standing::new(PERSON);
    let look = |standing: &mut Standing, now: Instant, platform: Option<&Failure>| {
        standing.look(Sight { now, connection: None, platform, shows: false })
    };
    assert_eq!(look(&mut standing, Instant(0), None), []);
    let due = standing.poll_timeout().unwrap();
    assert!(matches!(&look(&mut standing, due, None)[..], [Turn::Ends(_)]));
    let mut standing = Standing::new(PERSON);
    let turns = look(&mut standing, Instant(0), Some(&failure));
    assert_eq!(turns, [Turn::Ends("No answer.".to_owned())]);
}
