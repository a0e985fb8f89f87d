//! What a consumer gets that passes items on.

use super::*;

/// What was tapped, without the events' bodies.
fn tapped(desk: &mut Desk) -> Vec<String> {
    let items = desk.threads.take_tapped(one()).into_iter();
    let name = |item| match item {
        ThreadItem::Snapshot { .. } => "snapshot".to_owned(),
        ThreadItem::Resumed { .. } => "resumed".to_owned(),
        ThreadItem::Events { events } => {
            let seqs: Vec<_> = events.iter().map(|event| event.seq.0.to_string()).collect();
            seqs.join(",")
        }
        ThreadItem::Synchronized { .. } => "synchronized".to_owned(),
        ThreadItem::Deleted { .. } => "deleted".to_owned(),
        ThreadItem::Unknown => "unknown".to_owned(),
    };
    items.map(name).collect()
}

#[test]
fn a_tap_gives_what_was_taken_in_once_and_in_order() {
    let mut desk = Desk::new(WEB);
    desk.mount(one());
    assert!(desk.threads.tap(one()));
    desk.connect();
    assert_eq!(tapped(&mut desk), ["snapshot", "synchronized"]);
    let body = desk.log.turn_started(one());
    let started = desk.log.push(one(), body).seq;
    desk.disconnect();
    desk.threads.handle_connected(desk.now);
    let cursor = desk.ask(one());
    for item in desk.log.feed(one(), cursor) {
        desk.deliver(one(), item.clone());
        if matches!(item, ThreadItem::Events { .. }) {
            desk.deliver(one(), item);
        }
    }
    assert_eq!(tapped(&mut desk), ["resumed", &*started.0.to_string(), "synchronized"]);
    assert_eq!(tapped(&mut desk), [""; 0]);
    let stream = desk.open[&one()];
    desk.threads.handle_gone(desk.now, stream);
    assert_eq!(tapped(&mut desk), ["deleted"]);
}

#[test]
fn nothing_waits_for_nobody() {
    let (mut desk, _consumer) = Desk::live(WEB);
    desk.disconnect();
    desk.connect();
    assert_eq!(tapped(&mut desk), [""; 0]);
    assert!(!desk.threads.tap(thread(9)), "it has no stream");
}

#[test]
fn more_than_may_wait_gives_way_to_one_snapshot() {
    let (mut desk, _consumer) = Desk::live(WEB);
    desk.threads.tap(one());
    let body = desk.log.turn_started(one());
    let event = desk.log.push(one(), body);
    desk.deliver(one(), ThreadItem::Events { events: vec![event] });
    for _ in 0..TAPPED_MAX {
        let body = desk.log.text(one(), ".");
        let event = desk.log.push(one(), body);
        desk.deliver(one(), ThreadItem::Events { events: vec![event] });
    }
    let held = desk.held(one()).clone();
    let items = desk.threads.take_tapped(one());
    let [ThreadItem::Snapshot { cursor, detail }, ThreadItem::Synchronized { .. }] = &items[..]
    else {
        panic!("{} items", items.len())
    };
    assert_eq!((*cursor, &**detail), (held.cursor, &*held.detail));
    let body = desk.log.text(one(), "more");
    let event = desk.log.push(one(), body);
    let seq = event.seq.0.to_string();
    desk.deliver(one(), ThreadItem::Events { events: vec![event] });
    assert_eq!(tapped(&mut desk), [seq], "it goes on from there");
}
