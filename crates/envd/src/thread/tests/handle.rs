use std::{sync::Arc, time::Duration};

use wakeful_wire::{
    Timestamp,
    rpc::{
        ClientId, Detail, EventBody, Omissions, Outcome, Prompt, Role, Seq, StopReason, ThreadId,
    },
};

use super::world::Draw;
use crate::thread::{
    Settings, ThreadSubscription, Threads, ThreadsError,
    command::{AgentUpdate, Append, Command, Create, Refused},
    feed::{ShellDelivery, ThreadDelivery},
    log::PageLimits,
    view::FeedLimits,
};

fn settings(home: &tempfile::TempDir) -> Settings {
    Settings {
        flush_delay: Duration::from_millis(2),
        checkpoint_every: 20,
        ..Settings::new(home.path().to_owned())
    }
}

async fn create(threads: &Threads) -> ThreadId {
    let create = Create { agent: "shell".to_owned(), ..Create::default() };
    threads.command(Command::Create(create)).await.unwrap().thread.unwrap()
}

fn client(number: u128) -> ClientId {
    ClientId::from_uuid(uuid::Uuid::from_u128(number))
}

fn prompt(thread: ThreadId, number: u128) -> Command {
    Command::Prompt { thread, prompt: Prompt::text(client(number), "go") }
}

fn text(text: &str) -> AgentUpdate {
    AgentUpdate::Text { role: Role::Agent, message: None, text: text.to_owned() }
}

async fn say(threads: &Threads, thread: ThreadId, what: &str) {
    let turn = threads.thread(thread).unwrap().turn.map(|turn| turn.id);
    threads.append(Append { thread, turn, updates: vec![text(what)] }).await.unwrap();
}

/// A client of a thread: what it holds after everything up to `seq` has come.
async fn follow(subscription: &mut ThreadSubscription, held: &mut Option<Detail>, seq: Seq) {
    while held.as_ref().is_none_or(|held| held.thread.seq < seq) {
        match subscription.next().await.unwrap().expect("the thread is there") {
            ThreadDelivery::Snapshot(_, detail) => *held = Some(*detail),
            ThreadDelivery::Events(events) => {
                let held = held.as_mut().expect("a snapshot or a resume first");
                for recorded in events {
                    assert!(recorded.event.seq > held.thread.seq, "nothing twice");
                    held.apply(&recorded.event);
                }
            }
            ThreadDelivery::Resumed(_)
            | ThreadDelivery::Synchronized(_)
            | ThreadDelivery::Deleted(_) => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_that_comes_ten_times_at_once_is_taken_once() {
    let home = tempfile::tempdir().unwrap();
    let threads = Threads::open(settings(&home)).await.unwrap();
    let thread = create(&threads).await;
    let sends: Vec<_> = (0..10)
        .map(|_| {
            let threads = threads.clone();
            tokio::spawn(async move { threads.command(prompt(thread, 1)).await.unwrap() })
        })
        .collect();
    let mut taken = Vec::new();
    for send in sends {
        taken.push(send.await.unwrap());
    }
    assert_eq!(taken.iter().filter(|taken| taken.changed).count(), 1);
    let first = taken.iter().find(|taken| taken.changed).unwrap().seq;
    assert!(taken.iter().filter(|taken| !taken.changed).all(|taken| taken.seq < first));
    threads.close().await;
    // And once more to a host that was restarted.
    let threads = Threads::open(settings(&home)).await.unwrap();
    assert!(!threads.command(prompt(thread, 1)).await.unwrap().changed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_is_there_after_a_kill() {
    let home = tempfile::tempdir().unwrap();
    let threads = Threads::open(settings(&home)).await.unwrap();
    let thread = create(&threads).await;
    threads.command(prompt(thread, 1)).await.unwrap();
    say(&threads, thread, "half a sen").await;
    // A copy of the files as they are is what a kill leaves behind.
    let copy = tempfile::tempdir().unwrap();
    let (from, to) = (home.path().join(".wakeful"), copy.path().join(".wakeful"));
    std::fs::create_dir(&to).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
    let again = Threads::open(settings(&copy)).await.unwrap();
    let held = again.thread(thread).unwrap();
    assert_eq!(held.last_turn.unwrap().outcome, Outcome::Cut);
    assert!(again.running().is_empty());
    let detail = again.detail(thread, PageLimits::FIRST).await.unwrap();
    let shown = serde_json::to_string(&detail.page).unwrap();
    assert!(shown.contains("half a sen"));
    threads.close().await;
    again.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscribers_of_a_busy_thread_all_end_with_what_the_log_has() {
    for tail_bytes in [0, 2_000, FeedLimits::default().tail_bytes] {
        let home = tempfile::tempdir().unwrap();
        let feeds = FeedLimits { tail_bytes, gap: 50, item: 7, ..FeedLimits::default() };
        let threads = Threads::open(Settings { feeds, ..settings(&home) }).await.unwrap();
        let thread = create(&threads).await;
        threads.command(prompt(thread, 1)).await.unwrap();
        let (told, last) = tokio::sync::watch::channel(Seq::ZERO);
        let mut clients = Vec::new();
        for number in 0..8_u64 {
            let (threads, mut last) = (threads.clone(), last.clone());
            clients.push(tokio::spawn(async move {
                let mut draw = Draw(number);
                let mut held: Option<Detail> = None;
                let mut cursor = None;
                loop {
                    let mut subscription = threads.subscribe_thread(thread, cursor).unwrap();
                    // Some read on, some lag, some come and go.
                    for _ in 0..draw.below(12) {
                        let now = held.as_ref().map_or(Seq::ZERO, |held| held.thread.seq);
                        let end = *last.borrow();
                        if end > Seq::ZERO && now >= end {
                            return held.unwrap();
                        }
                        let target = threads.thread(thread).unwrap().seq;
                        follow(&mut subscription, &mut held, target).await;
                        if draw.one_in(2) {
                            tokio::task::yield_now().await;
                        }
                    }
                    let mut now = threads.cursor();
                    now.seq = held.as_ref().map_or(Seq::ZERO, |held| held.thread.seq);
                    cursor = held.is_some().then_some(now);
                    if *last.borrow() > Seq::ZERO {
                        let end = *last.borrow_and_update();
                        let mut subscription = threads.subscribe_thread(thread, cursor).unwrap();
                        follow(&mut subscription, &mut held, end).await;
                        return held.unwrap();
                    }
                }
            }));
        }
        let speakers: Vec<_> = (0..4)
            .map(|speaker| {
                let threads = threads.clone();
                tokio::spawn(async move {
                    for number in 0..50 {
                        say(&threads, thread, &format!("{speaker}.{number} ")).await;
                    }
                })
            })
            .collect();
        for speaker in speakers {
            speaker.await.unwrap();
        }
        told.send_replace(threads.thread(thread).unwrap().seq);
        let truth = threads.detail(thread, PageLimits::FIRST).await.unwrap();
        assert!(truth.page.before.is_none());
        for held in clients {
            let held = held.await.unwrap();
            assert_eq!((held.thread, held.page), (truth.thread.clone(), truth.page.clone()));
        }
        threads.close().await;
    }
}

#[tokio::test]
async fn a_client_resumes_after_a_restart_with_what_is_new() {
    let home = tempfile::tempdir().unwrap();
    let threads = Threads::open(settings(&home)).await.unwrap();
    let thread = create(&threads).await;
    threads.command(prompt(thread, 1)).await.unwrap();
    let cursor = threads.cursor();
    threads.close().await;
    assert!(matches!(threads.command(prompt(thread, 2)).await, Err(ThreadsError::Unavailable)));
    let threads = Threads::open(settings(&home)).await.unwrap();
    let mut subscription = threads.subscribe_thread(thread, Some(cursor)).unwrap();
    assert!(matches!(
        subscription.next().await.unwrap(),
        Some(ThreadDelivery::Resumed(now)) if now.seq == cursor.seq && now.epoch != cursor.epoch
    ));
    let Some(ThreadDelivery::Events(events)) = subscription.next().await.unwrap() else {
        panic!("the cut")
    };
    assert!(matches!(events[0].event.body, EventBody::TurnEnded { outcome: Outcome::Cut, .. }));
    let mut list = threads.subscribe_shell(Some(cursor), Omissions::default());
    assert!(matches!(list.next().await, Some(ShellDelivery::Resumed(_))));
    let Some(ShellDelivery::Changes(changes)) = list.next().await else { panic!("the row") };
    assert_eq!(changes.rows[0].last_outcome, Some(Outcome::Cut));
    threads.close().await;
    assert!(matches!(list.next().await, Some(ShellDelivery::Synchronized(_))));
    assert!(list.next().await.is_none(), "the end of the host ends its subscriptions");
}

#[tokio::test]
async fn an_unchanged_list_is_not_read_again() {
    let home = tempfile::tempdir().unwrap();
    let threads = Threads::open(settings(&home)).await.unwrap();
    let thread = create(&threads).await;
    let all = Omissions { families: true, older_settled: true };
    let snapshot = threads.shell(all, None).unwrap();
    assert_eq!(snapshot.rows.len(), 1);
    say(&threads, thread, "content changes no row").await;
    assert_eq!(threads.shell(all, Some(snapshot.cursor)), None);
    threads.command(Command::Pin { thread, pinned: true }).await.unwrap();
    assert!(threads.shell(all, Some(snapshot.cursor)).is_some());
    threads.close().await;
}

#[tokio::test]
async fn a_follower_sees_every_event_once_and_in_order() {
    let home = tempfile::tempdir().unwrap();
    let threads = Threads::open(settings(&home)).await.unwrap();
    let mut follower = threads.follow(Seq::ZERO);
    let mut seen = Vec::new();
    let thread = create(&threads).await;
    for number in 0..30 {
        threads.command(Command::Rename { thread, title: number.to_string() }).await.unwrap();
        if number % 7 == 0 {
            seen.extend(follower.next().await.unwrap().unwrap());
        }
    }
    while follower.at() < threads.cursor().seq {
        seen.extend(follower.next().await.unwrap().unwrap());
    }
    let numbers: Vec<_> = seen.iter().map(|recorded| recorded.event.seq.0).collect();
    assert_eq!(numbers, (1..=threads.cursor().seq.0).collect::<Vec<_>>());
    threads.close().await;
    assert!(follower.next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_write_that_fails_is_told_and_the_host_goes_on() {
    use sqlx::Connection as _;
    let home = tempfile::tempdir().unwrap();
    let threads = Threads::open(settings(&home)).await.unwrap();
    let thread = create(&threads).await;
    let before = threads.cursor();
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(home.path().join(".wakeful").join("threads.db"));
    let mut other = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    // Let the chores of the start be done, so that only the prompt is in the way.
    threads.command(Command::Tick).await.unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let failed = threads.command(prompt(thread, 1)).await;
    assert!(matches!(failed, Err(ThreadsError::Unavailable)));
    assert_eq!(threads.cursor(), before, "nobody saw what did not happen");
    assert!(threads.thread(thread).unwrap().turn.is_none());
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    assert!(threads.command(prompt(thread, 1)).await.unwrap().changed);
    assert!(threads.thread(thread).unwrap().turn.is_some());
    threads.close().await;
}

#[tokio::test]
async fn titles_and_texts_are_found_with_their_rows() {
    let home = tempfile::tempdir().unwrap();
    let threads = Threads::open(settings(&home)).await.unwrap();
    let (one, two) = (create(&threads).await, create(&threads).await);
    let title = "About Fridges".to_owned();
    threads.command(Command::Rename { thread: one, title }).await.unwrap();
    threads.command(prompt(two, 1)).await.unwrap();
    say(&threads, two, "the fridge is open").await;
    let turn = threads.thread(two).unwrap().turn.map(|turn| turn.id);
    let reason = StopReason::EndTurn;
    let updates = vec![AgentUpdate::TurnEnded(Outcome::Completed { reason })];
    threads.append(Append { thread: two, turn, updates }).await.unwrap();
    // Texts are found when the writer has had time for its chores: ask until it has.
    loop {
        let (rows, found) = threads.search("fridge", 10).await.unwrap();
        assert_eq!(rows.rows[0].id, one);
        if rows.rows.len() == 2 {
            assert_eq!((rows.rows[1].id, found[0].thread), (two, two));
            break;
        }
        tokio::task::yield_now().await;
    }
    let long = "x".repeat(600);
    assert!(matches!(
        threads.search(&long, 10).await,
        Err(ThreadsError::Refused(Refused::TooLarge(_)))
    ));
    threads.close().await;
}

#[tokio::test]
async fn what_is_due_by_time_happens_by_itself() {
    let home = tempfile::tempdir().unwrap();
    let now = Arc::new(std::sync::atomic::AtomicU64::new(1_000));
    let clock = {
        let now = Arc::clone(&now);
        Arc::new(move || Timestamp(now.load(std::sync::atomic::Ordering::Relaxed)))
    };
    let tick = Duration::from_millis(100);
    let threads = Threads::open(Settings { clock, tick, ..settings(&home) }).await.unwrap();
    let thread = create(&threads).await;
    let until = Some(Timestamp(5_000));
    threads.command(Command::Snooze { thread, until }).await.unwrap();
    let mut head = threads.head();
    now.store(5_000, std::sync::atomic::Ordering::Relaxed);
    while threads.thread(thread).unwrap().snoozed_until.is_some() {
        head.changed().await.unwrap();
    }
    threads.close().await;
}
