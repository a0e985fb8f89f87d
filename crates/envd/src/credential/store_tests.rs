//! The session store with its file.

use std::{path::PathBuf, time::Duration};

use tempfile::TempDir;
use tokio::sync::broadcast::error::TryRecvError;
use wakeful_wire::{
    Code, HostSessionId, Timestamp,
    host::{Denial, Scope, Scopes, SessionEvent, SessionMethod, SessionView, close},
};

use super::{
    CloseCause, CredentialError, Session, SessionFileError, SessionStore,
    ledger::Issue,
    testing::{START, TestClock, key, scopes, session_id, user},
};

const HOUR: Duration = Duration::from_secs(3_600);

struct Bench {
    dir: TempDir,
    clock: TestClock,
    store: SessionStore,
}

impl Bench {
    async fn open() -> Self {
        Self::with_room_for(100).await
    }

    async fn with_room_for(sessions: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = TestClock::new();
        let path = dir.path().join("sessions.db");
        let (store, _) = SessionStore::open(&path, clock.sources(), sessions).await.unwrap();
        Self { dir, clock, store }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("sessions.db")
    }

    async fn reopen(self) -> Self {
        self.store.close().await;
        let (store, _) = SessionStore::open(&self.path(), self.clock.sources(), 100).await.unwrap();
        Self { store, ..self }
    }

    async fn issue(&self, issue: Issue) -> Session {
        self.store.issue(issue, None).await.unwrap()
    }

    async fn sql(&self, sql: &'static str) {
        let url = format!("sqlite://{}", self.path().display());
        let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
        sqlx::raw_sql(sql).execute(&pool).await.unwrap();
        pool.close().await;
    }

    fn listed(&self) -> Vec<(HostSessionId, u32)> {
        self.store.list().iter().map(|view| (view.id, view.connections)).collect()
    }

    fn view(&self, id: HostSessionId) -> SessionView {
        self.store.list().into_iter().find(|view| view.id == id).unwrap()
    }
}

fn issue(n: u64) -> Issue {
    Issue {
        id: session_id(n),
        subject: user("alice"),
        scopes: scopes(),
        method: SessionMethod::Grant,
        key: key(1),
        label: "laptop".into(),
        lifetime: HOUR,
        replaces: false,
    }
}

#[tokio::test]
async fn sessions_survive_a_restart_and_revocation_does_too() {
    let bench = Bench::open().await;
    let kept = bench.issue(issue(1)).await;
    bench.issue(issue(2)).await;
    assert!(bench.store.revoke(session_id(2)).await.unwrap());
    assert!(!bench.store.revoke(session_id(2)).await.unwrap());
    assert!(!bench.store.revoke(session_id(9)).await.unwrap());
    drop(bench.store.connect(session_id(1)).await.unwrap());
    bench.issue(Issue { lifetime: 2 * HOUR, ..issue(3) }).await;
    let bench = bench.reopen().await;
    let connected = Session { last_connected_at: Some(START), ..kept };
    assert_eq!(bench.store.holding(session_id(1)), Ok(connected));
    assert_eq!(bench.store.holding(session_id(2)), Err(Denial::SessionRevoked));
    bench.clock.advance(HOUR);
    let bench = bench.reopen().await;
    assert_eq!(bench.store.holding(session_id(1)), Err(Denial::SessionUnknown));
    let newest = bench.issue(issue(4)).await;
    assert!(newest.sequence > bench.store.holding(session_id(3)).unwrap().sequence);
}

#[tokio::test]
async fn the_last_connection_is_of_the_first_socket_and_not_of_further_ones() {
    let bench = Bench::open().await;
    bench.issue(issue(1)).await;
    assert_eq!(bench.view(session_id(1)).last_connected_at, None);
    let first = bench.store.connect(session_id(1)).await.unwrap();
    let at = bench.clock.now();
    bench.clock.advance(Duration::from_secs(1));
    let second = bench.store.connect(session_id(1)).await.unwrap();
    let view = bench.view(session_id(1));
    assert_eq!((view.last_connected_at, view.connections), (Some(at), 2));
    drop(first);
    drop(second);
    assert_eq!(bench.view(session_id(1)).connections, 0);
    bench.clock.advance(Duration::from_secs(1));
    let _again = bench.store.connect(session_id(1)).await.unwrap();
    assert_eq!(bench.view(session_id(1)).last_connected_at, Some(bench.clock.now()));
    bench.store.check_counts();
}

#[tokio::test]
async fn an_expired_session_stays_listed_until_its_last_socket_has_closed() {
    let bench = Bench::open().await;
    bench.issue(issue(1)).await;
    let first = bench.store.connect(session_id(1)).await.unwrap();
    let second = bench.store.connect(session_id(1)).await.unwrap();
    bench.clock.advance(HOUR);
    let mut events = bench.store.follow();
    assert_eq!(bench.listed(), [(session_id(1), 2)]);
    assert_eq!(first.closing(), Some(CloseCause::Expired));
    // Its credentials are refused all the same, and a renewal beside it changes nothing.
    assert_eq!(bench.store.holding(session_id(1)), Err(Denial::SessionExpired));
    let refused = bench.store.connect(session_id(1)).await.err();
    assert_eq!(refused, Some(Denial::SessionExpired));
    bench.issue(issue(2)).await;
    assert_eq!(bench.listed(), [(session_id(1), 2), (session_id(2), 0)]);
    let new = events.recv().await.unwrap();
    assert!(matches!(new, SessionEvent::Updated { session } if session.id == session_id(2)));

    drop(first);
    let update = events.recv().await.unwrap();
    assert!(
        matches!(update, SessionEvent::Updated { session } if session.connections == 1),
        "the first of two closes"
    );
    drop(second);
    assert_eq!(events.recv().await.unwrap(), SessionEvent::Removed { id: session_id(1) });
    assert_eq!(bench.listed(), [(session_id(2), 0)]);
    assert_eq!(events.try_recv(), Err(TryRecvError::Empty));
    bench.store.check_counts();
}

#[tokio::test]
async fn revoking_removes_connected_sessions_from_the_list_even_if_expired() {
    let bench = Bench::open().await;
    for n in 1..=3 {
        bench.issue(Issue { key: key(n), ..issue(n.into()) }).await;
    }
    bench.issue(Issue { subject: user("bob"), ..issue(4) }).await;
    let mut sockets = Vec::new();
    for n in 1..=4 {
        sockets.push(bench.store.connect(session_id(n)).await.unwrap());
    }
    bench.clock.advance(HOUR);
    bench.issue(Issue { key: key(5), ..issue(5) }).await;
    assert_eq!(bench.listed().len(), 5);
    bench.store.revoke(session_id(1)).await.unwrap();
    assert_eq!(bench.listed().len(), 4);
    let own = bench.store.revoke_others(session_id(5), Some(user("alice"))).await.unwrap();
    assert_eq!(own, 2);
    assert_eq!(bench.listed(), [(session_id(4), 1), (session_id(5), 0)]);
    assert_eq!(bench.store.revoke_others(session_id(5), None).await.unwrap(), 1);
    assert_eq!(bench.listed(), [(session_id(5), 0)]);
    drop(sockets);
    assert_eq!(bench.listed(), [(session_id(5), 0)]);
}

#[tokio::test]
async fn revoking_closes_a_socket_that_waits() {
    let bench = Bench::open().await;
    bench.issue(issue(1)).await;
    let mut socket = bench.store.connect(session_id(1)).await.unwrap();
    let waiting = tokio::spawn(async move { socket.ended().await });
    bench.store.revoke(session_id(1)).await.unwrap();
    let cause = waiting.await.unwrap();
    assert_eq!((cause, cause.code()), (CloseCause::Revoked, close::SESSION_REVOKED));
}

#[tokio::test]
async fn a_socket_notices_by_itself_that_its_session_has_run_out() {
    let bench = Bench::open().await;
    let session = bench.issue(issue(1)).await;
    let mut socket = bench.store.connect(session_id(1)).await.unwrap();
    bench.clock.set(Timestamp(session.expires_at.0 - 5));
    let waiting = tokio::spawn(async move { socket.ended().await });
    tokio::task::yield_now().await;
    bench.clock.set(session.expires_at);
    let cause = waiting.await.unwrap();
    assert_eq!((cause, cause.code()), (CloseCause::Expired, close::SESSION_EXPIRED));
}

#[tokio::test]
async fn a_newer_session_takes_the_sockets_over_and_only_its_revocation_closes_them() {
    let bench = Bench::open().await;
    bench.issue(issue(1)).await;
    let first = bench.store.connect(session_id(1)).await.unwrap();
    let second = bench.store.connect(session_id(1)).await.unwrap();
    bench.clock.advance(HOUR - Duration::from_secs(30));
    let mut events = bench.store.follow();
    bench.issue(issue(2)).await;
    assert_eq!(bench.listed(), [(session_id(1), 0), (session_id(2), 2)]);
    assert_eq!(bench.view(session_id(2)).last_connected_at, Some(bench.clock.now()));
    // The new one is told first, so no follower ever sees the client disconnected.
    for (id, connections) in [(2, 2), (1, 0)] {
        let SessionEvent::Updated { session } = events.recv().await.unwrap() else { panic!() };
        assert_eq!((session.id, session.connections), (session_id(id), connections));
    }
    bench.store.revoke(session_id(1)).await.unwrap();
    bench.clock.advance(Duration::from_secs(60));
    bench.store.tick();
    assert_eq!((first.closing(), second.closing()), (None, None));
    assert_eq!(first.session().id, session_id(2));
    bench.store.revoke(session_id(2)).await.unwrap();
    assert_eq!(first.closing(), Some(CloseCause::Revoked));
    assert_eq!(second.closing(), Some(CloseCause::Revoked));
    bench.store.check_counts();
}

#[tokio::test]
async fn a_socket_that_opens_late_stands_on_the_newest_session_at_once() {
    let bench = Bench::open().await;
    bench.issue(issue(1)).await;
    bench.issue(issue(2)).await;
    let wider = Scopes::from_iter([Scope::Read, Scope::Write, Scope::Approve]);
    bench.issue(Issue { scopes: wider, ..issue(3) }).await;
    let socket = bench.store.connect(session_id(1)).await.unwrap();
    assert_eq!(socket.session().id, session_id(2));
    assert_eq!(bench.listed(), [(session_id(1), 0), (session_id(2), 1), (session_id(3), 0)]);
}

#[tokio::test]
async fn of_many_replacing_issues_one_session_stays() {
    let bench = Bench::open().await;
    bench.issue(Issue { method: SessionMethod::Pairing, ..issue(90) }).await;
    bench.issue(Issue { subject: user("bob"), ..issue(91) }).await;
    let issues = (1..=8).map(|n| {
        let store = bench.store.clone();
        tokio::spawn(async move { store.issue(Issue { replaces: true, ..issue(n) }, None).await })
    });
    for done in issues.collect::<Vec<_>>() {
        done.await.unwrap().unwrap();
    }
    assert_eq!(bench.listed().len(), 3, "one, and the two of another method and subject");
    let bench = bench.reopen().await;
    assert_eq!(bench.listed().len(), 3);
}

#[tokio::test]
async fn a_replacement_of_the_same_client_moves_its_socket_first() {
    let bench = Bench::open().await;
    bench.issue(issue(1)).await;
    let socket = bench.store.connect(session_id(1)).await.unwrap();
    bench.issue(Issue { replaces: true, ..issue(2) }).await;
    assert_eq!(bench.listed(), [(session_id(2), 1)]);
    assert_eq!(socket.closing(), None);
}

#[tokio::test]
async fn what_cannot_be_stored_did_not_happen_and_is_no_denial() {
    let bench = Bench::open().await;
    let session = bench.issue(issue(1)).await;
    let socket = bench.store.connect(session_id(1)).await.unwrap();
    let mut events = bench.store.follow();
    // A second session of the same id is refused by the file, in the middle of a replacement.
    bench.issue(Issue { key: key(2), ..issue(2) }).await;
    while events.try_recv().is_ok() {}
    let again = Issue { replaces: true, ..issue(2) };
    let failed = bench.store.issue(again, None).await.unwrap_err();
    assert!(matches!(failed, CredentialError::File(_)), "{failed:?}");
    assert_eq!(bench.store.holding(session_id(1)).unwrap().id, session.id);
    bench.store.close().await;
    let failed = bench.store.revoke(session_id(1)).await.unwrap_err();
    assert_eq!(failed.code(), Code::Internal);
    assert!(bench.store.issue(issue(3), None).await.is_err());
    assert_eq!(bench.listed(), [(session_id(1), 1), (session_id(2), 0)]);
    assert_eq!(socket.closing(), None);
    assert_eq!(events.try_recv(), Err(TryRecvError::Empty));
}

#[tokio::test]
async fn a_change_is_carried_through_though_whoever_asked_has_left() {
    let bench = Bench::open().await;
    bench.issue(issue(1)).await;
    let mut events = bench.store.follow();
    let mut revoking = Box::pin(bench.store.revoke(session_id(1)));
    let polled = std::future::poll_fn(|context| {
        std::task::Poll::Ready(revoking.as_mut().poll(context).is_ready())
    });
    assert!(!polled.await);
    drop(revoking);
    assert_eq!(events.recv().await.unwrap(), SessionEvent::Removed { id: session_id(1) });
    assert_eq!(bench.store.holding(session_id(1)), Err(Denial::SessionRevoked));
}

#[tokio::test]
async fn at_the_bound_the_dead_go_first_then_the_subjects_own_and_nobody_elses() {
    let bench = Bench::with_room_for(3).await;
    bench.issue(Issue { key: key(1), ..issue(1) }).await;
    bench.issue(Issue { subject: user("bob"), ..issue(2) }).await;
    bench.issue(Issue { key: key(3), ..issue(3) }).await;
    bench.store.revoke(session_id(3)).await.unwrap();
    bench.issue(Issue { key: key(4), ..issue(4) }).await;
    assert_eq!(bench.listed().len(), 3);
    assert_eq!(bench.store.holding(session_id(3)), Err(Denial::SessionUnknown));
    bench.issue(Issue { key: key(5), ..issue(5) }).await;
    assert_eq!(bench.store.holding(session_id(1)), Err(Denial::SessionUnknown));
    let _four = bench.store.connect(session_id(4)).await.unwrap();
    let _five = bench.store.connect(session_id(5)).await.unwrap();
    let full = bench.store.issue(Issue { key: key(6), ..issue(6) }, None).await.unwrap_err();
    assert_eq!(full.denial(), Some(Denial::SessionsFull));
    assert_eq!(bench.listed(), [(session_id(2), 0), (session_id(4), 1), (session_id(5), 1)]);
}

#[tokio::test]
async fn a_slow_follower_is_told_that_it_missed_some() {
    let bench = Bench::open().await;
    bench.issue(issue(1)).await;
    let mut events = bench.store.follow();
    for _ in 0..200 {
        drop(bench.store.connect(session_id(1)).await.unwrap());
    }
    assert!(matches!(events.try_recv(), Err(TryRecvError::Lagged(_))));
}

#[tokio::test]
async fn the_file_is_its_owners_alone_and_a_newer_one_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::open().await;
    let mode = std::fs::metadata(bench.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    bench.store.close().await;
    bench.sql("PRAGMA user_version = 99").await;
    let opened = SessionStore::open(&bench.path(), bench.clock.sources(), 10).await;
    assert!(matches!(opened, Err(SessionFileError::Newer)));
}

#[tokio::test]
async fn a_session_that_cannot_be_read_is_left_out_and_the_others_stay() {
    let bench = Bench::open().await;
    bench.issue(issue(1)).await;
    bench.issue(issue(2)).await;
    bench.store.close().await;
    bench.sql("UPDATE sessions SET key_thumbprint = 'x' WHERE sequence = 1").await;
    let bench = bench.reopen().await;
    assert_eq!(bench.listed(), [(session_id(2), 0)]);
}
