//! Threads with agents that work in them: the log says what happened.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use wakeful_envd::{
    agent::{Agent, Lease, Leases, Runner, RunnerLimits},
    thread::{
        Settings, Threads,
        command::{Command, Create},
        log::PageLimits,
    },
};
use wakeful_wire::rpc::{
    ClientId, Item, ItemBody, Outcome, PermissionOptionKind, Prompt, Remember, Thread, ThreadId,
    TurnId,
};

use crate::fixture::{DONE, PATIENCE, Place, a_prompt, lives, pid_in};

/// Counts what is held.
#[derive(Default)]
struct Held {
    now: Arc<AtomicUsize>,
    ever: AtomicUsize,
    touched: AtomicUsize,
}

struct OneHeld(Arc<AtomicUsize>);

impl Drop for OneHeld {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Leases for Held {
    fn hold(&self, _thread: ThreadId, _turn: TurnId) -> Box<dyn Lease> {
        self.ever.fetch_add(1, Ordering::SeqCst);
        self.now.fetch_add(1, Ordering::SeqCst);
        Box::new(OneHeld(Arc::clone(&self.now)))
    }

    fn touch(&self, _thread: ThreadId) {
        self.touched.fetch_add(1, Ordering::SeqCst);
    }
}

/// A host: threads, a runner, and two agents.
struct Host {
    threads: Threads,
    runner: Runner,
    held: Arc<Held>,
}

impl Host {
    async fn start(place: &Place, words: &str, limits: RunnerLimits) -> Self {
        let threads = Threads::open(Settings::new(place.workspace().to_owned())).await.unwrap();
        let agents: BTreeMap<String, Arc<dyn Agent>> = [
            ("fake".to_owned(), Arc::new(place.fake(words)) as Arc<dyn Agent>),
            ("shell".to_owned(), Arc::new(place.shell()) as Arc<dyn Agent>),
        ]
        .into();
        let held = Arc::new(Held::default());
        let leases = Arc::clone(&held) as Arc<dyn Leases>;
        let runner = Runner::new(Arc::new(threads.clone()), agents, leases, limits);
        let follower = threads.follow(threads.cursor().seq);
        let following = runner.clone();
        tokio::spawn(async move { following.run(follower).await });
        Self { threads, runner, held }
    }

    /// As a host stops: agents first, then the log.
    async fn stop(self) {
        self.runner.stop().await;
        self.threads.close().await;
    }

    async fn create(&self, agent: &str) -> ThreadId {
        let create = Create { agent: agent.to_owned(), ..Create::default() };
        self.threads.command(Command::Create(create)).await.unwrap().thread.unwrap()
    }

    async fn send(&self, thread: ThreadId, text: &str) -> ClientId {
        let prompt = a_prompt(text);
        let client = prompt.client;
        self.send_prompt(thread, prompt).await;
        client
    }

    async fn send_prompt(&self, thread: ThreadId, prompt: Prompt) {
        self.threads.command(Command::Prompt { thread, prompt }).await.unwrap();
    }

    /// Waits until a thread is as wanted.
    async fn until(&self, id: ThreadId, wanted: impl Fn(&Thread) -> bool) -> Thread {
        let mut head = self.threads.head();
        let waited = async {
            loop {
                head.borrow_and_update();
                let thread = self.threads.thread(id).unwrap();
                if wanted(&thread) {
                    return thread;
                }
                head.changed().await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, waited).await.expect("it never came to that")
    }

    /// Waits for the end of the turn that answers a prompt.
    async fn end_of(&self, id: ThreadId, client: ClientId) -> Outcome {
        let ended =
            |thread: &Thread| thread.last_turn.as_ref().is_some_and(|turn| turn.prompt == client);
        self.until(id, ended).await.last_turn.unwrap().outcome
    }

    async fn items(&self, id: ThreadId) -> Vec<Vec<Item>> {
        let detail = self.threads.detail(id, PageLimits::FIRST).await.unwrap();
        detail.page.segments.into_iter().map(|segment| segment.items).collect()
    }

    /// All that agents wrote in a thread, turn by turn.
    async fn texts(&self, id: ThreadId) -> Vec<String> {
        let text = |item: &Item| match &item.body {
            ItemBody::Text { text, .. } | ItemBody::Terminal { text, .. } => Some(text.clone()),
            _ => None,
        };
        let items = self.items(id).await;
        items.iter().map(|items| items.iter().filter_map(text).collect()).collect()
    }
}

fn many() -> RunnerLimits {
    RunnerLimits::default()
}

#[tokio::test]
async fn prompts_are_played_in_order_one_at_a_time_and_leases_are_given_back() {
    let place = Place::new();
    let host = Host::start(&place, "", many()).await;
    let thread = host.create("fake").await;
    let mut last = None;
    for number in 0..5 {
        last =
            Some(host.send(thread, &json!([{"say": format!("turn {number}")}]).to_string()).await);
    }
    assert_eq!(host.end_of(thread, last.unwrap()).await, DONE);
    let texts = host.texts(thread).await;
    let wanted: Vec<_> = (0..5).map(|number| format!("turn {number}")).collect();
    assert_eq!(texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>(), wanted);
    assert_eq!(host.held.ever.load(Ordering::SeqCst), 5);
    // One process served all of them.
    assert_eq!(host.runner.agents_alive(), 1);
    let held = Arc::clone(&host.held);
    host.stop().await;
    assert_eq!(held.now.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn two_threads_work_at_once_and_a_third_waits_for_its_place() {
    let place = Place::new();
    let host = Host::start(&place, "", RunnerLimits { turns: 2, agents: 2, ..many() }).await;
    let (one, two, three) =
        (host.create("shell").await, host.create("shell").await, host.create("shell").await);
    let wait = |mine: &str, other: &str| {
        format!("touch {mine}; until test -e {other}; do sleep 0.02; done")
    };
    let first = host.send(one, &wait("one", "two; test -e go")).await;
    let second = host.send(two, &wait("two", "one; test -e go")).await;
    let third = host.send(three, "touch three").await;
    for name in ["one", "two"] {
        crate::fixture::eventually(name, || place.workspace().join(name).exists()).await;
    }
    host.until(three, |thread| thread.turn.is_some()).await;
    // Which keeps the environment awake, too.
    crate::fixture::eventually("three leases", || host.held.now.load(Ordering::SeqCst) == 3).await;
    assert!(!place.workspace().join("three").exists(), "but it waits");
    std::fs::write(place.workspace().join("go"), "").unwrap();
    assert_eq!(host.end_of(one, first).await, DONE);
    assert_eq!(host.end_of(two, second).await, DONE);
    assert_eq!(host.end_of(three, third).await, DONE);
    host.stop().await;
}

#[tokio::test]
async fn an_answer_is_remembered_for_its_kind_of_tool_also_after_a_restart() {
    let place = Place::new();
    let ask = |tool: &str, kind: &str| {
        json!([{"ask": {"toolCallId": tool, "title": "May I?", "kind": kind}}]).to_string()
    };
    let host = Host::start(&place, "resume", many()).await;
    let thread = host.create("fake").await;
    let sent = host.send(thread, &ask("t1", "execute")).await;
    let asking = host.until(thread, |thread| !thread.permissions.is_empty()).await;
    let pending = &asking.permissions[0];
    assert_eq!(pending.key.as_deref(), Some("execute"));
    let option =
        pending.options.iter().find(|held| held.kind == PermissionOptionKind::AllowOnce).unwrap();
    let answer = Command::Answer {
        thread,
        request: pending.request,
        option: option.id.clone(),
        remember: Some(Remember::Thread),
    };
    host.threads.command(answer).await.unwrap();
    assert_eq!(host.end_of(thread, sent).await, DONE);
    let sent = host.send(thread, &ask("t2", "execute")).await;
    assert_eq!(host.end_of(thread, sent).await, DONE);
    host.stop().await;

    let host = Host::start(&place, "resume", many()).await;
    let sent = host.send(thread, &ask("t3", "execute")).await;
    assert_eq!(host.end_of(thread, sent).await, DONE);
    // Another kind of tool is another question.
    let _sent = host.send(thread, &ask("t4", "edit")).await;
    host.until(thread, |thread| !thread.permissions.is_empty()).await;
    let texts: String = host.texts(thread).await.concat();
    assert_eq!(texts.matches("answer yes").count(), 3, "{texts}");
    host.stop().await;
}

#[tokio::test]
async fn a_crash_cuts_the_turn_and_the_thread_goes_on_in_the_same_session() {
    let place = Place::new();
    let host = Host::start(&place, "resume", many()).await;
    let thread = host.create("fake").await;
    let sent = host.send(thread, &json!([{"spawn": "sleep 1000"}, {"die": 1}]).to_string()).await;
    let waiting = host.send(thread, &json!([{"say": "waited"}]).to_string()).await;
    assert_eq!(host.end_of(thread, sent).await, Outcome::Cut);
    let pid = pid_in(&host.texts(thread).await.concat());
    assert!(!lives(pid));
    let cut = host.until(thread, |thread| !thread.session.as_ref().unwrap().live).await;
    assert!(cut.held && cut.turn.is_none(), "what waits goes on when a person says so");
    host.threads.command(Command::Release { thread }).await.unwrap();
    assert_eq!(host.end_of(thread, waiting).await, DONE);
    let again = host.threads.thread(thread).unwrap();
    assert_eq!(again.session.unwrap().id, cut.session.unwrap().id);
    assert!(host.texts(thread).await.concat().contains("waited"));
    host.stop().await;
}

#[tokio::test]
async fn a_cancel_reaches_a_running_turn_and_one_that_waits_for_its_place() {
    let place = Place::new();
    let host = Host::start(&place, "", RunnerLimits { turns: 1, ..many() }).await;
    let (one, two) = (host.create("fake").await, host.create("fake").await);
    let running = host.send(one, &json!([{"say": "begun"}, {"hang": true}]).to_string()).await;
    host.until(one, |thread| thread.session.is_some()).await;
    let waiting = host.send(two, &json!([{"say": "never"}]).to_string()).await;
    for (thread, sent) in [(two, waiting), (one, running)] {
        host.until(thread, |thread| thread.turn.is_some()).await;
        host.threads.command(Command::Cancel { thread, turn: None }).await.unwrap();
        assert_eq!(host.end_of(thread, sent).await, Outcome::Cancelled { obeyed: true });
    }
    assert!(!host.texts(two).await.concat().contains("never"));
    host.stop().await;
}

#[tokio::test]
async fn a_stop_cuts_what_runs_and_leaves_no_process() {
    let place = Place::new();
    let host = Host::start(&place, "deaf", many()).await;
    let thread = host.create("fake").await;
    host.send(thread, &json!([{"spawn": "sleep 1000"}, {"hang": true}]).to_string()).await;
    host.until(thread, |thread| thread.session.is_some()).await;
    let mut texts = host.texts(thread).await.concat();
    while !texts.contains("pid ") {
        tokio::time::sleep(Duration::from_millis(10)).await;
        texts = host.texts(thread).await.concat();
    }
    let threads = host.threads.clone();
    host.runner.stop().await;
    assert!(!lives(pid_in(&texts)));
    let stopped = threads.thread(thread).unwrap();
    assert_eq!(stopped.last_turn.unwrap().outcome, Outcome::Cut);
    assert!(!stopped.session.unwrap().live);
    assert_eq!(host.held.now.load(Ordering::SeqCst), 0);
    threads.close().await;
}

#[tokio::test]
async fn a_thread_that_asks_for_an_unknown_agent_is_told_so() {
    let place = Place::new();
    let host = Host::start(&place, "", many()).await;
    let thread = host.create("nobody").await;
    let sent = host.send(thread, "hello").await;
    let outcome = host.end_of(thread, sent).await;
    assert!(
        matches!(&outcome, Outcome::Failed { message } if message.contains("no agent `nobody`")),
        "{outcome:?}"
    );
    host.stop().await;
}

#[tokio::test]
async fn an_idle_agent_is_ended_in_time_and_for_want_of_room() {
    let place = Place::new();
    let limits = RunnerLimits { agents: 1, idle: Duration::from_secs(3600), ..many() };
    let host = Host::start(&place, "resume", limits).await;
    let (one, two) = (host.create("fake").await, host.create("fake").await);
    let sent = host.send(one, &json!([{"say": "one"}]).to_string()).await;
    assert_eq!(host.end_of(one, sent).await, DONE);
    let sent = host.send(two, &json!([{"say": "two"}]).to_string()).await;
    assert_eq!(host.end_of(two, sent).await, DONE);
    host.until(one, |thread| !thread.session.as_ref().unwrap().live).await;
    host.stop().await;

    let limits = RunnerLimits { idle: Duration::from_millis(50), ..many() };
    let host = Host::start(&place, "resume", limits).await;
    let sent = host.send(one, &json!([{"say": "again"}]).to_string()).await;
    assert_eq!(host.end_of(one, sent).await, DONE);
    let idle = host.until(one, |thread| !thread.session.as_ref().unwrap().live).await;
    assert_eq!(idle.last_turn.unwrap().outcome, DONE, "no turn was touched");
    host.stop().await;
}

#[tokio::test]
async fn a_deleted_thread_loses_its_agent() {
    let place = Place::new();
    let host = Host::start(&place, "deaf", many()).await;
    let thread = host.create("fake").await;
    host.send(thread, &json!([{"hang": true}]).to_string()).await;
    host.until(thread, |thread| thread.session.is_some()).await;
    host.threads.command(Command::Delete { thread }).await.unwrap();
    crate::fixture::eventually("its end", || host.runner.agents_alive() == 0).await;
    crate::fixture::eventually("the lease's end", || host.held.now.load(Ordering::SeqCst) == 0)
        .await;
    host.stop().await;
}

#[tokio::test]
async fn what_an_agent_says_outside_a_turn_is_kept_and_counts_as_activity() {
    let place = Place::new();
    let host = Host::start(&place, "", many()).await;
    let thread = host.create("fake").await;
    let steps = json!([{"say": "in"}, {"later": [{"say": "out"}]}]).to_string();
    let sent = host.send(thread, &steps).await;
    assert_eq!(host.end_of(thread, sent).await, DONE);
    while !host.texts(thread).await.concat().contains("out") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let texts: Vec<_> = host
        .items(thread)
        .await
        .concat()
        .iter()
        .filter_map(|item| match &item.body {
            ItemBody::Text { text, .. } => Some(text.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["in", "out"], "two texts, not one");
    assert!(host.held.touched.load(Ordering::SeqCst) > 0);
    host.stop().await;
}
