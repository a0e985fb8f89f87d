use wakeful_wire::rpc::{Cursor, Epoch, Omissions, Role, Seq, ThreadId};

use super::world::World;
use crate::thread::{
    command::{AgentUpdate, Command, Create, Refused},
    feed::{ShellDelivery, ShellFeed, ThreadDelivery, ThreadFeed, ThreadPoll},
    limits::{GAP_MAX, TOMBSTONES_MAX},
};

fn shell(cursor: Option<Cursor>) -> ShellFeed {
    ShellFeed::new(cursor, Omissions::default())
}

fn say(world: &mut World, thread: ThreadId, text: &str) {
    let text = text.to_owned();
    world.agent(thread, AgentUpdate::Text { role: Role::Agent, message: None, text }).unwrap();
}

/// What a feed delivers until it rests, as words.
fn drain_shell(feed: &mut ShellFeed, world: &World) -> Vec<&'static str> {
    let mut words = Vec::new();
    while let Some(delivery) = feed.poll(&world.view) {
        words.push(match delivery {
            ShellDelivery::Snapshot(_) => "snapshot",
            ShellDelivery::Resumed(_) => "resumed",
            ShellDelivery::Changes(_) => "changes",
            ShellDelivery::Synchronized(_) => "synchronized",
        });
    }
    words
}

fn drain_thread(feed: &mut ThreadFeed, world: &mut World, id: ThreadId) -> Vec<&'static str> {
    let mut words = Vec::new();
    while let Some(delivery) = world.drive(feed, id) {
        words.push(match delivery {
            ThreadDelivery::Snapshot(..) => "snapshot",
            ThreadDelivery::Resumed(_) => "resumed",
            ThreadDelivery::Events(_) => "events",
            ThreadDelivery::Synchronized(_) => "synchronized",
            ThreadDelivery::Deleted(_) => "deleted",
        });
    }
    words
}

#[test]
fn an_unchanged_list_costs_two_small_items() {
    let mut world = World::new(1);
    world.create(None);
    let cursor = world.cursor();
    let mut feed = shell(Some(cursor));
    assert_eq!(drain_shell(&mut feed, &world), ["resumed", "synchronized"]);
    // Content changes no row: a client that was away for a long turn has nothing to load.
    let thread = world.create(None);
    let cursor = world.cursor();
    for _ in 0..2 * GAP_MAX {
        say(&mut world, thread, "word ");
    }
    assert_eq!(drain_shell(&mut shell(Some(cursor)), &world), ["resumed", "synchronized"]);
}

#[test]
fn a_row_that_changed_often_is_sent_once_at_its_newest() {
    let mut world = World::new(2);
    let thread = world.create(None);
    let mut feed = shell(Some(world.cursor()));
    for number in 0..50 {
        world.command(&Command::Rename { thread, title: format!("title {number}") }).unwrap();
    }
    assert!(matches!(
        feed.poll(&world.view),
        Some(ShellDelivery::Changes(_))
            | Some(ShellDelivery::Snapshot(_))
            | Some(ShellDelivery::Resumed(_))
    ));
    let Some(ShellDelivery::Changes(changes)) = feed.poll(&world.view) else {
        panic!("the changes")
    };
    assert_eq!(changes.rows.len(), 1);
    assert_eq!(changes.rows[0].title.as_deref(), Some("title 49"));
    assert_eq!(changes.seq, world.state.head());
}

#[test]
fn a_cursor_that_the_log_does_not_know_gets_a_snapshot() {
    let mut world = World::new(3);
    let thread = world.create(None);
    let good = world.cursor();
    let ahead = Cursor { seq: good.seq.next(), ..good };
    let foreign = Cursor { epoch: Epoch(7), ..good };
    for (cursor, first) in [
        (Some(good), "resumed"),
        (Some(ahead), "snapshot"),
        (Some(foreign), "snapshot"),
        (None, "snapshot"),
    ] {
        assert_eq!(drain_shell(&mut shell(cursor), &world), [first, "synchronized"]);
        let mut feed = ThreadFeed::new(&world.view, thread, cursor).unwrap();
        assert_eq!(drain_thread(&mut feed, &mut world, thread), [first, "synchronized"]);
    }
}

#[test]
fn a_cursor_of_an_earlier_start_holds_no_further_than_that_start_wrote() {
    let mut world = World::new(4);
    let thread = world.create(None);
    let before = world.cursor();
    world.crash();
    say(&mut world, thread, "later");
    let mut feed = shell(Some(before));
    assert!(matches!(feed.poll(&world.view), Some(ShellDelivery::Resumed(cursor))
        if cursor.epoch == world.cursor().epoch && cursor.seq == before.seq));
    // What another copy of the log wrote under the old epoch is not what this one wrote.
    let beyond = Cursor { seq: before.seq.next(), ..before };
    assert!(matches!(shell(Some(beyond)).poll(&world.view), Some(ShellDelivery::Snapshot(_))));
}

#[test]
fn a_large_gap_of_the_list_is_a_snapshot() {
    let mut world = World::new(5);
    let cursor = world.cursor();
    for _ in 0..GAP_MAX {
        world.create(None);
    }
    assert_eq!(drain_shell(&mut shell(Some(cursor)), &world)[0], "resumed");
    world.create(None);
    assert_eq!(drain_shell(&mut shell(Some(cursor)), &world)[0], "snapshot");
}

#[test]
fn a_large_gap_of_a_thread_is_a_snapshot() {
    for (pieces, size, first) in
        [(GAP_MAX, 10, "resumed"), (GAP_MAX + 1, 10, "snapshot"), (300, 30_000, "snapshot")]
    {
        let mut world = World::new(6);
        let thread = world.create(None);
        let cursor = world.cursor();
        let text = "x".repeat(size);
        for _ in 0..pieces {
            say(&mut world, thread, &text);
        }
        let mut feed = ThreadFeed::new(&world.view, thread, Some(cursor)).unwrap();
        let words = drain_thread(&mut feed, &mut world, thread);
        assert_eq!((words[0], words[words.len() - 1]), (first, "synchronized"));
    }
}

#[test]
fn what_happens_while_the_list_loads_comes_before_the_marker() {
    let mut world = World::new(7);
    world.create(None);
    let mut feed = shell(None);
    assert!(matches!(feed.poll(&world.view), Some(ShellDelivery::Snapshot(_))));
    let during = world.create(None);
    let Some(ShellDelivery::Changes(changes)) = feed.poll(&world.view) else {
        panic!("what happened during the load")
    };
    assert_eq!(changes.rows[0].id, during);
    let Some(ShellDelivery::Synchronized(cursor)) = feed.poll(&world.view) else {
        panic!("the marker")
    };
    assert_eq!(cursor, world.cursor());
    let after = world.create(None);
    let Some(ShellDelivery::Changes(changes)) = feed.poll(&world.view) else {
        panic!("what happened after")
    };
    assert_eq!(changes.rows[0].id, after);
    assert!(feed.poll(&world.view).is_none());
}

#[test]
fn what_happens_while_a_thread_loads_comes_before_the_marker() {
    for resume in [false, true] {
        let mut world = World::new(8);
        let thread = world.create(None);
        say(&mut world, thread, "before");
        let cursor = resume.then(|| world.cursor());
        say(&mut world, thread, "missed");
        let mut feed = ThreadFeed::new(&world.view, thread, cursor).unwrap();
        let mut seen = Seq::ZERO;
        if !resume {
            assert!(matches!(feed.poll(&world.view), ThreadPoll::ReadSnapshot));
            let detail = world.window(thread).unwrap();
            seen = detail.thread.seq;
            // Written while the snapshot is on its way.
            say(&mut world, thread, "during");
            feed.handle_snapshot(Some(detail));
        }
        let mut words = Vec::new();
        for round in 0..10 {
            match world.drive(&mut feed, thread) {
                Some(ThreadDelivery::Events(events)) => {
                    for recorded in events {
                        assert!(recorded.event.seq > seen);
                        seen = recorded.event.seq;
                    }
                    words.push("events");
                }
                Some(ThreadDelivery::Synchronized(cursor)) => {
                    assert_eq!(cursor.seq, seen);
                    words.push("synchronized");
                }
                Some(ThreadDelivery::Resumed(cursor)) => {
                    seen = cursor.seq;
                    say(&mut world, thread, "during");
                    words.push("first");
                }
                Some(ThreadDelivery::Snapshot(..)) => words.push("first"),
                Some(ThreadDelivery::Deleted(_)) | None => break,
            }
            assert!(round < 9);
        }
        assert_eq!(words, ["first", "events", "synchronized"]);
        assert_eq!(seen, world.thread(thread).seq);
    }
}

#[test]
fn the_marker_comes_on_a_host_that_never_rests() {
    let mut world = World::new(9);
    let thread = world.create(None);
    let mut feed = shell(None);
    let mut own = ThreadFeed::new(&world.view, thread, None).unwrap();
    let (mut list, mut content) = (0, 0);
    for round in 0..20 {
        let title = format!("title {round}");
        world.command(&Command::Rename { thread, title }).unwrap();
        let delivery = feed.poll(&world.view);
        list += usize::from(matches!(delivery, Some(ShellDelivery::Synchronized(_))));
        let delivery = world.drive(&mut own, thread);
        content += usize::from(matches!(delivery, Some(ThreadDelivery::Synchronized(_))));
    }
    assert_eq!((list, content), (1, 1));
}

#[test]
fn a_slow_reader_gets_a_snapshot_in_the_middle_and_goes_on() {
    let mut world = World::new(10);
    let thread = world.create(None);
    let mut feed = ThreadFeed::new(&world.view, thread, Some(world.cursor())).unwrap();
    assert_eq!(drain_thread(&mut feed, &mut world, thread), ["resumed", "synchronized"]);
    for _ in 0..=GAP_MAX {
        say(&mut world, thread, "word ");
    }
    assert_eq!(drain_thread(&mut feed, &mut world, thread), ["snapshot", "synchronized"]);
    say(&mut world, thread, "last");
    assert_eq!(drain_thread(&mut feed, &mut world, thread), ["events"]);
}

#[test]
fn a_thread_that_was_made_anew_is_a_snapshot() {
    let mut world = World::new(11);
    let thread = world.create(None);
    let cursor = world.cursor();
    let mut feed = ThreadFeed::new(&world.view, thread, Some(cursor)).unwrap();
    drain_thread(&mut feed, &mut world, thread);
    world.command(&Command::Delete { thread }).unwrap();
    assert_eq!(ThreadFeed::new(&world.view, thread, Some(cursor)).err(), Some(Refused::Deleted));
    let create =
        Create { thread: Some(thread), agent: "shell".to_owned(), anew: true, ..Create::default() };
    world.command(&Command::Create(create)).unwrap();
    assert_eq!(drain_thread(&mut feed, &mut world, thread), ["snapshot", "synchronized"]);
    let mut late = ThreadFeed::new(&world.view, thread, Some(cursor)).unwrap();
    assert_eq!(drain_thread(&mut late, &mut world, thread), ["snapshot", "synchronized"]);
}

#[test]
fn a_deleted_thread_ends_its_subscriptions_and_leaves_the_list() {
    let mut world = World::new(12);
    let thread = world.create(None);
    let mut list = shell(None);
    drain_shell(&mut list, &world);
    let mut feed = ThreadFeed::new(&world.view, thread, None).unwrap();
    drain_thread(&mut feed, &mut world, thread);
    world.command(&Command::Delete { thread }).unwrap();
    assert_eq!(drain_thread(&mut feed, &mut world, thread), ["deleted"]);
    assert!(matches!(feed.poll(&world.view), ThreadPoll::Ended));
    let Some(ShellDelivery::Changes(changes)) = list.poll(&world.view) else {
        panic!("the removal")
    };
    assert_eq!(changes.removed, [thread]);
    let unknown = ThreadId::from_uuid(world.draw.uuid());
    assert_eq!(ThreadFeed::new(&world.view, unknown, None).err(), Some(Refused::UnknownThread));
}

#[test]
fn a_cursor_from_before_forgotten_removals_gets_a_snapshot() {
    let mut world = World::new(13);
    let cursor = world.cursor();
    for _ in 0..=TOMBSTONES_MAX {
        let thread = world.create(None);
        world.command(&Command::Delete { thread }).unwrap();
    }
    assert!(!world.view.shell().reaches_back_to(cursor.seq));
    assert_eq!(drain_shell(&mut shell(Some(cursor)), &world)[0], "snapshot");
}
