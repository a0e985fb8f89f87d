//! Running threads without a view.

use super::*;

#[test]
fn a_running_thread_is_held_without_a_view_in_every_host() {
    // Two hosts of one client: each has its own machine.
    for _ in 0..2 {
        let mut desk = Desk::new(NATIVE);
        desk.connect();
        desk.tell_row(one());
        assert_eq!(desk.take(), [], "it does not run");
        desk.begin(one());
        desk.tell_row(one());
        assert!(desk.threads.is_kept_alive(one()));
        assert_eq!(subscribes(&desk.take()), 1);
        assert_eq!(desk.state(one()).status, DataStatus::Live);
        desk.wait(seconds(3_600));
        desk.say(one(), "an hour later");
        let consumer = desk.mount(one());
        assert!(desk.is_current(one()), "to open it needs no replay");
        assert_eq!(subscribes(&desk.take()), 0);
        desk.unmount(consumer);
        assert_eq!(unsubscribes(&desk.take()), 0);
    }
}

#[test]
fn a_prompt_that_waits_is_a_start() {
    let mut desk = Desk::new(NATIVE);
    let mut row = desk.row(one());
    row.queued = 1;
    for (held, kept) in [(true, false), (false, true)] {
        row.held = held;
        desk.threads.handle_shell_row(desk.now, &row);
        assert_eq!(desk.threads.is_kept_alive(one()), kept);
    }
}

#[test]
fn a_stop_that_only_the_list_tells_keeps_the_thread_held() {
    let mut desk = Desk::new(NATIVE);
    desk.begin(one());
    desk.tell_row(one());
    assert_eq!(subscribes(&desk.take()), 1, "offline it waits for its session");
    let body = desk.log.turn_ended(one());
    desk.log.push(one(), body);
    desk.tell_row(one());
    assert!(desk.threads.is_kept_alive(one()), "before anything was had");

    desk.threads.handle_connected(desk.now);
    desk.connected = true;
    desk.ask(one());
    let [snapshot, marker] = desk.log.feed(one(), None).try_into().unwrap();
    desk.deliver(one(), snapshot);
    assert!(desk.threads.is_kept_alive(one()), "shows the stop, and is not known to be current");
    assert_eq!(unsubscribes(&desk.take()), 0);
    desk.deliver(one(), marker);
    assert!(!desk.threads.is_kept_alive(one()));
    assert_eq!(unsubscribes(&desk.take()), 1);
}

#[test]
fn a_thread_that_shows_its_stop_closes_and_saves() {
    let mut desk = Desk::new(NATIVE);
    desk.connect();
    desk.begin(one());
    desk.tell_row(one());
    desk.take();
    // The list is first.
    let body = desk.log.turn_ended(one());
    let end = desk.log.push(one(), body);
    desk.tell_row(one());
    assert_eq!(desk.take(), []);
    desk.deliver(one(), ThreadItem::Events { events: vec![end] });
    let asked = desk.take();
    assert_eq!((unsubscribes(&asked), saves(&asked)), (1, 1));
    assert!(desk.disk[&one()].detail.thread.turn.is_none(), "the settled state");
    assert_eq!(desk.threads.thread(one()), None);

    // The thread is first: until the list agrees, it is held.
    desk.begin(one());
    desk.tell_row(one());
    desk.finish(one());
    assert!(desk.threads.is_kept_alive(one()));
    desk.tell_row(one());
    assert!(!desk.threads.is_kept_alive(one()));
}

#[test]
fn a_stop_does_not_close_what_a_person_looks_at() {
    let (mut desk, _consumer) = Desk::live(NATIVE);
    desk.begin(one());
    desk.tell_row(one());
    desk.finish(one());
    desk.tell_row(one());
    assert!(!desk.threads.is_kept_alive(one()));
    assert_eq!(unsubscribes(&desk.take()), 0);
    assert!(desk.is_current(one()));
}

#[test]
fn web_and_mobile_hold_nothing() {
    let mut desk = Desk::new(WEB);
    desk.connect();
    desk.begin(one());
    desk.tell_row(one());
    let row = std::sync::Arc::new(desk.row(one()));
    desk.threads.handle_shell(desk.now, &[row]);
    assert_eq!(desk.take(), []);
    assert_eq!(desk.threads.thread(one()), None);
}

#[test]
fn a_removed_thread_is_let_go_and_a_view_of_it_stays() {
    for looks in [false, true] {
        let mut desk = Desk::new(NATIVE);
        desk.connect();
        desk.begin(one());
        desk.tell_row(one());
        if looks {
            desk.mount(one());
        }
        desk.threads.handle_shell_removed(desk.now, one());
        desk.pump();
        assert!(!desk.threads.is_kept_alive(one()));
        assert_eq!(desk.threads.thread(one()).is_some(), looks, "archived, for all one knows");
    }
}

#[test]
fn a_thread_that_is_gone_is_let_go_and_not_asked_for_again() {
    let mut desk = Desk::new(NATIVE);
    desk.connect();
    desk.begin(one());
    desk.tell_row(one());
    let stream = desk.open[&one()];
    desk.threads.handle_gone(desk.now, stream);
    assert!(!desk.threads.is_kept_alive(one()));
    assert_eq!(unsubscribes(&desk.take()), 1);
    desk.threads.handle_head(desk.now, desk.log.head());
    desk.disconnect();
    desk.connect();
    assert_eq!(desk.take(), [], "a row from before says that it runs; nobody believes it");
}

#[test]
fn a_list_that_lacks_a_thread_shows_only_that_it_does_not_run() {
    let mut desk = Desk::new(NATIVE);
    desk.begin(one());
    desk.tell_row(one());
    desk.threads.handle_shell(desk.now, &[]);
    assert!(desk.threads.is_kept_alive(one()), "its own stream has not said so");
    let body = desk.log.turn_ended(one());
    desk.log.push(one(), body);
    desk.connect();
    assert!(!desk.threads.is_kept_alive(one()));
}

#[test]
fn of_too_many_running_threads_the_most_recently_active_are_held() {
    let mut desk = Desk::new(NATIVE);
    desk.connect();
    let many = u64::try_from(KEPT_ALIVE_MAX).unwrap() + 4;
    for number in 2..2 + many {
        desk.log.create(thread(number));
        desk.begin(thread(number));
        desk.tell_row(thread(number));
    }
    let held = |desk: &Desk| {
        (2..2 + many).filter(|number| desk.threads.is_kept_alive(thread(*number))).collect()
    };
    let newest: Vec<u64> = (6..2 + many).collect();
    assert_eq!(held(&desk), newest);
    assert_eq!(desk.open.len(), KEPT_ALIVE_MAX);
    desk.finish(thread(20));
    desk.tell_row(thread(20));
    let held: Vec<u64> = held(&desk);
    assert!(held.contains(&5) && !held.contains(&20), "a place that is free is given on");
    assert_eq!(held.len(), KEPT_ALIVE_MAX);
}
