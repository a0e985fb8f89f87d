//! What seems current and is not.

use wakeful_wire::rpc::Epoch;

use super::*;

#[test]
fn only_a_stream_that_is_behind_begins_anew() {
    let (mut desk, _consumer) = Desk::live(WEB);
    desk.log.create(thread(2));
    desk.mount(thread(2));
    desk.wait(seconds(1));
    // An event that never comes, although the socket lives.
    desk.log.push(one(), EventBody::Pinned {});
    desk.take();
    desk.threads.handle_head(desk.now, desk.log.head());
    desk.tell_row(one());
    desk.tell_row(thread(2));
    desk.wait(BEHIND_GRACE - Duration::from_millis(1));
    assert_eq!(desk.take(), []);
    desk.wait(Duration::from_millis(1));
    let asked = desk.take();
    let stream = desk.open[&one()];
    assert_eq!(asked, [Action::Resubscribe { stream }], "and not the other one");
    assert_eq!(desk.state(one()).status, DataStatus::Synchronizing);
    let held = desk.held(one()).cursor;
    assert_eq!(desk.follow(one()), Some(held));
    assert!(desk.is_current(one()));
    desk.wait(seconds(600));
    assert_eq!(resubscribes(&desk.take()), 0);
}

#[test]
fn a_stream_that_catches_up_in_time_is_left_alone() {
    let (mut desk, _consumer) = Desk::live(WEB);
    let event = desk.log.push(one(), EventBody::Pinned {});
    desk.tell_row(one());
    desk.wait(BEHIND_GRACE / 2);
    desk.deliver(one(), ThreadItem::Events { events: vec![event] });
    desk.wait(seconds(600));
    assert_eq!(resubscribes(&desk.take()), 0);
}

#[test]
fn the_same_row_is_never_asked_about_twice() {
    let (mut desk, _consumer) = Desk::live(WEB);
    // A row's number may be higher than that of any event of its thread.
    let mut row = desk.row(one());
    row.seq = Seq(500);
    for round in 0..3 {
        desk.threads.handle_shell_row(desk.now, &row);
        desk.wait(seconds(10));
        let again = resubscribes(&desk.take());
        assert_eq!(again, usize::from(round == 0));
        if again == 1 {
            desk.follow(one());
        }
        desk.threads.handle_head(desk.now, desk.log.head());
    }
    assert_eq!(desk.state(one()).status, DataStatus::Live);
}

#[test]
fn heads_alone_ask_for_nothing() {
    let (mut desk, _consumer) = Desk::live(WEB);
    desk.log.create(thread(2));
    for _ in 0..50 {
        desk.log.push(thread(2), EventBody::Pinned {});
        desk.threads.handle_head(desk.now, desk.log.head());
        desk.wait(seconds(15));
    }
    assert_eq!(resubscribes(&desk.take()), 0, "the head counts every thread's events");
}

#[test]
fn a_stream_of_another_start_of_the_host_begins_anew_once() {
    let (mut desk, _consumer) = Desk::live(WEB);
    desk.take();
    let head = Cursor { epoch: Epoch(9), ..desk.log.head() };
    desk.threads.handle_head(desk.now, head);
    desk.threads.handle_head(desk.now, head);
    assert_eq!(resubscribes(&desk.take()), 1);
    desk.follow(one());
    desk.threads.handle_head(desk.now, head);
    assert_eq!(resubscribes(&desk.take()), 0, "even where the stream goes on to disagree");
}

#[test]
fn what_is_not_current_is_not_called_behind() {
    let (mut desk, _consumer) = Desk::live(WEB);
    desk.disconnect();
    desk.log.push(one(), EventBody::Pinned {});
    desk.tell_row(one());
    desk.wait(seconds(600));
    assert_eq!(resubscribes(&desk.take()), 0);
    desk.connect();
    assert!(desk.is_current(one()));
}
