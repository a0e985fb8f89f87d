//! What is said of a thread's data, apart from the connection.

use super::*;

#[test]
fn the_status_follows_the_data_and_not_the_connection() {
    let mut desk = Desk::new(WEB);
    let said = |desk: &Desk| desk.state(one()).status;
    desk.mount(one());
    assert_eq!(said(&desk), DataStatus::Empty);
    desk.threads.handle_connecting(desk.now);
    assert_eq!(said(&desk), DataStatus::Synchronizing);
    desk.disconnect();
    assert_eq!(said(&desk), DataStatus::Empty);
    desk.threads.handle_connected(desk.now);
    assert_eq!(said(&desk), DataStatus::Synchronizing);
    desk.ask(one());
    let [snapshot, marker] = desk.log.feed(one(), None).try_into().unwrap();
    desk.deliver(one(), snapshot);
    assert_eq!(said(&desk), DataStatus::Synchronizing, "until the marker has come");
    desk.deliver(one(), marker);
    assert_eq!(said(&desk), DataStatus::Live);
    desk.threads.handle_connecting(desk.now);
    assert_eq!(said(&desk), DataStatus::Live, "an attempt beside a live session");
    desk.disconnect();
    assert_eq!(said(&desk), DataStatus::Cached);
    assert!(desk.state(one()).held.is_some());
}

#[test]
fn a_failed_subscription_is_an_error_of_the_thread_on_a_healthy_connection() {
    let (mut desk, _consumer) = Desk::live(WEB);
    let stream = desk.open[&one()];
    desk.threads.handle_failed(desk.now, stream, failure());
    assert_eq!(desk.take(), [], "when it begins anew is not decided here");
    assert_eq!(desk.state(one()).status, DataStatus::Cached);
    assert_eq!(desk.state(one()).error, Some(failure()));
    let held = desk.held(one()).cursor;
    assert_eq!(desk.ask(one()), Some(held));
    assert_eq!(desk.state(one()).status, DataStatus::Synchronizing);
    assert_eq!(desk.state(one()).error, Some(failure()), "until something is delivered");
    for item in desk.log.feed(one(), Some(held)) {
        desk.deliver(one(), item);
    }
    assert_eq!(desk.state(one()).status, DataStatus::Live);
    assert_eq!(desk.state(one()).error, None);
}

#[test]
fn a_first_failure_without_anything_held_is_empty_with_an_error() {
    let mut desk = Desk::new(WEB);
    desk.threads.handle_connected(desk.now);
    desk.mount(one());
    desk.ask(one());
    let stream = desk.open[&one()];
    desk.threads.handle_failed(desk.now, stream, failure());
    assert_eq!(desk.state(one()).status, DataStatus::Empty);
    assert_eq!(desk.state(one()).error, Some(failure()));
}

#[test]
fn a_thread_that_the_host_does_not_know_is_gone_for_good() {
    let (mut desk, consumer) = Desk::live(WEB);
    assert!(desk.disk.contains_key(&one()));
    desk.take();
    let stream = desk.open[&one()];
    desk.threads.handle_gone(desk.now, stream);
    let asked = desk.take();
    assert!(matches!(asked.as_slice(), [Action::Unsubscribe { .. }, Action::Forget { .. }]));
    assert!(!desk.disk.contains_key(&one()), "its cached copy is removed");
    let gone = |desk: &Desk| {
        let state = desk.state(one());
        state.status == DataStatus::Deleted && state.held.is_none() && state.error.is_none()
    };
    assert!(gone(&desk));

    desk.disconnect();
    desk.connect();
    desk.threads.handle_failed(desk.now, stream, failure());
    desk.threads.handle_head(desk.now, desk.log.head());
    desk.tell_row(one());
    assert_eq!(desk.threads.subscription_input(desk.now, stream), None);
    desk.wait(seconds(600));
    assert!(gone(&desk), "nothing revives it");
    desk.unmount(consumer);
    assert_eq!(desk.take(), [], "neither asked for, saved nor kept");
    assert_eq!(desk.threads.poll_timeout(), None);
}

#[test]
fn a_page_that_is_not_found_shows_that_the_thread_is_gone() {
    let mut desk = Desk::new(WEB);
    desk.log.window = (1, 1);
    desk.connect();
    desk.begin(one());
    desk.say(one(), "text");
    desk.mount(one());
    desk.take();
    assert!(desk.threads.load_older(desk.now, one()));
    let fetch = desk.fetch();
    let stream = desk.threads.awaiting(fetch).unwrap();
    desk.threads.handle_gone(desk.now, stream);
    assert_eq!(desk.state(one()).status, DataStatus::Deleted);
    let asked = desk.take();
    assert!(asked.contains(&Action::CancelFetch { fetch }));
    assert!(asked.iter().any(|action| matches!(action, Action::Forget { .. })));
    assert_eq!(resubscribes(&asked), 0);
}

#[test]
fn a_deletion_ends_a_thread_however_it_is_told() {
    for whole in [false, true] {
        let (mut desk, _consumer) = Desk::live(WEB);
        let event = desk.log.push(one(), EventBody::Deleted {});
        let item = if whole {
            let (cursor, detail) = desk.log.snapshot(one());
            ThreadItem::Snapshot { cursor, detail: Box::new(detail) }
        } else {
            ThreadItem::Events { events: vec![event] }
        };
        desk.deliver(one(), item);
        assert_eq!(desk.state(one()).status, DataStatus::Deleted);
    }
    let (mut desk, _consumer) = Desk::live(WEB);
    desk.log.push(one(), EventBody::Deleted {});
    desk.disconnect();
    desk.connect();
    assert_eq!(desk.state(one()).status, DataStatus::Deleted, "while nobody listened");
}

#[test]
fn a_new_look_at_a_thread_that_was_made_anew_begins_anew() {
    let (mut desk, consumer) = Desk::live(WEB);
    desk.happen(one(), EventBody::Deleted {});
    desk.log.create(one());
    desk.unmount(consumer);
    desk.mount(one());
    assert_eq!(desk.state(one()).status, DataStatus::Live);
    assert!(desk.is_current(one()));
}
