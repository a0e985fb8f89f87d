use std::{collections::HashMap, path::Path};

use wakeful_wire::rpc::{
    Detail, Event, EventBody, ItemBody, Page, Prepended, Role, Segment, Seq, Thread, ThreadId,
};

use super::world::{Draw, World};
use crate::thread::{
    command::{AgentUpdate, Command},
    log::{DIRECTORY, FILE, Log, LogError, PageLimits, Row, saved},
    state::{Entry, State},
    view::View,
};

async fn commit(log: &Log, events: &[Event]) {
    let bodies: Vec<_> =
        events.iter().map(|event| serde_json::to_string(&event.body).unwrap()).collect();
    let rows: Vec<_> =
        events.iter().zip(&bodies).map(|(event, body)| Row { event, body }).collect();
    log.commit(&rows).await.unwrap();
}

fn events(world: &World) -> Vec<Event> {
    world.log.iter().map(|recorded| recorded.event.clone()).collect()
}

fn say(world: &mut World, thread: ThreadId, text: &str) {
    let text = text.to_owned();
    world.agent(thread, AgentUpdate::Text { role: Role::Agent, message: None, text }).unwrap();
}

/// A few threads with turns of random content.
fn history(seed: u64, turns: usize) -> (World, Vec<ThreadId>) {
    let mut world = World::new(seed);
    let ids: Vec<_> = (0..3).map(|_| world.create(None)).collect();
    for _ in 0..turns {
        let thread = world.draw.pick(&ids).unwrap();
        if world.turn(thread).is_some() {
            world.end_turn(thread);
        }
        world.prompt(thread, "a prompt");
        for _ in 0..world.draw.below(6) {
            let terminal = format!("terminal {}", world.draw.below(2));
            let update = match world.draw.below(3) {
                0 => AgentUpdate::Terminal { terminal, text: "out ".repeat(20), exit: None },
                1 => AgentUpdate::Tool(wakeful_wire::rpc::ToolPatch {
                    id: terminal,
                    ..Default::default()
                }),
                _ => AgentUpdate::Text {
                    role: Role::Agent,
                    message: None,
                    text: "some words ".repeat(4),
                },
            };
            world.agent(thread, update).unwrap();
        }
    }
    (world, ids)
}

#[tokio::test]
async fn a_torn_write_is_absent_and_what_was_committed_before_it_is_there() {
    let (world, _) = history(1, 40);
    let all = events(&world);
    let home = tempfile::tempdir().unwrap();
    let log = Log::open(home.path()).await.unwrap();
    let mut draw = Draw(1);
    let (mut ends, mut sizes) = (vec![0], Vec::new());
    let wal = home.path().join(DIRECTORY).join(format!("{FILE}-wal"));
    sizes.push(std::fs::metadata(&wal).map_or(0, |file| file.len()));
    while *ends.last().unwrap() < all.len() {
        let from = *ends.last().unwrap();
        let to = (from + 1 + draw.below(12)).min(all.len());
        commit(&log, &all[from..to]).await;
        ends.push(to);
        sizes.push(std::fs::metadata(&wal).unwrap().len());
    }
    let bytes = std::fs::read(&wal).unwrap();
    let base = std::fs::read(home.path().join(DIRECTORY).join(FILE)).unwrap();
    assert!(ends.len() > 10, "the log is long enough to be torn");
    for round in 0..40 {
        let cut = draw.below(bytes.len());
        let mut torn = bytes[..cut].to_vec();
        if round % 2 == 0 {
            // The disk had the place, but not the data.
            torn.extend(std::iter::repeat_n(0, draw.below(9_000)));
        }
        let copy = tempfile::tempdir().unwrap();
        let directory = copy.path().join(DIRECTORY);
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join(FILE), &base).unwrap();
        std::fs::write(directory.join(format!("{FILE}-wal")), &torn).unwrap();
        let whole = sizes.iter().filter(|size| **size <= cut as u64).count();
        if whole == 0 {
            // Not even the tables were written; nothing was ever acknowledged.
            continue;
        }
        let opened = Log::open(copy.path()).await.unwrap();
        let held = opened.since(Seq::ZERO, usize::MAX, usize::MAX).await.unwrap();
        let held: Vec<_> = held.iter().map(|recorded| recorded.event.clone()).collect();
        assert!(ends.contains(&held.len()), "a decision is there whole or not at all");
        assert!(held.len() >= ends[whole - 1], "what was committed is there");
        assert_eq!(held, all[..held.len()]);
        let mut state = State::default();
        held.iter().for_each(|event| state.apply(event));
        assert!(opened.load().await.unwrap().state == state);
        opened.close().await;
    }
    log.close().await;
}

#[tokio::test]
async fn one_log_is_never_open_twice() {
    let home = tempfile::tempdir().unwrap();
    let log = Log::open(home.path()).await.unwrap();
    assert!(matches!(Log::open(home.path()).await, Err(LogError::Held)));
    log.close().await;
    drop(log);
    Log::open(home.path()).await.unwrap().close().await;
}

#[tokio::test]
async fn a_log_of_a_newer_release_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let log = Log::open(home.path()).await.unwrap();
    run(&log, "PRAGMA user_version = 9999").await;
    log.close().await;
    drop(log);
    assert!(matches!(Log::open(home.path()).await, Err(LogError::Newer)));
}

/// Runs a statement on the log's file, beside the log.
async fn run(log: &Log, sql: &'static str) {
    use sqlx::Connection as _;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(log.path());
    let mut connection = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn a_row_that_cannot_be_read_closes_no_log() {
    let (world, ids) = history(2, 6);
    let home = tempfile::tempdir().unwrap();
    let log = Log::open(home.path()).await.unwrap();
    commit(&log, &events(&world)).await;
    run(&log, "UPDATE events SET body = '{\"kind\":\"titled\"' WHERE seq = 9").await;
    let loaded = log.load().await.unwrap();
    assert_eq!(loaded.state.head(), world.state.head());
    let held = log.since(Seq(8), 1, usize::MAX).await.unwrap();
    assert!(matches!(held[0].event.body, EventBody::Unknown(_)));
    let entry = loaded.view.entry(ids[0]).unwrap();
    log.detail(&entry, PageLimits::FIRST).await.unwrap();
    // What was read is also what a client can read.
    serde_json::from_str::<Event>(held[0].text()).unwrap();
    log.close().await;
}

fn whole(events: &[Event], id: ThreadId) -> Detail {
    let mut own = events.iter().filter(|event| event.thread == Some(id));
    let thread = Thread::created(own.next().unwrap()).unwrap();
    let page = Page { segments: vec![Segment::new(0)], before: None, seq: thread.seq };
    let mut detail = Detail::new(thread, page);
    own.for_each(|event| {
        detail.apply(event);
    });
    detail
}

#[tokio::test]
async fn pages_amount_to_the_whole_however_they_are_cut_and_whatever_is_saved() {
    for seed in 0..3 {
        let (world, ids) = history(seed, 25);
        let all = events(&world);
        let home = tempfile::tempdir().unwrap();
        let log = Log::open(home.path()).await.unwrap();
        let mut draw = Draw(seed);
        let mut done = 0;
        while done < all.len() {
            let to = (done + 1 + draw.below(40)).min(all.len());
            commit(&log, &all[done..to]).await;
            done = to;
            // Saved at any moment, whether it has ended or not.
            let id = draw.pick(&ids).unwrap();
            log.seal(id, u32::try_from(draw.below(30)).unwrap()).await.unwrap();
            // A snapshot from a state that lags behind the log is still at one sequence.
            let (mut state, lag) = (State::default(), draw.below(to + 1));
            all[..lag].iter().for_each(|event| state.apply(event));
            let Some(entry) = state.threads.get(&id) else { continue };
            let limits = PageLimits {
                turns: 1 + draw.below(4),
                bytes: [1, 300, 2_000, 100_000][draw.below(4)],
            };
            let mut detail = log.detail(entry, limits).await.unwrap().unwrap();
            let expected = whole(&all[..to], id);
            assert_eq!(detail.thread, expected.thread);
            while let Some(cursor) = detail.page.before {
                let page = log.page(id, cursor, limits).await.unwrap().unwrap();
                assert!(!page.segments.is_empty());
                assert_eq!(detail.prepend(cursor, page), Prepended::Done);
            }
            assert_eq!(detail.page.segments, expected.page.segments);
        }
        log.close().await;
    }
}

#[tokio::test]
async fn a_page_of_an_earlier_thread_of_the_same_id_is_refused() {
    let (mut world, ids) = history(3, 8);
    let home = tempfile::tempdir().unwrap();
    let log = Log::open(home.path()).await.unwrap();
    commit(&log, &events(&world)).await;
    let entry = world.view.entry(ids[0]).unwrap();
    let limits = PageLimits { turns: 1, bytes: 1 };
    let detail = log.detail(&entry, limits).await.unwrap().unwrap();
    let cursor = detail.page.before.unwrap();
    let done = world.log.len();
    world.command(&Command::Delete { thread: ids[0] }).unwrap();
    world
        .command(&Command::Create(crate::thread::command::Create {
            thread: Some(ids[0]),
            agent: "shell".to_owned(),
            anew: true,
            ..Default::default()
        }))
        .unwrap();
    commit(&log, &events(&world)[done..]).await;
    assert_eq!(log.page(ids[0], cursor, limits).await.unwrap(), None);
    let detail = log.detail(&entry, limits).await.unwrap().unwrap();
    assert_eq!(detail.thread, *world.thread(ids[0]));
    assert_eq!(detail.page.segments, [Segment::new(0)]);
    // What is left of the earlier one goes, and takes nothing of the new one along.
    while log.purge().await.unwrap() {}
    let again = log.detail(&entry, limits).await.unwrap().unwrap();
    assert_eq!(again.page, detail.page);
    log.close().await;
}

#[tokio::test]
async fn a_deleted_threads_content_goes_and_the_state_stays_the_same() {
    let (mut world, ids) = history(4, 30);
    world.command(&Command::Rename { thread: ids[0], title: "secret".to_owned() }).unwrap();
    say(&mut world, ids[0], "secret");
    world.command(&Command::Delete { thread: ids[0] }).unwrap();
    let home = tempfile::tempdir().unwrap();
    let log = Log::open(home.path()).await.unwrap();
    commit(&log, &events(&world)).await;
    let before = log.load().await.unwrap().state;
    assert!(before == world.state);
    let mut steps = 0;
    while log.purge().await.unwrap() {
        steps += 1;
        assert!(log.load().await.unwrap().state == before, "at every step");
        assert!(steps < 50);
    }
    let left = log.thread_since(ids[0], Seq::ZERO, usize::MAX, usize::MAX).await.unwrap();
    let kinds: Vec<_> = left.iter().map(|recorded| recorded.event.body.kind()).collect();
    assert_eq!(kinds, ["thread_created", "deleted"]);
    assert!(left.iter().all(|recorded| !recorded.text().contains("secret")));
    assert!(log.search("secret", 10).await.unwrap().is_empty());
    log.close().await;
}

#[tokio::test]
async fn words_are_found_where_they_stand_newest_first_and_nothing_is_an_operator() {
    let mut world = World::new(5);
    let ids: Vec<_> = (0..3).map(|_| world.create(None)).collect();
    for (number, id) in ids.iter().enumerate() {
        world.prompt(*id, "Where is the Käse?");
        say(&mut world, *id, "In the frid");
        say(&mut world, *id, &format!("ge number {number}"));
        world.end_turn(*id);
    }
    let home = tempfile::tempdir().unwrap();
    let log = Log::open(home.path()).await.unwrap();
    commit(&log, &events(&world)).await;
    assert!(log.search("fridge", 10).await.unwrap().is_empty(), "not saved yet");
    for id in &ids {
        log.seal(*id, 1).await.unwrap();
        log.seal(*id, 1).await.unwrap();
    }
    let table = [
        ("fridge", 3),
        ("kase", 3),
        ("NUMBER 1", 1),
        ("fri", 3),
        ("fri number", 0),
        ("cheese", 0),
        ("fridge OR cheese", 0),
        ("\" * ( NEAR", 0),
    ];
    for (text, many) in table {
        let found = log.search(text, 10).await.unwrap();
        assert_eq!(found.len(), many, "{text}");
    }
    let found = log.search("fridge", 2).await.unwrap();
    assert_eq!(found.iter().map(|found| found.thread).collect::<Vec<_>>(), [ids[2], ids[1]]);
    assert!(found[0].excerpt.contains("fridge"));
    log.close().await;
}

#[tokio::test]
async fn a_checkpoint_and_what_came_after_amount_to_the_log() {
    let home = tempfile::tempdir().unwrap();
    let log = Log::open(home.path()).await.unwrap();
    let (world, _) = history(6, 50);
    let all = events(&world);
    let (mut state, mut view) = (State::default(), View::default());
    let (mut done, mut at) = (0, Seq::ZERO);
    let mut draw = Draw(6);
    while done < all.len() {
        let to = (done + 1 + draw.below(30)).min(all.len());
        commit(&log, &all[done..to]).await;
        for recorded in &world.log[done..to] {
            state.apply(&recorded.event);
            view.apply(recorded);
        }
        done = to;
        let loaded = log.load().await.unwrap();
        assert!(loaded.state == state && loaded.view.shell() == view.shell());
        assert_eq!(loaded.checkpoint, at);
        if draw.one_in(2) {
            let rows = saved(&state, &view, at).unwrap();
            log.checkpoint(&state, rows).await.unwrap();
            at = state.head();
        }
    }
    // A saved thread that cannot be read is derived anew, from the log.
    run(&log, "UPDATE threads SET body = '{}'").await;
    let loaded = log.load().await.unwrap();
    assert!(loaded.state == state && loaded.view.shell() == view.shell());
    assert_eq!(loaded.checkpoint, Seq::ZERO);
    log.close().await;
}

#[tokio::test]
async fn a_row_that_was_only_touched_is_saved_as_well() {
    let home = tempfile::tempdir().unwrap();
    let log = Log::open(home.path()).await.unwrap();
    let mut world = World::new(8);
    let ids: Vec<_> = (0..=wakeful_wire::rpc::SETTLED_KEPT).map(|_| world.create(None)).collect();
    for id in &ids {
        world.now = wakeful_wire::Timestamp(world.now.0 + 1);
        world.command(&Command::Settle { thread: *id, settled: true }).unwrap();
    }
    let (mut done, mut at) = (0, Seq::ZERO);
    for _ in 0..2 {
        commit(&log, &events(&world)[done..]).await;
        done = world.log.len();
        let rows = saved(&world.state, &world.view, at).unwrap();
        log.checkpoint(&world.state, rows).await.unwrap();
        at = world.state.head();
        // The oldest comes in because another goes.
        world.command(&Command::Archive { thread: ids[20] }).unwrap();
    }
    assert_eq!(world.view.shell().changed_at(ids[0]), Some(at));
    let loaded = log.load().await.unwrap();
    assert_eq!(loaded.view.shell().changed_at(ids[0]), Some(at));
    log.close().await;
}

#[test]
fn an_entry_is_the_same_after_it_was_saved() {
    let (world, ids) = history(7, 30);
    let mut entries = HashMap::new();
    for id in ids {
        let entry = world.state.threads[&id].as_ref().clone();
        let text = serde_json::to_string(&entry).unwrap();
        assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry);
        entries.insert(id, entry);
    }
    let shown = entries.values().map(|entry| world.whole[&entry.thread.id].page.clone());
    let items = shown.flat_map(|page| page.segments).flat_map(|segment| segment.items);
    assert!(items.into_iter().all(|item| item.body != ItemBody::Unknown), "no gap in numbers");
}

#[test]
fn the_log_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        Log::open(home.path()).await.unwrap().close().await;
    });
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home.path().join(DIRECTORY)), 0o700);
}
