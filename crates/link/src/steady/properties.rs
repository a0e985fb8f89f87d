//! Any order of connections, snapshots and commands: what is held is held for a reason and for a
//! bounded time, and what follows follows.

use wakeful_wire::rpc::{Cursor, Epoch, Seq};

use super::*;
use crate::{Chance, ConnectionPhase, DataStatus};

const PHASES: [ConnectionPhase; 7] = [
    ConnectionPhase::Available,
    ConnectionPhase::Offline,
    ConnectionPhase::Connecting,
    ConnectionPhase::Backoff,
    ConnectionPhase::Connected,
    ConnectionPhase::Blocked,
    ConnectionPhase::Asleep,
];

fn host(number: u64) -> HostId {
    HostId::from_uuid(uuid::Uuid::from_u128(u128::from(number)))
}

fn step(seen: &mut Seen<u64>, chance: &mut Chance, rows: u64) {
    match chance.draw() % 6 {
        0 => {
            let place = usize::try_from(chance.draw() % 7).unwrap();
            seen.phase = PHASES[place];
            seen.status = DataStatus::Synchronizing;
            match seen.phase {
                ConnectionPhase::Connecting => seen.attempt += 1,
                ConnectionPhase::Connected => seen.session += 1,
                ConnectionPhase::Available
                | ConnectionPhase::Offline
                | ConnectionPhase::Backoff
                | ConnectionPhase::Blocked
                | ConnectionPhase::Asleep => seen.status = DataStatus::Cached,
            }
            if chance.draw().is_multiple_of(3) {
                seen.attempt = 0;
            }
        }
        1 => seen.snapshot = Some(Cursor { epoch: Epoch(1), seq: Seq(rows) }),
        2 if seen.phase == ConnectionPhase::Connected => seen.status = DataStatus::Live,
        _ => {}
    }
    seen.rows = Some(rows);
}

fn run(seed: u64, steps: u64) {
    let mut chance = Chance::seeded(seed);
    let mut now = Instant(0);
    let mut steady = Steady::new(now);
    steady.handle_enabled(now, []);
    let first = Seen {
        phase: ConnectionPhase::Available,
        attempt: 0,
        session: 0,
        status: DataStatus::Cached,
        snapshot: None,
        rows: Some(0),
    };
    let mut seen = vec![first; 4];
    // Since when a host's rows have been held while it was connected, without a break.
    let mut held = vec![None; 4];
    for rows in 1..steps {
        now = now.after(Duration::from_millis(chance.draw() % 900));
        let number = chance.draw() % 4;
        let place = usize::try_from(number).unwrap();
        match chance.draw() % 8 {
            0 => steady.handle_moved(now, host(number)),
            1 => steady.handle_timeout(now),
            _ => {
                step(&mut seen[place], &mut chance, rows);
                steady.handle_host(now, host(number), seen[place].clone());
            }
        }
        while steady.poll_action().is_some() {}
        assert!(steady.poll_timeout().is_none_or(|at| at > now), "what is due is done");
        let waits_for = |seen: &Seen<u64>| {
            seen.phase == ConnectionPhase::Connected
                || seen.phase == ConnectionPhase::Connecting && seen.attempt <= 1
        };
        for (number, (seen, held)) in (0..).zip(seen.iter().zip(&mut held)) {
            let (host, may_move) = (host(number), steady.may_move(host(number)));
            if steady.live(host).is_none() {
                continue;
            }
            assert_eq!(steady.live(host), seen.rows.as_ref());
            if may_move {
                assert_eq!(steady.shown(host), seen.rows.as_ref(), "what is not held follows");
                *held = None;
                continue;
            }
            let since = *held.get_or_insert(now);
            let bound = STEADY_CAP + WINDOW + Duration::from_secs(15);
            let connects = seen.phase == ConnectionPhase::Connecting;
            assert!(connects || now.since(since) <= bound, "held since {since:?} at {now:?}");
            if connects {
                *held = Some(now);
            }
        }
        if !seen.iter().any(waits_for) {
            assert!(
                (0..4)
                    .all(|number| steady.live(host(number)).is_none()
                        || steady.may_move(host(number))),
                "nobody is waited for, so nothing is held"
            );
        }
    }
}

#[test]
fn nothing_is_held_without_a_reason_or_for_ever() {
    for seed in 0..200 {
        run(seed, 500);
    }
}
