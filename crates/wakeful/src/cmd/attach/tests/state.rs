use std::collections::{BTreeMap, BTreeSet};

use wakeful_wire::rpc::{
    EventBody, Exit, NoticeLevel, Outcome, PermissionState, PlanEntry, Role, ThreadItem,
    ToolContent, ToolKind, ToolPatch, ToolStatus, Usage, WithdrawnWhy,
};

use super::super::{
    change::{Change, Place},
    state::Following,
    testing::{DONE, Dice, Log, request, thread},
};

/// What somebody has seen, with all that may only be seen once checked.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    threads: usize,
    title: Option<String>,
    prompts: Vec<String>,
    texts: BTreeMap<Place, (Role, String)>,
    tools: BTreeMap<Place, (ToolKind, String, ToolStatus)>,
    terminals: BTreeMap<Place, (String, Option<Exit>)>,
    plan: Vec<PlanEntry>,
    notices: Vec<String>,
    settled: BTreeMap<Place, PermissionState>,
    ended: BTreeMap<u32, Outcome>,
    usage: Option<Usage>,
}

/// What nobody may see twice, and what may be passed over.
#[derive(Debug, Default)]
struct Once {
    diffs: BTreeSet<(Place, String)>,
    tool_texts: BTreeSet<(Place, String)>,
    asked: BTreeSet<String>,
    lines: BTreeMap<Place, (ToolKind, String, ToolStatus)>,
}

impl Seen {
    fn see(&mut self, once: &mut Once, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Thread { .. } => self.threads += 1,
                Change::Titled(title) => assert_ne!(self.title.replace(title.clone()), Some(title)),
                Change::Prompt(prompt) => self.prompts.push(prompt.plain()),
                Change::Text { place, role, more } => {
                    assert!(!more.is_empty());
                    let (_, text) = self.texts.entry(place).or_insert((role, String::new()));
                    text.push_str(&more);
                }
                Change::Tool { place, call, line, diffs, texts } => {
                    let now = (call.kind, call.title, call.status);
                    if line {
                        let before = once.lines.insert(place, now.clone());
                        assert_ne!(before.as_ref(), Some(&now), "a line is said twice");
                    }
                    self.tools.insert(place, now);
                    for diff in diffs {
                        assert!(once.diffs.insert((place, format!("{diff:?}"))), "{diff:?} twice");
                    }
                    for text in texts {
                        assert!(once.tool_texts.insert((place, text.clone())), "{text} twice");
                    }
                }
                Change::Terminal { place, left_out, more, exit } => {
                    assert_eq!(left_out, 0);
                    let (text, ended) = self.terminals.entry(place).or_default();
                    text.push_str(&more);
                    assert!(ended.is_none() || exit.is_none(), "an end twice");
                    *ended = ended.or(exit);
                }
                Change::Plan(entries) => {
                    assert_ne!(self.plan, entries);
                    self.plan = entries;
                }
                Change::Notice { text, .. } => self.notices.push(text),
                Change::Asked(asked) => {
                    assert!(once.asked.insert(asked.request.to_string()), "asked twice");
                }
                Change::Settled { place, state, .. } => {
                    assert_eq!(self.settled.insert(place, state), None, "settled twice");
                }
                Change::Ended { segment, outcome } => {
                    assert_eq!(self.ended.insert(segment, outcome), None, "ended twice");
                }
                Change::Usage(usage) => self.usage = Some(usage),
                Change::LeftOut | Change::Rewound | Change::Deleted => panic!("{change:?}"),
                Change::Mode(_)
                | Change::Archived(_)
                | Change::Queued(_)
                | Change::Held(_)
                | Change::Cancelling
                | Change::Synchronized => {}
            }
        }
    }
}

/// A long thread in which everything happens, as chance wants it.
fn random_log(dice: &mut Dice) -> Log {
    let mut log = Log::new();
    let (mut requests, mut segment) = (0, 0);
    for _ in 0..1 + dice.below(4) {
        segment += 1;
        log.begin(segment, &format!("prompt {segment}"));
        let (mut items, mut last_text, mut tools, mut terminals) =
            (1, None, Vec::new(), Vec::new());
        let mut pending: Vec<(u32, u32)> = Vec::new();
        for step in 0..dice.below(25) {
            match dice.below(12) {
                0..=2 => {
                    let item = *last_text.get_or_insert(items);
                    items = items.max(item + 1);
                    log.text(item, &format!("wört {step} "));
                    continue;
                }
                3 | 4 => {
                    let title = format!("title {}", dice.below(3));
                    let status = [ToolStatus::InProgress, ToolStatus::Completed][dice.below(2)];
                    tools.push(items);
                    log.tool(items, &title, status);
                    items += 1;
                }
                5 if !tools.is_empty() => {
                    let item = tools[dice.below(tools.len())];
                    let diff = ToolContent::Diff {
                        path: "a".to_owned(),
                        old: None,
                        new: dice.below(3).to_string(),
                    };
                    let text = ToolContent::Text { text: dice.below(3).to_string() };
                    let status = [None, Some(ToolStatus::Completed)][dice.below(2)];
                    let id = format!("tool-{item}");
                    let content = Some(vec![diff, text]);
                    let tool = ToolPatch { id, status, content, ..ToolPatch::default() };
                    log.push(EventBody::Tool { item, tool });
                }
                6 => {
                    let item = match terminals.last() {
                        Some(item) if dice.below(2) == 0 => *item,
                        _ => items,
                    };
                    let ended = item != items && dice.below(3) == 0;
                    if ended {
                        terminals.pop();
                    } else if item == items {
                        terminals.push(item);
                        items += 1;
                    }
                    log.push(EventBody::Terminal {
                        item,
                        terminal: format!("t{item}"),
                        text: format!("öut {step}\n"),
                        exit: ended.then_some(Exit { code: Some(0), signal: None }),
                    });
                }
                7 => {
                    let entries = vec![PlanEntry {
                        text: format!("step {segment} {step}"),
                        priority: Default::default(),
                        status: Default::default(),
                    }];
                    log.push(EventBody::Plan { item: items, entries });
                    items += 1;
                }
                8 => {
                    let text = format!("notice {segment} {step}");
                    log.push(EventBody::Notice { item: items, level: NoticeLevel::Info, text });
                    items += 1;
                }
                9 => {
                    requests += 1;
                    pending.push((items, requests));
                    log.ask(items, requests);
                    items += 1;
                }
                10 if !pending.is_empty() => {
                    let (item, number) = pending.remove(dice.below(pending.len()));
                    log.answer(item, number, "yes");
                }
                _ => {
                    let usage = Usage { input_tokens: Some(step as u64), ..Usage::default() };
                    log.push(EventBody::UsageReported { usage });
                    log.push(EventBody::Titled {
                        title: format!("title {}", dice.below(2)),
                        by: Default::default(),
                    });
                    continue;
                }
            }
            last_text = None;
        }
        for (item, number) in pending {
            log.push(EventBody::PermissionWithdrawn {
                item,
                request: request(number),
                why: WithdrawnWhy::TurnEnded,
            });
        }
        log.end(segment, [DONE, Outcome::Cut][dice.below(2)].clone());
    }
    log
}

fn directly(log: &Log) -> (Following, Seen) {
    let (mut following, mut seen, mut once) =
        (Following::new(thread()), Seen::default(), Once::default());
    seen.see(&mut once, following.handle_item(log.snapshot(1, 1)));
    seen.see(&mut once, following.handle_item(log.synchronized(1, 1)));
    for at in 1..log.len() {
        seen.see(&mut once, following.handle_item(log.events(at..at + 1)));
    }
    (following, seen)
}

#[test]
fn snapshots_resumes_and_repetitions_show_what_the_events_show_and_nothing_twice() {
    for seed in 0..1_500 {
        let mut dice = Dice(seed);
        let log = random_log(&mut dice);
        let (direct, expected) = directly(&log);
        let (mut following, mut seen, mut once) =
            (Following::new(thread()), Seen::default(), Once::default());
        let (mut at, mut epoch) = (1 + dice.below(log.len()), 1);
        seen.see(&mut once, following.handle_item(log.snapshot(at, epoch)));
        while at < log.len() {
            let to = at + 1 + dice.below((log.len() - at).min(8));
            match dice.below(6) {
                0 => {
                    seen.see(&mut once, following.handle_item(log.snapshot(to, epoch)));
                }
                1 => {
                    // A broken socket, and perhaps another start of the host.
                    following.handle_lost();
                    let cursor = following.cursor().unwrap();
                    assert_eq!(cursor, log.cursor(at, epoch), "seed {seed}");
                    epoch += dice.below(2) as u64;
                    seen.see(&mut once, following.handle_item(log.resumed(at, epoch)));
                    let again = dice.below(at);
                    seen.see(&mut once, following.handle_item(log.events(again..to)));
                    seen.see(&mut once, following.handle_item(log.synchronized(to, epoch)));
                }
                _ => {
                    let again = at - dice.below(at.min(4));
                    seen.see(&mut once, following.handle_item(log.events(again..to)));
                }
            }
            at = to;
        }
        assert_eq!(seen, expected, "seed {seed}");
        assert_eq!(following.pending(), direct.pending(), "seed {seed}");
        assert_eq!(following.cursor().unwrap().seq, direct.cursor().unwrap().seq, "seed {seed}");
    }
}

#[test]
fn a_snapshot_shows_only_what_is_new_and_says_where_something_is_missing() {
    let mut log = Log::new();
    log.begin(1, "one").text(1, "abc").text(1, "def");
    let mut following = Following::new(thread());
    following.handle_item(log.snapshot(4, 1));
    let changes = following.handle_item(log.snapshot(5, 1));
    let place = Place { segment: 1, item: 1 };
    let more = Change::Text { place, role: Role::Agent, more: "def".to_owned() };
    assert_eq!(changes, [more]);
    assert_eq!(following.handle_item(log.snapshot(5, 2)), []);

    log.end(1, DONE).begin(2, "two").end(2, DONE).begin(3, "three");
    let mut cut = log.detail(log.len());
    cut.page.segments.drain(..cut.page.segments.len() - 1);
    let cursor = log.cursor(log.len(), 2);
    let changes = following.handle_item(ThreadItem::Snapshot { cursor, detail: Box::new(cut) });
    assert_eq!(changes[0], Change::LeftOut);
    assert!(matches!(&changes[1], Change::Prompt(prompt) if prompt.plain() == "three"));
    assert_eq!(changes.len(), 2);
}

#[test]
fn a_log_that_went_back_is_told_and_followed_from_there() {
    let mut log = Log::new();
    log.begin(1, "one").text(1, "abc");
    let mut other = log.clone();
    log.text(1, "def").end(1, DONE).begin(2, "two");
    other.end(1, Outcome::Cut).begin(2, "zwei");
    let mut following = Following::new(thread());
    following.handle_item(log.snapshot(log.len(), 1));
    let changes = following.handle_item(other.snapshot(4, 2));
    assert_eq!(changes, [Change::Rewound]);
    let changes = following.handle_item(other.events(4..other.len()));
    let ended = Change::Ended { segment: 1, outcome: Outcome::Cut };
    assert_eq!(changes[0], ended);
    assert!(matches!(&changes[1], Change::Prompt(prompt) if prompt.plain() == "zwei"));
}

#[test]
fn a_thread_that_was_made_anew_is_shown_anew() {
    let mut log = Log::new();
    log.begin(1, "one").end(1, DONE);
    let mut following = Following::new(thread());
    following.handle_item(log.snapshot(log.len(), 1));
    let deleted = following.handle_item(ThreadItem::Deleted { seq: log.0[3].seq.next() });
    assert_eq!(deleted, [Change::Deleted]);
    assert!(following.is_gone());
    let mut anew = Log::new();
    for event in &mut anew.0 {
        event.seq.0 += 1_000;
    }
    let changes = following.handle_item(anew.snapshot(1, 1));
    assert!(matches!(changes[..], [Change::Thread { .. }]));
    assert!(!following.is_gone());
}

#[test]
fn one_permission_is_asked_for_at_a_time_the_oldest_first() {
    let mut log = Log::new();
    log.begin(1, "one").ask(1, 1).ask(2, 2).answer(1, 1, "yes").answer(2, 2, "no");
    let mut following = Following::new(thread());
    following.handle_item(log.snapshot(3, 1));
    let asked = |changes: &[Change]| -> Vec<_> {
        let title = |change: &Change| {
            if let Change::Asked(asked) = change {
                Some(asked.title.clone())
            } else if let Change::Settled { title, .. } = change {
                Some(format!("{title} settled"))
            } else {
                None
            }
        };
        changes.iter().filter_map(title).collect()
    };
    let next = |at: usize, following: &mut Following| {
        asked(&following.handle_item(log.events(at..at + 1)))
    };
    assert_eq!(next(3, &mut following), ["question 1"]);
    assert_eq!(next(4, &mut following), [""; 0]);
    assert_eq!(next(5, &mut following), ["question 1 settled", "question 2"]);
    assert_eq!(next(6, &mut following), ["question 2 settled"]);
}

#[test]
fn a_thread_is_idle_when_nothing_goes_on_by_itself() {
    let mut log = Log::new();
    let mut following = Following::new(thread());
    following.handle_item(log.snapshot(1, 1));
    assert_eq!(following.idle(), None, "not synchronized");
    following.handle_item(log.synchronized(1, 1));
    assert_eq!(following.idle(), Some(None));
    let cut = Outcome::Cut;
    log.begin(1, "one")
        .ask(1, 1)
        .end(1, DONE)
        .answer(1, 1, "yes")
        .begin(2, "x")
        .end(2, cut.clone());
    let mut idle = Vec::new();
    for at in 1..log.len() {
        following.handle_item(log.events(at..at + 1));
        idle.push(following.idle().is_some());
    }
    assert_eq!(idle, [false, false, false, false, true, false, false, true]);
    assert_eq!(following.idle(), Some(Some(&cut)));
    following.handle_lost();
    assert_eq!(following.idle(), None);
}
