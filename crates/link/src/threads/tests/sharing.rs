//! One stream for all who look, and what is kept when they have gone.

use std::sync::Arc;

use super::*;

#[test]
fn all_consumers_of_a_thread_share_one_stream_that_ends_with_the_last() {
    let mut desk = Desk::new(WEB);
    desk.connect();
    let first = desk.mount(one());
    let second = desk.mount(one());
    assert_ne!(first, second);
    assert_eq!(subscribes(&desk.take()), 1);
    desk.unmount(first);
    assert_eq!(unsubscribes(&desk.take()), 0);
    desk.say(one(), "still here");
    assert!(desk.is_current(one()));
    desk.unmount(second);
    assert_eq!(unsubscribes(&desk.take()), 1);
    assert_eq!(desk.threads.thread(one()), None);
    desk.unmount(second);
    assert_eq!(desk.take(), [], "a consumer that is gone goes once");
}

#[test]
fn a_mounted_view_that_nobody_sees_keeps_its_stream() {
    let (mut desk, _hidden) = Desk::live(WEB);
    desk.wait(seconds(3_600));
    assert_eq!(desk.take(), []);
    desk.say(one(), "unseen");
    assert!(desk.is_current(one()));
}

#[test]
fn who_comes_back_within_five_minutes_goes_on_from_the_cursor() {
    let (mut desk, consumer) = Desk::live(WEB);
    desk.say(one(), "before");
    let left = desk.held(one()).clone();
    desk.unmount(consumer);
    desk.log.push(one(), desk.log.text(one(), "meanwhile"));
    desk.wait(RETENTION - Duration::from_millis(1));
    desk.take();

    desk.threads.mount(desk.now, one()).unwrap();
    desk.pump();
    let state = desk.state(one());
    assert_eq!(state.held.as_ref(), Some(&left), "shown at once");
    assert_eq!(state.status, DataStatus::Synchronizing);
    let asked: Vec<_> = desk.take();
    assert!(matches!(asked.as_slice(), [Action::Subscribe { .. }]), "the disk is not asked");
    assert_eq!(desk.follow(one()), Some(left.cursor), "a resume, no snapshot");
    assert!(desk.is_current(one()));
}

#[test]
fn after_five_idle_minutes_only_the_cached_copy_is_left() {
    for (options, shown) in [(WEB, true), (Options { persist: false, ..WEB }, false)] {
        let (mut desk, consumer) = Desk::live(options);
        desk.unmount(consumer);
        desk.wait(RETENTION);
        assert_eq!(desk.threads.poll_timeout(), None);
        desk.take();
        desk.threads.mount(desk.now, one()).unwrap();
        let asked = desk.take();
        let reads = asked.iter().any(|action| matches!(action, Action::LoadCache { .. }));
        assert_eq!(reads, shown);
        assert_eq!(desk.state(one()).held.is_some(), shown);
    }
}

#[test]
fn each_return_begins_the_five_minutes_anew() {
    let (mut desk, mut consumer) = Desk::live(Options { persist: false, ..WEB });
    for _ in 0..4 {
        desk.unmount(consumer);
        desk.wait(RETENTION - seconds(1));
        consumer = desk.mount(one());
        assert!(desk.state(one()).held.is_some());
        desk.wait(RETENTION);
        assert!(desk.state(one()).held.is_some(), "while it is looked at, no time runs");
    }
}

#[test]
fn a_thread_is_shown_from_its_cached_copy_and_resumes_from_there() {
    let (mut desk, consumer) = Desk::live(WEB);
    desk.unmount(consumer);
    let disk = desk.disk.clone();
    let log = std::mem::take(&mut desk.log);
    let mut desk = Desk { disk, log, ..Desk::new(WEB) };
    desk.say(one(), "while the client was off");
    desk.mount(one());
    assert_eq!(desk.state(one()).status, DataStatus::Cached, "offline it stays readable");
    let cached = desk.held(one()).cursor;
    desk.connected = true;
    desk.threads.handle_connected(desk.now);
    assert_eq!(desk.follow(one()), Some(cached));
    assert!(desk.is_current(one()));
}

#[test]
fn a_slow_disk_holds_up_a_thread_for_two_seconds_at_most() {
    let (mut desk, consumer) = Desk::live(WEB);
    desk.unmount(consumer);
    desk.wait(RETENTION);
    desk.slow_disk = true;
    desk.take();
    desk.threads.mount(desk.now, one()).unwrap();
    desk.pump();
    assert!(desk.open.is_empty());
    desk.wait(CACHE_WAIT);
    assert_eq!(desk.ask(one()), None, "without anything, a snapshot");
    desk.work_disk();
    desk.pump();
    assert_eq!(desk.state(one()).status, DataStatus::Synchronizing);
    assert!(desk.state(one()).held.is_some(), "late, and still better than nothing");
    let before = desk.held(one()).cursor.seq;
    desk.log.push(one(), EventBody::Pinned {});
    for item in desk.log.feed(one(), None) {
        desk.deliver(one(), item);
    }
    assert!(desk.held(one()).cursor.seq > before);
    assert!(desk.is_current(one()));
}

#[test]
fn a_late_timer_does_not_lengthen_the_five_minutes() {
    let (mut desk, consumer) = Desk::live(Options { persist: false, ..WEB });
    desk.unmount(consumer);
    desk.now = desk.now.after(RETENTION);
    desk.threads.mount(desk.now, one()).unwrap();
    assert_eq!(desk.state(one()).held, None);
}

#[test]
fn a_cached_copy_of_another_thread_or_of_one_that_is_gone_is_not_shown() {
    let (mut desk, consumer) = Desk::live(WEB);
    desk.unmount(consumer);
    let copy = desk.disk[&one()].clone();
    let mut gone = copy.clone();
    let thread_of_it = &mut Arc::make_mut(&mut gone.detail).thread;
    (thread_of_it.id, thread_of_it.deleted) = (thread(3), true);
    for (thread, cached) in [(thread(2), copy), (thread(3), gone)] {
        desk.connected = false;
        desk.disk.insert(thread, cached);
        desk.mount(thread);
        assert_eq!(desk.state(thread).held, None);
        assert!(desk.open.contains_key(&thread), "asked for all the same");
    }
}
