use std::time::Duration;

use wakeful_wire::{
    Timestamp,
    rpc::{
        AnsweredBy, By, ClientId, EventBody, NoticeLevel, Outcome, PermissionOption,
        PermissionOptionKind, Prompt, Remember, Role, StopReason, ThreadId, ToolPatch, ToolStatus,
        TurnId, WithdrawnWhy,
    },
};

use super::world::World;
use crate::thread::{
    command::{AgentUpdate, Append, Command, Create, Refused},
    decide::Policy,
    limits::{
        APPEND_MAX, CHUNK_MAX, DEPTH_MAX, KEYS_MAX, PROMPT_MAX, QUEUE_MAX, RAW_MAX, TERMINAL_MAX,
        TEXT_ITEM_MAX, TITLE_MAX,
    },
};

fn ends(outcome: Outcome) -> AgentUpdate {
    AgentUpdate::TurnEnded(outcome)
}

fn text(text: &str) -> AgentUpdate {
    AgentUpdate::Text { role: Role::Agent, message: None, text: text.to_owned() }
}

fn permission(world: &mut World, key: Option<&str>) -> AgentUpdate {
    let option = |id: &str, kind| PermissionOption { id: id.to_owned(), name: id.to_owned(), kind };
    AgentUpdate::Permission {
        request: world.request(),
        tool: None,
        title: "may I?".to_owned(),
        options: vec![
            option("always", PermissionOptionKind::AllowAlways),
            option("once", PermissionOptionKind::AllowOnce),
            option("never", PermissionOptionKind::RejectOnce),
        ],
        key: key.map(str::to_owned),
    }
}

#[test]
fn a_prompt_that_is_sent_again_is_answered_with_the_event_that_took_it() {
    let mut world = World::new(1);
    let thread = world.create(None);
    let prompt = Prompt::text(world.client(), "hello");
    let command = Command::Prompt { thread, prompt: prompt.clone() };
    let first = world.command(&command).unwrap();
    world.end_turn(thread);
    let head = world.state.head();
    let again = world.command(&command).unwrap();
    assert!(first.changed && !again.changed);
    assert_eq!(again.seq, world.state.prompt(prompt.client).unwrap().1);
    assert_eq!(world.state.head(), head);
    // Also with a thread that would have to be made, and after the thread is gone.
    let create = Create { agent: "shell".to_owned(), prompt: Some(prompt), ..Create::default() };
    let taken = world.command(&Command::Create(create)).unwrap();
    assert_eq!((taken.thread, taken.changed), (Some(thread), false));
    world.command(&Command::Delete { thread }).unwrap();
    assert!(!world.command(&command).unwrap().changed);
}

#[test]
fn a_thread_that_is_made_twice_with_one_id_is_one() {
    let mut world = World::new(2);
    let id = ThreadId::from_uuid(world.draw.uuid());
    let create = Create { thread: Some(id), agent: "shell".to_owned(), ..Create::default() };
    assert!(world.command(&Command::Create(create.clone())).unwrap().changed);
    assert!(!world.command(&Command::Create(create.clone())).unwrap().changed);
    world.command(&Command::Delete { thread: id }).unwrap();
    assert_eq!(world.command(&Command::Create(create.clone())), Err(Refused::Deleted));
    let anew = Create { anew: true, ..create };
    assert!(world.command(&Command::Create(anew)).unwrap().changed);
    assert!(!world.thread(id).deleted);
}

#[test]
fn one_turn_runs_and_the_next_starts_with_its_end() {
    let mut world = World::new(3);
    let thread = world.create(None);
    let prompts: Vec<_> = (0..3).map(|number| world.prompt(thread, &number.to_string())).collect();
    for prompt in prompts {
        assert_eq!(world.thread(thread).turn.unwrap().prompt, prompt);
        let head = world.state.head();
        world.end_turn(thread);
        let kinds = world.kinds_since(head);
        assert_eq!(kinds[0], "turn_ended");
        let goes_on = world.turn(thread).is_some();
        assert_eq!(kinds.len(), if goes_on { 2 } else { 1 });
    }
    assert!(world.thread(thread).is_idle());
}

#[test]
fn a_turn_that_did_not_complete_holds_the_queue_until_a_person_wants_it_to_go_on() {
    let outcomes =
        [Outcome::Cancelled { obeyed: true }, Outcome::Failed { message: "no".to_owned() }];
    for outcome in outcomes {
        for by_prompt in [false, true] {
            let mut world = World::new(4);
            let thread = world.create(None);
            world.prompt(thread, "first");
            let second = world.prompt(thread, "second");
            world.agent(thread, ends(outcome.clone())).unwrap();
            assert!(world.thread(thread).held && world.turn(thread).is_none());
            if by_prompt {
                world.prompt(thread, "third");
            } else {
                world.command(&Command::Release { thread }).unwrap();
            }
            assert_eq!(world.thread(thread).turn.unwrap().prompt, second);
            assert_eq!(world.thread(thread).queue.len(), usize::from(by_prompt));
        }
    }
}

#[test]
fn a_crash_cuts_the_turn_once_and_nothing_runs_by_itself() {
    let mut world = World::new(5);
    let thread = world.create(None);
    world.prompt(thread, "first");
    world.prompt(thread, "second");
    world.agent(thread, AgentUpdate::Session("s".to_owned())).unwrap();
    let ask = permission(&mut world, None);
    world.agent(thread, ask).unwrap();
    let running = ToolPatch {
        id: "t".to_owned(),
        status: Some(ToolStatus::InProgress),
        ..ToolPatch::default()
    };
    world.agent(thread, AgentUpdate::Tool(running)).unwrap();
    let head = world.state.head();
    world.crash();
    let kinds = world.kinds_since(head);
    assert_eq!(kinds, ["host_started", "permission_withdrawn", "turn_ended", "agent_ended"]);
    let held = world.thread(thread);
    assert_eq!(held.last_turn.as_ref().unwrap().outcome, Outcome::Cut);
    assert!(held.turn.is_none() && held.held && held.queue.len() == 1);
    assert!(held.permissions.is_empty() && held.open_tools.is_empty());
    assert!(!held.session.as_ref().unwrap().live);
    let head = world.state.head();
    world.crash();
    assert_eq!(world.kinds_since(head), ["host_started"]);
}

#[test]
fn what_a_person_asked_to_end_counts_as_cancelled() {
    let complete = Outcome::Completed { reason: StopReason::EndTurn };
    let table = [
        (ends(complete), Outcome::Cancelled { obeyed: true }),
        (
            AgentUpdate::AgentEnded { why: "killed".to_owned() },
            Outcome::Cancelled { obeyed: false },
        ),
    ];
    for (update, outcome) in table {
        let mut world = World::new(6);
        let thread = world.create(None);
        world.prompt(thread, "first");
        let ask = permission(&mut world, None);
        world.agent(thread, ask).unwrap();
        let turn = world.turn(thread);
        world.command(&Command::Cancel { thread, turn }).unwrap();
        assert!(world.thread(thread).permissions.is_empty(), "nobody waits for an answer any more");
        assert!(!world.command(&Command::Cancel { thread, turn }).unwrap().changed);
        world.agent(thread, update).unwrap();
        assert_eq!(world.thread(thread).last_turn.as_ref().unwrap().outcome, outcome);
        assert!(!world.command(&Command::Cancel { thread, turn }).unwrap().changed);
        assert_eq!(
            world.command(&Command::Cancel { thread, turn: None }),
            Err(Refused::NotRunning)
        );
    }
}

#[test]
fn a_cancel_never_ends_a_turn_that_it_does_not_name() {
    let mut world = World::new(7);
    let thread = world.create(None);
    world.prompt(thread, "first");
    let first = world.turn(thread);
    world.prompt(thread, "second");
    world.end_turn(thread);
    world.command(&Command::Cancel { thread, turn: first }).unwrap();
    assert_eq!(world.thread(thread).turn.unwrap().cancel_requested_at, None);
}

#[test]
fn the_last_words_of_an_ended_turn_never_land_in_the_next_one() {
    let mut world = World::new(8);
    let thread = world.create(None);
    world.prompt(thread, "first");
    world.prompt(thread, "second");
    let old = world.turn(thread);
    world.end_turn(thread);
    let late = Append { thread, turn: old, updates: vec![text("late")] };
    assert_eq!(world.command(&Command::Agent(late)), Err(Refused::Stale));
    let unknown = Some(TurnId::from_uuid(world.draw.uuid()));
    let late = Append { thread, turn: unknown, updates: vec![text("late")] };
    assert_eq!(world.command(&Command::Agent(late)), Err(Refused::Stale));
    let outside =
        Append { thread, turn: None, updates: vec![ends(Outcome::Cancelled { obeyed: true })] };
    assert_eq!(world.command(&Command::Agent(outside)), Err(Refused::NotRunning));
}

#[test]
fn writing_to_a_thread_brings_it_back_with_its_family() {
    let mut world = World::new(9);
    let parent = world.create(None);
    let child = world.create(Some(parent));
    world.command(&Command::Settle { thread: child, settled: true }).unwrap();
    let until = Some(Timestamp(world.now.0 + 5));
    world.command(&Command::Snooze { thread: child, until }).unwrap();
    world.command(&Command::Archive { thread: parent }).unwrap();
    assert!(!world.thread(child).is_active());
    world.prompt(child, "hello");
    for id in [parent, child] {
        assert!(world.thread(id).is_active());
    }
    assert_eq!((world.thread(child).settled, world.thread(child).snoozed_until), (None, None));
}

#[test]
fn what_works_is_neither_settled_nor_archived() {
    let mut world = World::new(10);
    let parent = world.create(None);
    let child = world.create(Some(parent));
    world.prompt(child, "hello");
    let settle = Command::Settle { thread: child, settled: true };
    assert_eq!(world.command(&settle), Err(Refused::Live));
    assert_eq!(world.command(&Command::Archive { thread: parent }), Err(Refused::Live));
    world.end_turn(child);
    world.command(&settle).unwrap();
    world.command(&Command::Archive { thread: parent }).unwrap();
}

#[test]
fn a_deletion_takes_the_family_below_and_ends_its_turns() {
    let mut world = World::new(11);
    let parent = world.create(None);
    let child = world.create(Some(parent));
    let other = world.create(None);
    world.prompt(child, "hello");
    let head = world.state.head();
    world.command(&Command::Delete { thread: parent }).unwrap();
    assert_eq!(world.kinds_since(head), ["turn_ended", "deleted", "deleted"]);
    assert!(world.thread(child).deleted && world.thread(parent).deleted);
    assert!(!world.thread(other).deleted);
    assert!(!world.command(&Command::Delete { thread: parent }).unwrap().changed);
    for command in [
        Command::Pin { thread: child, pinned: true },
        Command::Prompt { thread: child, prompt: Prompt::text(world.client(), "x") },
        Command::Agent(Append { thread: child, turn: None, updates: vec![text("x")] }),
    ] {
        assert_eq!(world.command(&command), Err(Refused::Deleted));
    }
}

#[test]
fn a_remembered_answer_is_given_at_once_where_it_holds() {
    for (remember, same_thread, same_project, elsewhere) in [
        (None, false, false, false),
        (Some(Remember::Thread), true, false, false),
        (Some(Remember::Project), true, true, false),
    ] {
        let mut world = World::new(12);
        let here = world.create(None);
        let beside = world.create(None);
        let create = Create { agent: "other".to_owned(), ..Create::default() };
        let away = world.command(&Command::Create(create)).unwrap().thread.unwrap();
        let ask = permission(&mut world, Some("run ls"));
        world.agent(here, ask).unwrap();
        let request = world.thread(here).permissions[0].request;
        let answer = |option: &str| Command::Answer {
            thread: here,
            request,
            option: option.to_owned(),
            remember,
        };
        assert_eq!(world.command(&answer("else")), Err(Refused::Invalid("option")));
        world.command(&answer("always")).unwrap();
        assert_eq!(world.command(&answer("always")), Err(Refused::NoSuchRequest));
        for (thread, given) in [(here, same_thread), (beside, same_project), (away, elsewhere)] {
            let ask = permission(&mut world, Some("run ls"));
            world.agent(thread, ask).unwrap();
            assert_eq!(world.thread(thread).permissions.is_empty(), given, "{remember:?}");
            let last = world.log.last().unwrap().event.body.clone();
            if given {
                let EventBody::PermissionAnswered { option, by, .. } = last else {
                    panic!("an answer")
                };
                assert_eq!((option.as_str(), by), ("once", AnsweredBy::Remembered));
            }
            let ask = permission(&mut world, Some("run rm"));
            world.agent(thread, ask).unwrap();
            assert!(!world.thread(thread).permissions.is_empty(), "another question");
        }
    }
}

#[test]
fn an_answer_that_is_remembered_answers_what_waits_alike() {
    let mut world = World::new(13);
    let thread = world.create(None);
    for key in ["a", "b", "a"] {
        let ask = permission(&mut world, Some(key));
        world.agent(thread, ask).unwrap();
    }
    let request = world.thread(thread).permissions[0].request;
    world
        .command(&Command::Answer {
            thread,
            request,
            option: "never".to_owned(),
            remember: Some(Remember::Thread),
        })
        .unwrap();
    let waiting = &world.thread(thread).permissions;
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].key.as_deref(), Some("b"));
}

#[test]
fn a_permission_that_was_settled_elsewhere_is_withdrawn_once() {
    let mut world = World::new(14);
    let thread = world.create(None);
    let ask = permission(&mut world, None);
    world.agent(thread, ask).unwrap();
    let request = world.thread(thread).permissions[0].request;
    let gone = || AgentUpdate::Withdrawn { request, why: WithdrawnWhy::SettledElsewhere };
    assert!(world.agent(thread, gone()).unwrap().changed);
    assert!(!world.agent(thread, gone()).unwrap().changed);
}

#[test]
fn texts_go_on_in_their_message_until_something_comes_between() {
    let mut world = World::new(15);
    let thread = world.create(None);
    world.prompt(thread, "go");
    let say = |role, message: Option<&str>, text: &str| AgentUpdate::Text {
        role,
        message: message.map(str::to_owned),
        text: text.to_owned(),
    };
    let tool = || AgentUpdate::Tool(ToolPatch { id: "t".to_owned(), ..ToolPatch::default() });
    let updates = vec![
        say(Role::Agent, None, "a"),
        say(Role::Agent, None, "b"),
        say(Role::Thought, None, "c"),
        say(Role::Agent, Some("m"), "d"),
        tool(),
        say(Role::Agent, Some("m"), "e"),
        say(Role::Agent, None, "f"),
        tool(),
        say(Role::Agent, None, "g"),
    ];
    let turn = world.turn(thread);
    world.command(&Command::Agent(Append { thread, turn, updates })).unwrap();
    let items: Vec<_> = world
        .log
        .iter()
        .filter_map(|recorded| {
            let EventBody::Text { item, text, .. } = &recorded.event.body else { return None };
            Some((*item, text.clone()))
        })
        .collect();
    let expected = [(1, "a"), (1, "b"), (2, "c"), (3, "d"), (3, "e"), (5, "f"), (5, "g")];
    // The tool was known already when it came the second time, so nothing came between.
    let expected: Vec<_> = expected.map(|(item, text)| (item, text.to_owned())).to_vec();
    assert_eq!(items, expected);
}

#[test]
fn long_texts_become_several_events_and_items() {
    let mut world = World::new(16);
    let thread = world.create(None);
    let long = "é".repeat(TEXT_ITEM_MAX);
    world.agent(thread, text(&long)).unwrap();
    let mut sizes = std::collections::BTreeMap::<u32, usize>::new();
    let mut all = String::new();
    for recorded in &world.log {
        if let EventBody::Text { item, text, .. } = &recorded.event.body {
            assert!(text.len() <= CHUNK_MAX);
            *sizes.entry(*item).or_default() += text.len();
            all.push_str(text);
        }
    }
    assert_eq!(all, long);
    assert!(sizes.len() > 1 && sizes.values().all(|size| *size <= TEXT_ITEM_MAX));
}

#[test]
fn a_terminal_without_end_is_cut_and_said_so_once() {
    let mut world = World::new(17);
    let thread = world.create(None);
    let megabyte = "x".repeat(1024 * 1024);
    let out = |text: &str, exit| AgentUpdate::Terminal {
        terminal: "x".to_owned(),
        text: text.to_owned(),
        exit,
    };
    for _ in 0..8 {
        world.agent(thread, out(&megabyte, None)).unwrap();
    }
    let exit = Some(wakeful_wire::rpc::Exit { code: Some(1), signal: None });
    world.agent(thread, out("more", exit)).unwrap();
    let (mut bytes, mut notices, mut ended) = (0_u64, 0, false);
    for recorded in &world.log {
        if let EventBody::Terminal { text, exit, .. } = &recorded.event.body {
            bytes += u64::try_from(text.len()).unwrap();
            ended |= exit.is_some();
        } else if let EventBody::Notice { level, .. } = &recorded.event.body {
            assert_eq!(*level, NoticeLevel::Warning);
            notices += 1;
        }
    }
    assert!((TERMINAL_MAX..TERMINAL_MAX + 64 * 1024).contains(&bytes));
    assert_eq!((notices, ended), (1, true));
}

#[test]
fn too_large_parts_of_a_tool_call_are_left_out_and_said_so() {
    let mut world = World::new(18);
    let thread = world.create(None);
    let tool = ToolPatch {
        id: "t".to_owned(),
        title: Some("t".repeat(TITLE_MAX * 2)),
        raw_input: Some("x".repeat(RAW_MAX).into()),
        raw_output: Some(serde_json::json!({ "small": 1 })),
        ..ToolPatch::default()
    };
    world.agent(thread, AgentUpdate::Tool(tool)).unwrap();
    let EventBody::Tool { tool, .. } = &world.log.last().unwrap().event.body else {
        panic!("a tool")
    };
    assert!(tool.title.as_ref().unwrap().len() <= TITLE_MAX);
    assert_eq!(tool.raw_input, Some(serde_json::json!({ "left_out_bytes": RAW_MAX + 2 })));
    assert_eq!(tool.raw_output, Some(serde_json::json!({ "small": 1 })));
}

#[test]
fn the_numbering_of_tools_is_bounded() {
    let mut world = World::new(19);
    let thread = world.create(None);
    let tool = |number: usize| {
        AgentUpdate::Tool(ToolPatch { id: number.to_string(), ..ToolPatch::default() })
    };
    let mut number = 0;
    while number <= KEYS_MAX {
        let updates: Vec<_> = (0..1000).map(|more| tool(number + more)).collect();
        number += updates.len();
        let append = Append { thread, turn: None, updates };
        world.command(&Command::Agent(append)).unwrap();
    }
    world.agent(thread, tool(0)).unwrap();
    let EventBody::Tool { item, .. } = world.log.last().unwrap().event.body else {
        panic!("a tool")
    };
    assert_eq!(usize::try_from(item).unwrap(), number, "the oldest is opened anew");
}

#[test]
fn bounds_are_refused_and_change_nothing() {
    let mut world = World::new(20);
    let thread = world.create(None);
    world.prompt(thread, "runs");
    for _ in 0..QUEUE_MAX {
        world.prompt(thread, "waits");
    }
    let create = |project: &str, agent: &str| {
        Command::Create(Create {
            project: project.to_owned(),
            agent: agent.to_owned(),
            ..Create::default()
        })
    };
    let prompt = |client: ClientId, text: String| Command::Prompt {
        thread,
        prompt: Prompt::text(client, text),
    };
    let (one, two) = (world.client(), world.client());
    let empty = Prompt { client: world.client(), parts: Vec::new() };
    let unknown = ThreadId::from_uuid(world.draw.uuid());
    let now = world.now;
    let table = [
        (prompt(one, "one more".to_owned()), Refused::QueueFull),
        (prompt(two, "x".repeat(PROMPT_MAX)), Refused::TooLarge("prompt")),
        (Command::Prompt { thread, prompt: empty }, Refused::Invalid("prompt")),
        (create("../up", "shell"), Refused::Invalid("project")),
        (create("/root", "shell"), Refused::Invalid("project")),
        (create("a//b", "shell"), Refused::Invalid("project")),
        (create("a", ""), Refused::Invalid("agent")),
        (Command::Rename { thread, title: "  ".to_owned() }, Refused::Invalid("title")),
        (Command::Rename { thread, title: "x".repeat(TITLE_MAX + 1) }, Refused::TooLarge("title")),
        (Command::Snooze { thread, until: Some(now) }, Refused::Invalid("moment")),
        (Command::Pin { thread: unknown, pinned: true }, Refused::UnknownThread),
        (
            Command::Agent(Append { thread, turn: None, updates: vec![text("x"); APPEND_MAX + 1] }),
            Refused::TooMany("updates"),
        ),
    ];
    let before = world.state.clone();
    for (command, refused) in table {
        assert_eq!(world.decide(&command).unwrap_err(), refused);
        assert!(world.state == before);
    }
}

#[test]
fn subagents_nest_only_so_deep() {
    let mut world = World::new(21);
    let mut id = world.create(None);
    let root = id;
    for _ in 1..DEPTH_MAX {
        id = world.create(Some(id));
        assert_eq!(world.thread(id).root, root);
    }
    let create = Create { parent: Some(id), agent: "shell".to_owned(), ..Create::default() };
    assert!(matches!(world.command(&Command::Create(create)), Err(Refused::TooMany(_))));
}

#[test]
fn a_title_by_hand_is_not_replaced_by_an_agents() {
    let mut world = World::new(22);
    let thread = world.create(None);
    world.agent(thread, AgentUpdate::Title("theirs".to_owned())).unwrap();
    assert_eq!(world.thread(thread).title.as_deref(), Some("theirs"));
    world.command(&Command::Rename { thread, title: " mine ".to_owned() }).unwrap();
    world.agent(thread, AgentUpdate::Title("theirs again".to_owned())).unwrap();
    let held = world.thread(thread);
    assert_eq!((held.title.as_deref(), held.titled_by), (Some("mine"), Some(By::Hand)));
}

#[test]
fn time_brings_back_what_is_snoozed_and_settles_what_is_old_and_at_rest() {
    let mut world = World::new(23);
    let after = Duration::from_secs(60);
    world.policy = Policy { settle_after: Some(after) };
    let [old, pinned, working, above, snoozed] = std::array::from_fn(|_| world.create(None));
    let below = world.create(Some(above));
    world.command(&Command::Pin { thread: pinned, pinned: true }).unwrap();
    world.prompt(working, "go");
    world.prompt(below, "go");
    let until = Timestamp(world.now.0 + 30_000);
    world.command(&Command::Snooze { thread: snoozed, until: Some(until) }).unwrap();
    world.now = Timestamp(until.0 - 1);
    assert!(!world.command(&Command::Tick).unwrap().changed);
    world.now = until;
    world.command(&Command::Tick).unwrap();
    assert_eq!(world.thread(snoozed).snoozed_until, None);
    world.now = Timestamp(until.0 + 60_000);
    let young = world.create(None);
    world.command(&Command::Tick).unwrap();
    for (thread, settled) in [
        (old, true),
        (snoozed, true),
        (pinned, false),
        (working, false),
        (above, false),
        (below, false),
        (young, false),
    ] {
        assert_eq!(world.thread(thread).settled.is_some(), settled);
    }
    assert_eq!(world.thread(old).settled.unwrap().by, By::Rule);
    assert!(!world.command(&Command::Tick).unwrap().changed);
}

#[test]
fn a_waiting_prompt_can_be_taken_back_until_its_turn_begins() {
    let mut world = World::new(24);
    let thread = world.create(None);
    let first = world.prompt(thread, "first");
    let second = world.prompt(thread, "second");
    assert_eq!(world.command(&Command::Unqueue { thread, client: first }), Err(Refused::Begun));
    let unqueue = Command::Unqueue { thread, client: second };
    assert!(world.command(&unqueue).unwrap().changed);
    assert!(!world.command(&unqueue).unwrap().changed);
    // It was taken once; sending it again does not bring it back.
    let again = Command::Prompt { thread, prompt: Prompt::text(second, "second") };
    assert!(!world.command(&again).unwrap().changed);
    assert!(world.thread(thread).queue.is_empty());
}

#[test]
fn what_was_asked_outside_of_a_turn_is_withdrawn_when_one_begins() {
    let mut world = World::new(25);
    let thread = world.create(None);
    let ask = permission(&mut world, None);
    world.agent(thread, ask).unwrap();
    let head = world.state.head();
    world.prompt(thread, "go");
    assert_eq!(world.kinds_since(head), ["prompt_queued", "permission_withdrawn", "turn_started"]);
    assert!(world.thread(thread).permissions.is_empty());
    world.end_turn(thread);
    // Answers to what a turn asked are numbered in its own segment.
    assert_eq!(world.whole[&thread].page.segments.len(), 2);
}
