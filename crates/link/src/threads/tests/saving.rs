//! When a thread is saved.

use super::*;

#[test]
fn a_change_is_saved_half_a_second_later_together_with_what_follows_it() {
    let (mut desk, _consumer) = Desk::live(WEB);
    desk.happen(one(), EventBody::Pinned {});
    desk.wait(SAVE_AFTER - Duration::from_millis(1));
    desk.happen(one(), EventBody::Unpinned {});
    assert_eq!(desk.take(), []);
    desk.wait(Duration::from_millis(1));
    assert_eq!(saves(&desk.take()), 1);
    assert_eq!(desk.disk[&one()], *desk.held(one()));
    desk.wait(seconds(60));
    assert_eq!(desk.take(), [], "nothing new, nothing written");
}

#[test]
fn a_running_thread_is_saved_once_it_has_stopped() {
    let (mut desk, _consumer) = Desk::live(WEB);
    desk.happen(one(), EventBody::Pinned {});
    desk.begin(one());
    for _ in 0..100 {
        desk.say(one(), "words");
        desk.wait(seconds(1));
    }
    assert_eq!(desk.take(), []);
    desk.finish(one());
    desk.wait(SAVE_AFTER);
    assert_eq!(saves(&desk.take()), 1);
    assert_eq!(desk.disk[&one()], *desk.held(one()));
}

#[test]
fn a_prompt_that_waits_counts_as_running_unless_it_is_held_back() {
    let (mut desk, _consumer) = Desk::live(WEB);
    desk.happen(one(), EventBody::PromptQueued { prompt: prompt(9) });
    desk.wait(seconds(5));
    assert_eq!(desk.take(), []);
    desk.begin(one());
    desk.happen(one(), EventBody::PromptQueued { prompt: prompt(10) });
    let Some(EventBody::TurnEnded { turn, .. }) = Some(desk.log.turn_ended(one())) else {
        unreachable!()
    };
    let outcome = wakeful_wire::rpc::Outcome::Cut;
    desk.happen(one(), EventBody::TurnEnded { turn, outcome });
    assert!(desk.held(one()).detail.thread.held);
    desk.wait(SAVE_AFTER);
    assert_eq!(saves(&desk.take()), 1);
}

#[test]
fn an_end_saves_what_was_not_saved_and_only_that() {
    let (mut desk, consumer) = Desk::live(WEB);
    desk.begin(one());
    let held = desk.held(one()).clone();
    desk.unmount(consumer);
    assert_eq!(saves(&desk.take()), 1, "also of a thread that runs: it resumes from there");
    assert_eq!(desk.disk[&one()], held);
    let consumer = desk.mount(one());
    desk.take();
    desk.unmount(consumer);
    assert_eq!(saves(&desk.take()), 0);
}

#[test]
fn a_client_without_a_disk_neither_reads_nor_writes() {
    let (mut desk, consumer) = Desk::live(Options { keep_alive: true, persist: false });
    desk.happen(one(), EventBody::Pinned {});
    desk.wait(seconds(5));
    desk.happen(one(), EventBody::Deleted {});
    desk.unmount(consumer);
    assert_eq!(unsubscribes(&desk.take()), 1);
    assert!(desk.disk_queue.is_empty() && desk.disk.is_empty());
}

#[test]
fn a_host_that_is_no_longer_in_use_ends_everything_and_saves_it() {
    let (mut desk, consumer) = Desk::live(NATIVE);
    desk.begin(one());
    desk.tell_row(one());
    desk.log.create(thread(2));
    desk.mount(thread(2));
    desk.take();
    desk.threads.close(desk.now);
    let asked = desk.take();
    assert_eq!((unsubscribes(&asked), saves(&asked)), (2, 2));
    assert!(desk.open.is_empty());
    assert_eq!(desk.threads.poll_timeout(), None);
    assert_eq!(desk.threads.mount(desk.now, one()).unwrap_err().reason, FailureReason::Unusable);
    desk.tell_row(one());
    desk.unmount(consumer);
    assert_eq!(desk.take(), []);
    assert!(!desk.threads.is_kept_alive(one()));
}
