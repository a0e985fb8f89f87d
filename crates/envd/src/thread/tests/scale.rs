//! A log of a million events, a thread of a hundred thousand, a list of ten thousand threads, a
//! thousand subscribers. Prints what each step costs; run it by name, in release.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use uuid::Uuid;
use wakeful_wire::{
    Timestamp,
    rpc::{
        ClientId, Event, EventBody, Omissions, Outcome, Prompt, Role, Seq, StopReason, ThreadId,
        TurnId,
    },
};

use crate::thread::{
    Settings, Threads,
    command::{AgentUpdate, Append},
    feed::ThreadDelivery,
    log::{Log, PageLimits, Row},
};

const THREADS: u64 = 10_000;
const EVENTS: u64 = 1_000_000;
const LARGE: u64 = 100_000;

fn id(number: u64) -> Uuid {
    Uuid::from_u64_pair(7, number)
}

/// The event of that number: threads first, then turns of texts, a tenth of all in thread 0.
fn event(seq: u64) -> Event {
    let make = |thread: u64, body| Event {
        seq: Seq(seq),
        at: Timestamp(1_700_000_000_000 + seq),
        thread: Some(ThreadId::from_uuid(id(thread))),
        body,
    };
    if seq <= THREADS {
        let body = EventBody::ThreadCreated {
            parent: None,
            root: ThreadId::from_uuid(id(seq - 1)),
            project: "web".to_owned(),
            agent: "shell".to_owned(),
            title: Some(format!("thread number {seq}")),
        };
        return make(seq - 1, body);
    }
    // Turns of ten events, one thread after another; each tenth turn is thread 0's.
    let (turn, place) = ((seq - THREADS - 1) / 10, (seq - THREADS - 1) % 10);
    let thread = if turn % (EVENTS / LARGE) == 0 { 0 } else { turn % THREADS };
    let prompt = Prompt::text(ClientId::from_uuid(id(turn + 1)), "please do something useful");
    let segment = u32::try_from(turn / THREADS * 1_000 + turn / 10 % 1_000 + 1).unwrap();
    let turn_id = TurnId::from_uuid(id(turn));
    make(
        thread,
        match place {
            0 => EventBody::PromptQueued { prompt },
            1 => EventBody::TurnStarted { turn: turn_id, segment, prompt },
            9 => EventBody::TurnEnded {
                turn: turn_id,
                outcome: Outcome::Completed { reason: StopReason::EndTurn },
            },
            _ => EventBody::Text {
                item: 1,
                role: Role::Agent,
                text: "a sentence of about sixty characters, as agents stream them. ".to_owned(),
                message: None,
            },
        },
    )
}

fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4 / 1024
}

fn say(what: &str, since: Instant) {
    println!("{what}: {:?}, {} MiB resident", since.elapsed(), resident());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement; takes a minute"]
async fn the_sizes_that_people_reach_are_bearable() {
    let home = tempfile::tempdir().unwrap();
    let log = Log::open(home.path()).await.unwrap();
    let began = Instant::now();
    let mut seq = 1;
    while seq <= EVENTS {
        let events: Vec<_> = (seq..(seq + 2_000).min(EVENTS + 1)).map(event).collect();
        let bodies: Vec<_> =
            events.iter().map(|event| serde_json::to_string(&event.body).unwrap()).collect();
        let rows: Vec<_> =
            events.iter().zip(&bodies).map(|(event, body)| Row { event, body }).collect();
        log.commit(&rows).await.unwrap();
        seq += 2_000;
    }
    say("a million events appended", began);
    log.close().await;

    let settings =
        Settings { tick: Duration::from_secs(3_600), ..Settings::new(home.path().into()) };
    let began = Instant::now();
    let threads = Threads::open(settings.clone()).await.unwrap();
    say("opened without a checkpoint", began);
    threads.close().await;
    drop(threads);
    let began = Instant::now();
    let threads = Threads::open(settings).await.unwrap();
    say("opened from a checkpoint", began);

    let large = ThreadId::from_uuid(id(0));
    for round in ["first", "again"] {
        let began = Instant::now();
        let detail = threads.detail(large, PageLimits::FIRST).await.unwrap();
        say(&format!("newest page of the large thread, {round}"), began);
        let began = Instant::now();
        let before = detail.page.before.unwrap();
        threads.page(large, before, PageLimits::FURTHER).await.unwrap();
        say("the page before", began);
    }
    let began = Instant::now();
    let all = Omissions { families: true, older_settled: true };
    let snapshot = threads.shell(all, None).unwrap();
    let bytes = serde_json::to_string(&snapshot).unwrap().len();
    say(&format!("the list: {} rows, {bytes} bytes", snapshot.rows.len()), began);
    let began = Instant::now();
    assert!(threads.shell(all, Some(snapshot.cursor)).is_none());
    say("the list, unchanged", began);
    let began = Instant::now();
    assert!(!threads.search("thread number 77", 100).await.unwrap().0.rows.is_empty());
    say("a search", began);

    let thread = ThreadId::from_uuid(id(5));
    let cursor = threads.cursor();
    let told = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let readers: Vec<_> = (0..1_000)
        .map(|number| {
            let mut subscription = threads.subscribe_thread(thread, Some(cursor)).unwrap();
            let told = Arc::clone(&told);
            tokio::spawn(async move {
                let mut seen = 0_usize;
                // One in ten never reads on.
                while seen < if number % 10 == 0 { 1 } else { 1_000 } {
                    if let Some(ThreadDelivery::Events(events)) = subscription.next().await.unwrap()
                    {
                        seen += events.len();
                        let bytes: usize =
                            events.iter().map(|recorded| recorded.text().len()).sum();
                        told.fetch_add(bytes as u64, std::sync::atomic::Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    let began = Instant::now();
    for _ in 0..100 {
        let text = "a sentence of about sixty characters, as agents stream them. ".to_owned();
        let update = AgentUpdate::Text { role: Role::Agent, message: None, text };
        let updates = vec![update; 10];
        threads.append(Append { thread, turn: None, updates }).await.unwrap();
    }
    say("a thousand events in a hundred appends beside a thousand readers", began);
    for reader in readers {
        reader.await.unwrap();
    }
    say("all of them have everything", began);
    threads.close().await;
}
