use wakeful_wire::rpc::{Cursor, Epoch, Seq};

use super::*;
use crate::{ConnectionPhase, DataStatus};

mod frame;
mod hold;
mod window;

type Rows = &'static str;

/// The host with this number.
fn host(number: u128) -> HostId {
    HostId::from_uuid(uuid::Uuid::from_u128(number))
}

fn at(seconds: f64) -> Instant {
    Instant::default().after(Duration::from_secs_f64(seconds))
}

fn snapshot(seq: u64) -> Option<Cursor> {
    Some(Cursor { epoch: Epoch(1), seq: Seq(seq) })
}

/// A host that nobody connects to, with cached rows.
fn cached(rows: Rows) -> Seen<Rows> {
    Seen {
        phase: ConnectionPhase::Available,
        attempt: 0,
        session: 0,
        status: DataStatus::Cached,
        snapshot: None,
        rows: Some(rows),
    }
}

/// The same on an attempt.
fn connecting(attempt: u32, rows: Rows) -> Seen<Rows> {
    let status = DataStatus::Synchronizing;
    Seen { phase: ConnectionPhase::Connecting, attempt, status, ..cached(rows) }
}

/// The same with a session, before anything came over it.
fn connected(rows: Rows) -> Seen<Rows> {
    Seen { phase: ConnectionPhase::Connected, session: 1, ..connecting(1, rows) }
}

/// The same after the host's snapshot.
fn arrived(seq: u64, rows: Rows) -> Seen<Rows> {
    Seen { snapshot: snapshot(seq), ..connected(rows) }
}

/// The same when it is synchronized.
fn live(seq: u64, rows: Rows) -> Seen<Rows> {
    Seen { status: DataStatus::Live, ..arrived(seq, rows) }
}

fn backoff(rows: Rows) -> Seen<Rows> {
    Seen { phase: ConnectionPhase::Backoff, ..connecting(1, rows) }
}

/// Lists whose first frame is painted.
fn steady() -> Steady<Rows> {
    let mut steady = Steady::new(at(0.0));
    steady.handle_enabled(at(0.0), []);
    assert_eq!(steady.poll_action(), Some(Action::Paint));
    steady
}

/// Lists of hosts that are on their first attempts, with cached rows.
fn starting(hosts: impl IntoIterator<Item = u128>) -> Steady<Rows> {
    let mut steady = steady();
    for number in hosts {
        steady.handle_host(at(0.0), host(number), cached("cached"));
        steady.handle_host(at(0.0), host(number), connecting(1, "cached"));
    }
    while steady.poll_action().is_some() {}
    steady
}

/// The hosts that changed, each step by itself.
fn changes(steady: &mut Steady<Rows>) -> Vec<Vec<u128>> {
    let mut changes = Vec::new();
    while let Some(action) = steady.poll_action() {
        let Action::Changed(hosts) = action else { panic!("{action:?}") };
        changes.push(hosts.into_iter().map(|host| host.uuid().as_u128()).collect());
    }
    changes
}

fn shown(steady: &Steady<Rows>, number: u128) -> Rows {
    steady.shown(host(number)).copied().unwrap_or_default()
}
