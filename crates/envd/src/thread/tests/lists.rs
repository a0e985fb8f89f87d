use wakeful_wire::{
    Timestamp,
    rpc::{
        Omissions, PermissionOption, PermissionOptionKind, SETTLED_KEPT, ThreadId, ToolPatch,
        ToolStatus,
    },
};

use super::world::World;
use crate::thread::command::{AgentUpdate, Command, Create};

const ALL: Omissions = Omissions { families: true, older_settled: true };

fn kept(world: &World, omit: Omissions) -> Vec<ThreadId> {
    world.view.shell().snapshot(omit).0.iter().map(|row| row.id).collect()
}

fn settle(world: &mut World, thread: ThreadId) {
    world.now = Timestamp(world.now.0 + 10);
    settle_now(world, thread);
}

fn settle_now(world: &mut World, thread: ThreadId) {
    world.command(&Command::Settle { thread, settled: true }).unwrap();
}

/// So many settled threads, oldest first.
fn settled(world: &mut World, many: usize) -> Vec<ThreadId> {
    let ids: Vec<_> = (0..many).map(|_| world.create(None)).collect();
    for id in &ids {
        settle(world, *id);
    }
    ids
}

#[test]
fn an_idle_leaf_is_left_out_and_one_with_a_child_is_not() {
    let mut world = World::new(1);
    let root = world.create(None);
    let middle = world.create(Some(root));
    let leaf = world.create(Some(middle));
    let ids = kept(&world, ALL);
    assert!(ids.contains(&root) && ids.contains(&middle) && !ids.contains(&leaf));
    assert_eq!(kept(&world, Omissions::default()).len(), 3, "nothing is left out unasked");
}

#[test]
fn a_child_with_a_run_a_queue_a_permission_or_background_work_is_kept() {
    let ask = |world: &mut World| AgentUpdate::Permission {
        request: world.request(),
        tool: None,
        title: "may I?".to_owned(),
        options: vec![PermissionOption {
            id: "y".to_owned(),
            name: "y".to_owned(),
            kind: PermissionOptionKind::AllowOnce,
        }],
        key: None,
    };
    let tool = |status| {
        AgentUpdate::Tool(ToolPatch {
            id: "t".to_owned(),
            status: Some(status),
            ..ToolPatch::default()
        })
    };
    let mut world = World::new(2);
    let root = world.create(None);
    let child = world.create(Some(root));
    let is_kept = |world: &World| kept(world, ALL).contains(&child);

    assert!(!is_kept(&world));
    world.prompt(child, "go");
    assert!(is_kept(&world), "a run");
    world.prompt(child, "next");
    world.agent(child, AgentUpdate::AgentEnded { why: "x".to_owned() }).unwrap();
    assert!(world.turn(child).is_none() && is_kept(&world), "a queued prompt");
    let client = world.thread(child).queue[0].prompt.client;
    world.command(&Command::Unqueue { thread: child, client }).unwrap();
    assert!(!is_kept(&world));

    let update = ask(&mut world);
    world.agent(child, update).unwrap();
    assert!(is_kept(&world), "a permission");
    let request = world.thread(child).permissions[0].request;
    let option = "y".to_owned();
    world.command(&Command::Answer { thread: child, request, option, remember: None }).unwrap();
    assert!(!is_kept(&world));

    world.agent(child, tool(ToolStatus::InProgress)).unwrap();
    assert!(is_kept(&world), "work in the background");
    world.agent(child, tool(ToolStatus::Completed)).unwrap();
    assert!(!is_kept(&world));
}

#[test]
fn the_newest_settled_are_kept_with_ties_and_exceptions_and_the_rest_is_counted() {
    let mut world = World::new(3);
    let old = settled(&mut world, 6);
    let [pinned, snoozed, live, above, _plain, other] = old[..] else { panic!("six") };
    // Exceptions below the cut. A settled thread works in the background without being written to.
    world.command(&Command::Pin { thread: pinned, pinned: true }).unwrap();
    let until = Some(Timestamp(world.now.0 + 1_000_000));
    world.command(&Command::Snooze { thread: snoozed, until }).unwrap();
    let tool = ToolPatch {
        id: "t".to_owned(),
        status: Some(ToolStatus::InProgress),
        ..ToolPatch::default()
    };
    world.agent(live, AgentUpdate::Tool(tool)).unwrap();
    let child = world.create(Some(above));
    world.prompt(child, "go");
    let _ = other;

    // Two tied ones at the place of the 25th.
    let tied = [world.create(None), world.create(None)];
    world.now = Timestamp(world.now.0 + 10);
    for id in tied {
        settle_now(&mut world, id);
    }
    settled(&mut world, SETTLED_KEPT - 1);

    let (rows, older) = world.view.shell().snapshot(ALL);
    let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
    let older = older.unwrap();
    for id in [pinned, snoozed, live, above, child, tied[0], tied[1]] {
        assert!(ids.contains(&id));
    }
    assert!(!ids.contains(&old[4]) && !ids.contains(&old[5]));
    assert_eq!(older.cut, world.thread(tied[0]).settled.map(|settled| settled.at));
    // Kept or not, whatever is below the cut is counted.
    assert_eq!(older.counts.values().sum::<u32>(), 6);
    assert_eq!(rows.iter().filter(|row| row.settled.is_some()).count(), SETTLED_KEPT + 1 + 4);

    let families = Omissions { families: true, older_settled: false };
    let (rows, older) = world.view.shell().snapshot(families);
    assert!(older.is_none());
    assert_eq!(rows.iter().filter(|row| row.settled.is_some()).count(), SETTLED_KEPT + 1 + 6);
}

#[test]
fn counts_are_by_project() {
    let mut world = World::new(4);
    for number in 0..40 {
        let project = if number % 4 == 0 { "web" } else { "" };
        let create =
            Create { project: project.to_owned(), agent: "shell".to_owned(), ..Create::default() };
        let id = world.command(&Command::Create(create)).unwrap().thread.unwrap();
        settle(&mut world, id);
    }
    let older = world.view.shell().older_settled();
    assert_eq!(older.counts.get("web"), Some(&4));
    assert_eq!(older.counts.get(""), Some(&11));
    // Twenty-five exactly: nothing is older.
    let mut world = World::new(5);
    settled(&mut world, SETTLED_KEPT);
    let older = world.view.shell().older_settled();
    assert_eq!((older.cut, older.counts.len()), (None, 0));
}

#[test]
fn a_row_that_comes_in_because_of_another_is_sent() {
    let mut world = World::new(6);
    let ids = settled(&mut world, SETTLED_KEPT + 1);
    let before = world.view.head();
    assert!(!kept(&world, ALL).contains(&ids[0]));
    world.command(&Command::Archive { thread: ids[10] }).unwrap();
    let changes = world.view.shell().changes_after(before, 100, 1 << 20).unwrap();
    assert_eq!(changes.removed, [ids[10]]);
    assert_eq!(changes.rows.iter().map(|row| row.id).collect::<Vec<_>>(), [ids[0]]);

    // Above a subagent that begins to work.
    let mut world = World::new(7);
    let ids = settled(&mut world, SETTLED_KEPT + 1);
    let child = world.create(Some(ids[0]));
    let before = world.view.head();
    assert!(!kept(&world, ALL).contains(&ids[0]));
    world.prompt(child, "go");
    let changes = world.view.shell().changes_after(before, 100, 1 << 20).unwrap();
    assert!(changes.rows.iter().any(|row| row.id == ids[0]));
}

#[test]
fn pages_run_from_newest_to_oldest_without_gap_or_repeat() {
    let mut world = World::new(8);
    let mut ids = settled(&mut world, 30);
    ids.reverse();
    let mut seen = Vec::new();
    let mut before = None;
    loop {
        let page = world.view.settled(before, 7);
        seen.extend(page.rows.iter().map(|row| row.id));
        let Some(next) = page.next else { break };
        before = Some(next);
    }
    assert_eq!(seen, ids);
    for id in &ids[..5] {
        world.now = Timestamp(world.now.0 + 1);
        world.command(&Command::Archive { thread: *id }).unwrap();
    }
    let archived = world.view.archived(None, 10);
    let archived: Vec<_> = archived.rows.iter().map(|row| row.id).collect();
    assert_eq!(archived, ids[..5].iter().rev().copied().collect::<Vec<_>>());
}

#[test]
fn a_family_is_all_active_threads_of_one_root() {
    let mut world = World::new(9);
    let root = world.create(None);
    let child = world.create(Some(root));
    let grandchild = world.create(Some(child));
    let _other = world.create(None);
    settle(&mut world, root);
    let family = |world: &World, id| {
        let mut ids: Vec<_> =
            world.view.family(id).unwrap().rows.iter().map(|row| row.id).collect();
        ids.sort_unstable();
        ids
    };
    let mut all = vec![root, child, grandchild];
    all.sort_unstable();
    for id in [root, child, grandchild] {
        assert_eq!(family(&world, id), all);
    }
    world.command(&Command::Delete { thread: grandchild }).unwrap();
    assert_eq!(family(&world, root).len(), 2);
    assert!(world.view.family(grandchild).is_none());
}
