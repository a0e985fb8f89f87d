//! Every bound, and what happens at it.

use super::*;
use crate::threads::{CONSUMERS_MAX, MOUNTED_MAX, RETAINED_MAX, WRITES_MAX};

fn numbers(many: usize) -> impl Iterator<Item = ThreadId> {
    (1_000..).take(many).map(thread)
}

#[test]
fn one_stream_too_many_is_refused_and_a_known_thread_is_not() {
    let mut desk = Desk::new(WEB);
    let consumers: Vec<_> = numbers(MOUNTED_MAX).map(|thread| desk.mount(thread)).collect();
    let refused = desk.threads.mount(desk.now, one()).unwrap_err();
    assert_eq!(refused.reason, FailureReason::Overloaded);
    desk.mount(thread(1_000));
    desk.unmount(consumers[1]);
    desk.mount(one());
}

#[test]
fn a_person_goes_before_what_is_only_kept_alive() {
    let mut desk = Desk::new(NATIVE);
    for (number, at) in [(1, 10), (2, 20)] {
        let mut row = desk.row(one());
        row.id = thread(number);
        row.running_since = Some(wakeful_wire::Timestamp(at));
        row.active_at = wakeful_wire::Timestamp(at);
        desk.threads.handle_shell_row(desk.now, &row);
    }
    desk.pump();
    for thread in numbers(MOUNTED_MAX - 2) {
        desk.mount(thread);
    }
    assert!(desk.threads.is_kept_alive(thread(1)));
    let person = desk.mount(thread(5_000));
    assert!(!desk.threads.is_kept_alive(thread(1)), "the least recently active one makes place");
    assert!(desk.threads.is_kept_alive(thread(2)));
    desk.unmount(person);
    assert!(desk.threads.is_kept_alive(thread(1)), "and comes back when there is place");
}

#[test]
fn one_consumer_too_many_is_refused() {
    let mut desk = Desk::new(WEB);
    for _ in 0..CONSUMERS_MAX {
        desk.threads.mount(desk.now, one()).unwrap();
    }
    let refused = desk.threads.mount(desk.now, one()).unwrap_err();
    assert_eq!(refused.reason, FailureReason::Overloaded);
}

#[test]
fn of_too_many_kept_threads_the_first_to_go_is_dropped() {
    let mut desk = Desk::new(Options { persist: false, ..WEB });
    desk.connect();
    for thread in numbers(RETAINED_MAX + 1) {
        desk.log.create(thread);
        let consumer = desk.mount(thread);
        desk.unmount(consumer);
    }
    for (place, thread) in numbers(RETAINED_MAX + 1).enumerate() {
        desk.connected = false;
        let consumer = desk.mount(thread);
        assert_eq!(desk.state(thread).held.is_some(), place > 0, "{place}");
        desk.unmount(consumer);
    }
}

#[test]
fn at_too_many_waiting_writes_saves_are_left_out_and_removals_are_not() {
    let mut desk = Desk::new(WEB);
    desk.connect();
    desk.slow_disk = true;
    for thread in numbers(WRITES_MAX + 1) {
        desk.log.create(thread);
        for _ in 0..2 {
            let consumer = desk.mount(thread);
            desk.wait(CACHE_WAIT);
            desk.follow(thread);
            desk.happen(thread, EventBody::Pinned {});
            desk.unmount(consumer);
        }
    }
    let last = thread(1_000 + u64::try_from(WRITES_MAX).unwrap());
    desk.mount(last);
    desk.happen(last, EventBody::Deleted {});
    desk.take();
    let saved = |action: &Action| {
        let Action::Save { write, .. } = action else { return None };
        Some(*write)
    };
    let writes: Vec<_> = desk.disk_queue.iter().filter_map(saved).collect();
    writes.iter().for_each(|write| desk.threads.handle_written(*write));
    let next = desk.take();
    assert_eq!(saves(&next), WRITES_MAX);
    let removals = next.iter().filter(|action| matches!(action, Action::Forget { .. })).count();
    assert_eq!(removals, 1);
}
