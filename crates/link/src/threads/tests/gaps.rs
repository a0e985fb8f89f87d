//! After a loss: everything once, in order, and an explicit word that it is all; or a snapshot.

use wakeful_wire::rpc::{Epoch, Event, PermissionOption, PermissionOptionKind, RequestId};

use super::*;

/// A turn that asks a question and ends, told to nobody.
fn miss_much(desk: &mut Desk) {
    let body = desk.log.turn_started(one());
    desk.log.push(one(), body);
    for number in 0..20 {
        let body = desk.log.text(one(), &format!("part {number}"));
        desk.log.push(one(), body);
    }
    let body = desk.log.turn_ended(one());
    desk.log.push(one(), body);
    let item = desk.log.text(one(), "").item().unwrap();
    let request = RequestId::from_uuid(uuid::Uuid::from_u128(7));
    let option = |id: &str| PermissionOption {
        id: id.to_owned(),
        name: id.to_owned(),
        kind: PermissionOptionKind::AllowOnce,
    };
    desk.log.push(
        one(),
        EventBody::PermissionRequested {
            item,
            request,
            tool: None,
            title: "May I?".to_owned(),
            options: vec![option("yes"), option("no")],
            key: None,
        },
    );
}

fn is_right(desk: &Desk) {
    assert!(desk.is_current(one()));
    let thread = &desk.held(one()).detail.thread;
    assert!(thread.turn.is_none() && thread.last_turn.is_some(), "the end of the run shows");
    assert_eq!(thread.permissions.len(), 1, "the question shows");
    assert_eq!(desk.state(one()).status, DataStatus::Live);
}

#[test]
fn what_was_missed_is_taken_in_once_before_the_thread_counts_as_current() {
    let (mut desk, _consumer) = Desk::live(WEB);
    let at = desk.held(one()).cursor;
    desk.disconnect();
    miss_much(&mut desk);
    desk.wait(seconds(30));
    desk.threads.handle_connected(desk.now);
    assert_eq!(desk.ask(one()), Some(at));
    let mut items = desk.log.feed(one(), Some(at));
    let marker = items.pop().unwrap();
    for item in items {
        desk.deliver(one(), item.clone());
        desk.deliver(one(), item);
        assert_eq!(desk.state(one()).status, DataStatus::Synchronizing);
    }
    desk.deliver(one(), marker);
    is_right(&desk);
}

#[test]
fn losses_in_the_middle_of_a_replay_go_on_from_where_it_was() {
    let (mut desk, _consumer) = Desk::live(WEB);
    desk.disconnect();
    miss_much(&mut desk);
    for _ in 0..2 {
        desk.threads.handle_connected(desk.now);
        let cursor = desk.ask(one());
        let events: Vec<Event> = desk
            .log
            .feed(one(), cursor)
            .into_iter()
            .filter_map(|item| {
                let ThreadItem::Events { events } = item else { return None };
                Some(events)
            })
            .flatten()
            .collect();
        desk.deliver(one(), ThreadItem::Resumed { cursor: cursor.unwrap() });
        desk.deliver(one(), ThreadItem::Events { events: events[..5].to_vec() });
        assert_eq!(desk.held(one()).cursor.seq, events[4].seq);
        desk.log.check(desk.held(one()));
        desk.disconnect();
    }
    desk.connect();
    is_right(&desk);
}

#[test]
fn a_gap_that_is_too_large_or_another_log_is_answered_by_a_snapshot() {
    let cases: [fn(&mut Desk); 3] = [
        |desk| desk.log.gap = 10,
        |desk| desk.log.restart(Epoch(4)),
        |desk| {
            let created = desk.log.events[0].seq;
            desk.log.restore(created, Epoch(5));
            miss_much(desk);
        },
    ];
    for case in cases {
        let (mut desk, _consumer) = Desk::live(WEB);
        desk.say(one(), "here only in the first log");
        desk.disconnect();
        miss_much(&mut desk);
        case(&mut desk);
        desk.connect();
        is_right(&desk);
        assert_eq!(desk.held(one()).cursor.epoch, desk.log.epoch);
        desk.disconnect();
        desk.connect();
        is_right(&desk);
    }
}

#[test]
fn a_snapshot_with_a_lower_number_replaces_what_is_held() {
    let (mut desk, _consumer) = Desk::live(WEB);
    let high = desk.say(one(), "lost with the log");
    desk.disconnect();
    desk.log.restore(Seq(high.0 - 1), Epoch(6));
    desk.connect();
    assert!(desk.held(one()).detail.thread.seq < high);
    assert!(desk.is_current(one()));
}

#[test]
fn an_unreadable_item_is_made_good_by_a_snapshot_and_never_passed_over() {
    let (mut desk, _consumer) = Desk::live(WEB);
    let stream = desk.open[&one()];
    desk.log.push(one(), desk.log.text(one(), "unreadable"));
    desk.threads.handle_unreadable(desk.now, stream);
    assert_eq!(resubscribes(&desk.take()), 1);
    let held = desk.held(one()).clone();
    desk.say(one(), "after it");
    assert_eq!(*desk.held(one()), held, "what follows the gap waits");
    assert_eq!(desk.state(one()).status, DataStatus::Synchronizing);
    assert_eq!(desk.follow(one()), None, "no resume, which would bring the same");
    assert!(desk.is_current(one()));
    assert_eq!(desk.state(one()).status, DataStatus::Live);
    desk.say(one(), "and on");
    let now = desk.held(one()).cursor;
    assert_eq!(desk.follow(one()), Some(now), "a resume is trusted again");
}

#[test]
fn an_unreadable_snapshot_is_an_error_and_not_a_loop() {
    let (mut desk, _consumer) = Desk::live(WEB);
    let stream = desk.open[&one()];
    desk.threads.handle_unreadable(desk.now, stream);
    assert_eq!(resubscribes(&desk.take()), 1);
    assert_eq!(desk.ask(one()), None);
    desk.threads.handle_unreadable(desk.now, stream);
    desk.threads.handle_unreadable(desk.now, stream);
    assert_eq!(desk.take(), []);
    assert_eq!(desk.state(one()).status, DataStatus::Cached);
    assert!(desk.state(one()).error.is_some());
    desk.disconnect();
    desk.connect();
    assert_eq!(desk.state(one()).status, DataStatus::Live);
    assert_eq!(desk.state(one()).error, None);
}

#[test]
fn a_host_that_goes_on_beyond_what_is_held_is_asked_for_a_snapshot() {
    let (mut desk, _consumer) = Desk::live(WEB);
    let missed = desk.log.push(one(), EventBody::Pinned {}).seq;
    let cursor = Cursor { epoch: desk.log.epoch, seq: missed };
    desk.ask(one());
    desk.deliver(one(), ThreadItem::Resumed { cursor });
    assert_eq!(resubscribes(&desk.take()), 1);
    assert_ne!(desk.state(one()).status, DataStatus::Live);
    assert_eq!(desk.follow(one()), None);
    assert!(desk.is_current(one()));
}

#[test]
fn items_of_a_newer_host_and_of_another_thread_are_no_harm() {
    let (mut desk, _consumer) = Desk::live(WEB);
    let state = desk.state(one()).clone();
    desk.deliver(one(), ThreadItem::Unknown);
    assert_eq!(*desk.state(one()), state);
    desk.log.create(thread(2));
    let (cursor, detail) = desk.log.snapshot(thread(2));
    desk.deliver(one(), ThreadItem::Snapshot { cursor, detail: Box::new(detail) });
    assert_eq!(desk.state(one()).held, state.held);
    assert_eq!(resubscribes(&desk.take()), 1);
}
