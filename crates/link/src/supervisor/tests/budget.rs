//! Attempts of many hosts.

use std::collections::BTreeSet;

use wakeful_wire::HostId;

use super::*;
use crate::supervisor::{Budget, budget::PLACES};

fn host(number: u128) -> HostId {
    HostId::from_uuid(uuid::Uuid::from_u128(number))
}

const ONE: AttemptId = AttemptId(1);

fn granted(budget: &mut Budget) -> Vec<(HostId, AttemptId)> {
    std::iter::from_fn(|| budget.poll_granted()).collect()
}

fn hosts(numbers: impl IntoIterator<Item = u128>) -> Vec<(HostId, AttemptId)> {
    numbers.into_iter().map(|number| (host(number), ONE)).collect()
}

#[test]
fn four_attempts_are_under_way_and_a_fifth_only_for_a_person() {
    let now = Instant(0);
    let mut budget = Budget::new(now);
    for number in 0..10 {
        budget.want(now, host(number), ONE, false);
    }
    assert_eq!(granted(&mut budget), hosts(0..4));
    budget.want(now, host(20), ONE, true);
    budget.want(now, host(21), ONE, true);
    assert_eq!(granted(&mut budget), hosts([20]));
    budget.finished(now, host(0), ONE);
    assert_eq!(granted(&mut budget), hosts([21]), "a person goes before the others");
    budget.finished(now, host(20), ONE);
    assert_eq!(granted(&mut budget), hosts([4]));
    budget.finished(now, host(1), ONE);
    assert_eq!(granted(&mut budget), hosts([5]));
}

#[test]
fn a_burst_of_ten_is_followed_by_one_a_second() {
    let mut now = Instant(0);
    let mut budget = Budget::new(now);
    for number in 0..20 {
        budget.want(now, host(number), ONE, false);
    }
    let mut begun = Vec::new();
    loop {
        let batch = granted(&mut budget);
        begun.extend(batch.iter().map(|_| now.0));
        if batch.is_empty() {
            let Some(due) = budget.poll_timeout() else { break };
            now = due;
            budget.handle_timeout(now);
        }
        for (host, attempt) in batch {
            budget.finished(now, host, attempt);
        }
    }
    let expected: Vec<u64> = [0; 10].into_iter().chain((1..=10).map(|s| s * 1_000)).collect();
    assert_eq!(begun, expected);
}

#[test]
fn a_person_needs_no_token() {
    let now = Instant(0);
    let mut budget = Budget::new(now);
    for number in 0..11 {
        budget.want(now, host(number), ONE, false);
        budget.finished(now, host(number), ONE);
    }
    granted(&mut budget);
    budget.want(now, host(30), ONE, false);
    assert_eq!(granted(&mut budget), []);
    budget.want(now, host(31), ONE, true);
    assert_eq!(granted(&mut budget), hosts([31]));
    assert_eq!(budget.poll_timeout(), Some(Instant(1_000)));
}

#[test]
fn a_host_that_fails_quickly_stands_behind_every_other() {
    let mut now = Instant(0);
    let mut budget = Budget::new(now);
    for number in 0..6 {
        budget.want(now, host(number), ONE, false);
    }
    // Hosts 4 and 5 never get a place by waiting for the rest to be done with their retries.
    let mut order = Vec::new();
    for round in 1..200 {
        for (host, attempt) in granted(&mut budget) {
            order.push(host);
            budget.want(now, host, AttemptId(attempt.0 + 1), false);
            budget.finished(now, host, attempt);
        }
        now = Instant(round * 1_000);
        budget.handle_timeout(now);
    }
    for window in order.windows(6) {
        assert_eq!(window.iter().collect::<BTreeSet<_>>().len(), 6, "{window:?}");
    }
    assert!(order.len() > 100);
}

#[test]
fn people_do_not_keep_the_others_waiting_for_ever() {
    let now = Instant(0);
    let mut budget = Budget::new(now);
    for number in 0..100 {
        budget.want(now, host(number), ONE, true);
    }
    budget.want(now, host(200), ONE, false);
    let mut order = granted(&mut budget);
    let mut next = 0;
    while let Some((host, attempt)) = order.get(next).copied() {
        next += 1;
        budget.finished(now, host, attempt);
        order.extend(granted(&mut budget));
    }
    let turn = order.iter().position(|(other, _)| *other == host(200)).unwrap();
    assert!(turn <= PLACES + 1, "it was the {turn}th");
    assert_eq!(order.len(), 101);
}

#[test]
fn what_is_given_up_leaves_the_line_and_its_place() {
    let now = Instant(0);
    let mut budget = Budget::new(now);
    for number in 0..7 {
        budget.want(now, host(number), ONE, false);
        budget.want(now, host(number), ONE, false);
    }
    // Granted, not yet fetched.
    budget.finished(now, host(3), ONE);
    budget.finished(now, host(4), ONE);
    budget.finished(now, host(99), ONE);
    assert_eq!(granted(&mut budget), hosts([0, 1, 2, 5]));
    budget.want(now, host(6), AttemptId(2), true);
    budget.forget(now, host(6));
    budget.forget(now, host(0));
    assert_eq!(granted(&mut budget), [], "nobody waits");
    budget.want(now, host(8), ONE, false);
    assert_eq!(granted(&mut budget), hosts([8]));
}

#[test]
fn a_rest_saves_no_more_than_one_burst_and_loses_no_part_of_a_second() {
    let mut now = Instant(0);
    let mut budget = Budget::new(now);
    let count = |budget: &mut Budget, now: Instant| {
        let mut begun = 0;
        for number in 0..30 {
            budget.want(now, host(number), ONE, false);
            begun += granted(budget).len();
            budget.finished(now, host(number), ONE);
        }
        begun
    };
    assert_eq!(count(&mut budget, now), 10);
    now = Instant(900);
    assert_eq!(count(&mut budget, now), 0);
    now = Instant(1_100);
    assert_eq!(count(&mut budget, now), 1);
    now = Instant(2_000);
    assert_eq!(count(&mut budget, now), 1);
    now = Instant(10_000_000);
    assert_eq!(count(&mut budget, now), 10);
    assert_eq!(count(&mut budget, Instant(0)), 0, "a clock that goes back gives nothing");
}

#[test]
fn two_hundred_hosts_of_one_client_come_back_without_a_storm() {
    let mut budget = Budget::new(Instant(0));
    let mut benches: Vec<_> = (0..200)
        .map(|seed| {
            let mut bench = Bench::seeded(seed);
            bench.now = Instant(0);
            bench.stingy = true;
            bench.tell(Input::Connect { wake: false });
            bench
        })
        .collect();
    for (number, bench) in benches.iter_mut().enumerate() {
        budget.want(Instant(0), host(number as u128), bench.last(), false);
        bench.take();
    }
    let mut per_second = Vec::new();
    for second in 0..200_u64 {
        let now = Instant(second * 1_000);
        budget.handle_timeout(now);
        let mut begun = 0;
        while let Some((id, attempt)) = budget.poll_granted() {
            begun += 1;
            let bench = &mut benches[id.uuid().as_u128() as usize];
            bench.now = now;
            bench.tell(Input::Granted { attempt });
            bench.become_ready(RouteClass::Public);
            assert_eq!(bench.phase(), ConnectionPhase::Connected);
            budget.finished(now, id, attempt);
        }
        per_second.push(begun);
    }
    assert_eq!(per_second[0], 10);
    assert!(per_second[1..].iter().all(|begun| *begun <= 1));
    assert!(benches.iter().all(|bench| bench.phase() == ConnectionPhase::Connected));
}
