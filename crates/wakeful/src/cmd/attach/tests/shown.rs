use std::collections::{BTreeMap, BTreeSet};

use wakeful_link::{DataStatus, threads::ThreadState};
use wakeful_wire::rpc::{
    EventBody, Exit, NoticeLevel, Outcome, PermissionState, PlanEntry, Role, ToolContent, ToolKind,
    ToolPatch, ToolStatus, Usage, WithdrawnWhy,
};

use super::super::{
    change::{Change, Place},
    shown::{Earlier, Shown},
    testing::{DONE, Dice, Log, request, thread},
};

const LIVE: DataStatus = DataStatus::Live;

fn look(shown: &mut Shown, state: &ThreadState) -> Vec<Change> {
    let mut changes = Vec::new();
    shown.look(state, &mut changes);
    changes
}

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
                Change::LeftOut
                | Change::Rewound
                | Change::Deleted
                | Change::Kept
                | Change::Current
                | Change::Earlier
                | Change::EarlierEnd => panic!("{change:?}"),
                Change::Mode(_)
                | Change::Archived(_)
                | Change::Queued(_)
                | Change::Held(_)
                | Change::Cancelling => {}
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

fn directly(log: &Log) -> (Shown, Seen) {
    let (mut shown, mut seen, mut once) =
        (Shown::new(thread(), false), Seen::default(), Once::default());
    for at in 1..=log.len() {
        seen.see(&mut once, look(&mut shown, &log.state(at, LIVE)));
    }
    (shown, seen)
}

#[test]
fn looks_at_any_moments_show_what_every_event_shows_and_nothing_twice() {
    for seed in 0..1_500 {
        let mut dice = Dice(seed);
        let log = random_log(&mut dice);
        let (direct, expected) = directly(&log);
        let (mut shown, mut seen, mut once) =
            (Shown::new(thread(), false), Seen::default(), Once::default());
        let mut at = 1 + dice.below(log.len());
        seen.see(&mut once, look(&mut shown, &log.state(at, LIVE)));
        while at < log.len() {
            // Many events between two looks, the same state again, a connection that comes and goes.
            at += dice.below((log.len() - at).min(8) + 1);
            let status = [LIVE, DataStatus::Cached, DataStatus::Synchronizing][dice.below(3)];
            seen.see(&mut once, look(&mut shown, &log.state(at, status)));
        }
        seen.see(&mut once, look(&mut shown, &log.state(at, LIVE)));
        assert_eq!(seen, expected, "seed {seed}");
        assert_eq!(shown.pending(), direct.pending(), "seed {seed}");
        assert_eq!(shown.seq(), direct.seq(), "seed {seed}");
    }
}

#[test]
fn a_snapshot_shows_only_what_is_new_and_says_where_something_is_missing() {
    let mut log = Log::new();
    log.begin(1, "one").text(1, "abc").text(1, "def");
    let mut shown = Shown::new(thread(), false);
    look(&mut shown, &log.state(4, LIVE));
    let place = Place { segment: 1, item: 1 };
    let more = Change::Text { place, role: Role::Agent, more: "def".to_owned() };
    assert_eq!(look(&mut shown, &log.state(5, LIVE)), [more]);
    assert_eq!(look(&mut shown, &log.state(5, LIVE)), []);

    log.end(1, DONE).begin(2, "two").end(2, DONE).begin(3, "three");
    let changes = look(&mut shown, &log.cut(log.len(), 1, LIVE));
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
    let mut shown = Shown::new(thread(), false);
    look(&mut shown, &log.state(log.len(), LIVE));
    assert_eq!(look(&mut shown, &other.state(4, LIVE)), [Change::Rewound]);
    let changes = look(&mut shown, &other.state(other.len(), LIVE));
    let ended = Change::Ended { segment: 1, outcome: Outcome::Cut };
    assert_eq!(changes[0], ended);
    assert!(matches!(&changes[1], Change::Prompt(prompt) if prompt.plain() == "zwei"));
}

#[test]
fn a_thread_that_is_gone_is_told_once_and_asks_for_nothing() {
    let mut log = Log::new();
    log.begin(1, "one").ask(1, 1);
    let mut shown = Shown::new(thread(), false);
    look(&mut shown, &log.state(log.len(), LIVE));
    let gone = ThreadState { status: DataStatus::Deleted, ..ThreadState::default() };
    assert_eq!(look(&mut shown, &gone), [Change::Deleted]);
    assert_eq!(look(&mut shown, &gone), []);
    assert!(shown.is_gone() && shown.pending().is_empty() && shown.running().is_none());
    let mut never = Shown::new(thread(), false);
    assert_eq!(look(&mut never, &gone), [], "nothing of it was ever shown");
}

#[test]
fn a_thread_that_was_made_anew_is_shown_anew() {
    let mut log = Log::new();
    log.begin(1, "one").end(1, DONE);
    let mut shown = Shown::new(thread(), false);
    look(&mut shown, &log.state(log.len(), LIVE));
    let mut anew = Log::new();
    for event in &mut anew.0 {
        event.seq.0 += 1_000;
    }
    assert!(matches!(look(&mut shown, &anew.state(1, LIVE))[..], [Change::Thread { .. }]));
}

#[test]
fn one_permission_is_asked_for_at_a_time_the_oldest_first() {
    let mut log = Log::new();
    log.begin(1, "one").ask(1, 1).ask(2, 2).answer(1, 1, "yes").answer(2, 2, "no");
    let mut shown = Shown::new(thread(), false);
    look(&mut shown, &log.state(3, LIVE));
    let mut next = |at: usize| -> Vec<_> {
        let title = |change: &Change| {
            if let Change::Asked(asked) = change {
                Some(asked.title.clone())
            } else if let Change::Settled { title, .. } = change {
                Some(format!("{title} settled"))
            } else {
                None
            }
        };
        look(&mut shown, &log.state(at + 1, LIVE)).iter().filter_map(title).collect()
    };
    assert_eq!(next(3), ["question 1"]);
    assert_eq!(next(4), [""; 0]);
    assert_eq!(next(5), ["question 1 settled", "question 2"]);
    assert_eq!(next(6), ["question 2 settled"]);
}

#[test]
fn a_question_whose_answer_was_lost_is_asked_again() {
    let mut log = Log::new();
    log.begin(1, "one").ask(1, 1);
    let mut shown = Shown::new(thread(), false);
    look(&mut shown, &log.state(log.len(), LIVE));
    shown.ask_again();
    assert!(matches!(look(&mut shown, &log.state(log.len(), LIVE))[..], [Change::Asked(_)]));
}

#[test]
fn a_thread_is_idle_when_nothing_goes_on_by_itself() {
    let mut log = Log::new();
    let mut shown = Shown::new(thread(), false);
    look(&mut shown, &log.state(1, DataStatus::Synchronizing));
    assert_eq!(shown.idle(), None, "not synchronized");
    look(&mut shown, &log.state(1, LIVE));
    assert_eq!(shown.idle(), Some(None));
    let cut = Outcome::Cut;
    log.begin(1, "one")
        .ask(1, 1)
        .end(1, DONE)
        .answer(1, 1, "yes")
        .begin(2, "x")
        .end(2, cut.clone());
    let mut idle = Vec::new();
    for at in 1..log.len() {
        look(&mut shown, &log.state(at + 1, LIVE));
        idle.push(shown.idle().is_some());
    }
    assert_eq!(idle, [false, false, false, false, true, false, false, true]);
    assert_eq!(shown.idle(), Some(Some(&cut)));
    look(&mut shown, &log.state(log.len(), DataStatus::Cached));
    assert_eq!(shown.idle(), None);
}

/// A thread of so many turns.
fn turns(many: u32) -> Log {
    let mut log = Log::new();
    for number in 1..=many {
        log.begin(number, &format!("prompt {number}")).end(number, DONE);
    }
    log
}

fn prompts(changes: &[Change]) -> Vec<String> {
    let prompt = |change: &Change| {
        if let Change::Prompt(prompt) = change { Some(prompt.plain()) } else { None }
    };
    changes.iter().filter_map(prompt).collect()
}

#[test]
fn what_was_kept_is_shown_at_once_marked_and_then_confirmed() {
    let log = turns(2);
    let mut shown = Shown::new(thread(), true);
    let kept = look(&mut shown, &log.state(4, DataStatus::Cached));
    assert_eq!(kept[0], Change::Kept);
    assert_eq!(prompts(&kept), ["prompt 1"]);
    let live = look(&mut shown, &log.state(log.len(), LIVE));
    assert_eq!(prompts(&live), ["prompt 2"], "only what is new");
    assert_eq!(live.last(), Some(&Change::Current));
    assert_eq!(look(&mut shown, &log.state(log.len(), LIVE)), []);

    let mut pipe = Shown::new(thread(), false);
    assert_eq!(look(&mut pipe, &log.state(4, DataStatus::Cached)), [], "not where nobody looks");
    let live = look(&mut pipe, &log.state(log.len(), LIVE));
    assert_eq!(prompts(&live), ["prompt 1", "prompt 2"]);
    assert!(!live.contains(&Change::Current));
}

#[test]
fn a_terminal_begins_with_the_newest_turns_and_shows_earlier_ones_when_asked() {
    let log = turns(17);
    let mut shown = Shown::new(thread(), true);
    let mut state = log.state(log.len(), LIVE);
    let first = look(&mut shown, &state);
    assert!(first.contains(&Change::LeftOut));
    assert_eq!(prompts(&first), (8..=17).map(|n| format!("prompt {n}")).collect::<Vec<_>>());
    let mut earlier = |state: &ThreadState| {
        let mut changes = Vec::new();
        (shown.show_earlier(Some(state), &mut changes), prompts(&changes))
    };
    let named = |numbers: std::ops::RangeInclusive<u32>| -> Vec<_> {
        numbers.map(|n| format!("prompt {n}")).collect()
    };
    assert_eq!(earlier(&state), (Earlier::Shown, named(3..=7)));
    assert_eq!(earlier(&state), (Earlier::Shown, named(1..=2)));
    assert_eq!(earlier(&state), (Earlier::Beginning, Vec::new()));
    state.page.has_more = true;
    assert_eq!(earlier(&state), (Earlier::Load, Vec::new()));
    let mut all = Vec::new();
    shown.look(&state, &mut all);
    assert_eq!(all, [], "what is earlier is never taken for new");
}

#[test]
fn a_page_that_was_asked_for_is_shown_when_it_comes() {
    let log = turns(4);
    let mut shown = Shown::new(thread(), true);
    look(&mut shown, &log.cut(log.len(), 2, LIVE));
    let mut state = log.cut(log.len(), 2, LIVE);
    let mut changes = Vec::new();
    assert_eq!(shown.show_earlier(Some(&state), &mut changes), Earlier::Load);
    state.page.loading = true;
    assert_eq!(shown.look_earlier(&state, &mut changes), None);
    assert_eq!(changes, []);
    let come = log.state(log.len(), LIVE);
    assert_eq!(look(&mut shown, &come), [], "it is not new");
    assert_eq!(shown.look_earlier(&come, &mut changes), None);
    assert_eq!(prompts(&changes), ["prompt 1", "prompt 2"]);
    changes.clear();
    assert_eq!(shown.look_earlier(&come, &mut changes), None);
    assert_eq!(changes, [], "once");
}
