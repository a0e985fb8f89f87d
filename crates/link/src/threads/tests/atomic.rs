//! State and position are one value, and the past changes nothing.

use wakeful_wire::rpc::Event;

use super::*;

#[test]
fn a_stream_that_ends_between_two_items_keeps_what_was_taken_in_whole() {
    let (mut desk, consumer) = Desk::live(WEB);
    desk.say(one(), "first");
    let whole = desk.held(one()).clone();
    let second = desk.log.push(one(), desk.log.text(one(), "second"));
    let stream = desk.open[&one()];
    desk.unmount(consumer);
    let late = ThreadItem::Events { events: vec![second] };
    desk.threads.handle_item(desk.now, stream, late);
    assert_eq!(desk.disk[&one()], whole);
    desk.threads.mount(desk.now, one()).unwrap();
    desk.pump();
    assert_eq!(*desk.held(one()), whole);
    assert_eq!(desk.follow(one()), Some(whole.cursor));
    assert!(desk.is_current(one()));
}

#[test]
fn a_batch_is_one_update_and_its_position_never_leads_its_state() {
    let (mut desk, _consumer) = Desk::live(WEB);
    let before = desk.held(one()).clone();
    let events: Vec<Event> =
        (0..3).map(|_| desk.log.push(one(), desk.log.text(one(), "text"))).collect();
    // What belongs to another thread must not move the position, wherever it stands in a batch.
    let stranger = desk.log.create(thread(2));
    let newest = events[2].seq;
    let batch = [events.clone(), vec![stranger]].concat();
    let stream = desk.open[&one()];
    desk.threads.handle_item(desk.now, stream, ThreadItem::Events { events: batch });
    let changed = Action::Changed { thread: one() };
    assert_eq!(desk.threads.poll_action(), Some(changed), "published once");
    assert_eq!(desk.threads.poll_action(), None);
    assert_eq!(desk.held(one()).cursor.seq, newest);
    desk.log.check(desk.held(one()));
    desk.log.check(&before);

    let again = ThreadItem::Events { events };
    let held = desk.held(one()).clone();
    desk.threads.handle_item(desk.now, stream, again);
    assert_eq!(*desk.held(one()), held, "what comes twice is taken in once");
    assert_eq!(desk.threads.poll_action(), None);
}

#[test]
fn whoever_holds_a_published_value_sees_it_unchanged() {
    let (mut desk, _consumer) = Desk::live(WEB);
    let shown = desk.held(one()).clone();
    let copy = Held { detail: std::sync::Arc::new((*shown.detail).clone()), ..shown.clone() };
    desk.say(one(), "later");
    assert_eq!(shown, copy);
    assert_ne!(*desk.held(one()), shown);
}

#[test]
fn a_write_of_an_earlier_scope_never_ends_up_over_its_successors() {
    let (mut desk, consumer) = Desk::live(WEB);
    desk.slow_disk = true;
    let first = desk.say(one(), "first");
    desk.unmount(consumer);
    let consumer = desk.mount(one());
    let second = desk.say(one(), "second");
    desk.unmount(consumer);
    let consumer = desk.mount(one());
    let third = desk.say(one(), "third");
    desk.unmount(consumer);

    let given_out = |desk: &Desk| {
        let of = |action: &Action| {
            let Action::Save { write, held, .. } = action else { return None };
            Some((*write, held.cursor.seq))
        };
        desk.disk_queue.iter().filter_map(of).collect::<Vec<_>>()
    };
    let written = given_out(&desk);
    assert_eq!(written.len(), 1, "one at a time");
    assert_eq!(written[0].1, first);
    desk.threads.handle_written(written[0].0);
    desk.pump();
    let written = given_out(&desk);
    assert_eq!(written.len(), 2);
    assert_eq!(written[1].1, third, "of those that wait, the newest alone");
    assert!(second < third);
    desk.threads.handle_written(written[1].0);
    desk.pump();
    assert_eq!(given_out(&desk).len(), 2);
}

#[test]
fn what_comes_for_an_earlier_scope_changes_nothing() {
    let (mut desk, consumer) = Desk::live(WEB);
    let earlier = desk.open[&one()];
    let old = desk.held(one()).clone();
    desk.unmount(consumer);
    desk.mount(one());
    desk.say(one(), "new");
    let state = desk.state(one()).clone();
    desk.take();

    let (cursor, detail) = (old.cursor, Box::new((*old.detail).clone()));
    let now = desk.now;
    desk.threads.handle_item(now, earlier, ThreadItem::Snapshot { cursor, detail });
    desk.threads.handle_item(now, earlier, ThreadItem::Deleted { seq: Seq(9) });
    desk.threads.handle_cached(now, earlier, Some(old));
    desk.threads.handle_failed(now, earlier, failure());
    desk.threads.handle_unreadable(now, earlier);
    desk.threads.handle_gone(now, earlier);
    assert_eq!(desk.threads.subscription_input(now, earlier), None);
    assert_eq!(*desk.state(one()), state);
    assert_eq!(desk.take(), []);
}

#[test]
fn what_an_earlier_session_still_delivers_is_left_to_the_resume() {
    let (mut desk, _consumer) = Desk::live(WEB);
    let events = [0, 1].map(|_| desk.log.push(one(), desk.log.text(one(), "text")));
    desk.disconnect();
    desk.deliver(one(), ThreadItem::Events { events: vec![events[1].clone()] });
    assert!(!desk.is_current(one()), "a later event alone would leave a gap");
    desk.threads.handle_connected(desk.now);
    desk.ask(one());
    desk.deliver(one(), ThreadItem::Events { events: vec![events[1].clone()] });
    assert!(!desk.is_current(one()));
    let cursor = desk.held(one()).cursor;
    for item in desk.log.feed(one(), Some(cursor)) {
        desk.deliver(one(), item);
    }
    assert!(desk.is_current(one()));
}
