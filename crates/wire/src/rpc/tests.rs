use super::*;
use crate::Timestamp;

fn event(text: &str) -> Event {
    serde_json::from_str(text).unwrap()
}

const THREAD: &str = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f";

fn thread() -> ThreadId {
    THREAD.parse().unwrap()
}

fn created(seq: u64) -> Event {
    Event {
        seq: Seq(seq),
        at: Timestamp(seq),
        thread: Some(thread()),
        body: EventBody::ThreadCreated {
            parent: None,
            root: thread(),
            project: String::new(),
            agent: "shell".to_owned(),
            title: None,
        },
    }
}

fn with(seq: u64, body: EventBody) -> Event {
    Event { seq: Seq(seq), at: Timestamp(seq), thread: Some(thread()), body }
}

fn client(number: u128) -> ClientId {
    ClientId::from_uuid(uuid::Uuid::from_u128(number))
}

fn turn(number: u128) -> TurnId {
    TurnId::from_uuid(uuid::Uuid::from_u128(number))
}

#[test]
fn an_unknown_kind_is_kept_whole_and_changes_nothing_but_the_sequence() {
    let text = format!(
        r#"{{"seq":7,"at":3,"thread":"{THREAD}","body":{{"kind":"sung","notes":[1,{{"x":2}}],"deep":{{"a":null}}}}}}"#
    );
    let read = event(&text);
    assert!(matches!(read.body, EventBody::Unknown(_)));
    assert_eq!(read.body.kind(), "sung");
    let again: serde_json::Value = serde_json::to_value(&read).unwrap();
    assert_eq!(again, serde_json::from_str::<serde_json::Value>(&text).unwrap());

    let mut held = Thread::created(&created(1)).unwrap();
    let before = held.clone();
    held.apply(&read);
    assert_eq!(held, Thread { seq: Seq(7), ..before });
}

#[test]
fn a_known_kind_that_cannot_be_read_is_an_error() {
    for body in [r#"{"kind":"titled"}"#, r#"{"kind":"titled","title":4}"#, r#"{"title":"x"}"#, "3"]
    {
        let text = format!(r#"{{"seq":7,"at":3,"body":{body}}}"#);
        assert!(serde_json::from_str::<Event>(&text).is_err(), "{body}");
    }
}

#[test]
fn added_fields_and_newer_values_of_closed_sets_are_read() {
    let read = event(&format!(
        r#"{{"seq":7,"at":3,"thread":"{THREAD}","later":1,"body":{{"kind":"titled","title":"t","by":"committee","why":2}}}}"#
    ));
    assert_eq!(read.body, EventBody::Titled { title: "t".to_owned(), by: By::Other });
    let plain = event(r#"{"seq":7,"at":3,"body":{"kind":"unsettled"}}"#);
    assert_eq!(plain.body, EventBody::Unsettled { by: By::Hand });
    let item: ShellItem = serde_json::from_str(r#"{"type":"weather","rows":[]}"#).unwrap();
    assert_eq!(item, ShellItem::Unknown);
}

#[test]
fn every_kind_is_known_by_its_own_text() {
    let mut kinds = EventBody::KINDS.to_vec();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds.len(), EventBody::KINDS.len());
    let body = EventBody::Pinned {};
    assert_eq!(serde_json::to_string(&body).unwrap(), r#"{"kind":"pinned"}"#);
    assert_eq!(body.kind(), "pinned");
}

#[test]
fn an_event_that_is_not_newer_is_ignored() {
    let mut held = Thread::created(&created(5)).unwrap();
    held.apply(&with(6, EventBody::Pinned {}));
    let kept = held.clone();
    held.apply(&with(6, EventBody::Unpinned {}));
    held.apply(&with(5, EventBody::Unpinned {}));
    assert_eq!(held, kept);
}

/// A long run of texts and tools in two segments.
fn history() -> Vec<Event> {
    let prompt = |number| Prompt::text(client(number), format!("prompt {number}"));
    let mut events = vec![created(1)];
    let mut push = |body| {
        let seq = u64::try_from(events.len()).unwrap() + 1;
        events.push(with(seq, body));
    };
    for number in 1..=2_u32 {
        push(EventBody::PromptQueued { prompt: prompt(number.into()) });
        push(EventBody::TurnStarted {
            turn: turn(number.into()),
            segment: number,
            prompt: prompt(number.into()),
        });
        for piece in ["a", "b", "c"] {
            push(EventBody::Text {
                item: 1,
                role: Role::Agent,
                text: piece.to_owned(),
                message: None,
            });
        }
        for status in [ToolStatus::Pending, ToolStatus::InProgress] {
            let tool =
                ToolPatch { id: "t".to_owned(), status: Some(status), ..ToolPatch::default() };
            push(EventBody::Tool { item: 2, tool });
        }
        push(EventBody::Terminal {
            item: 3,
            terminal: "x".to_owned(),
            text: "out".to_owned(),
            exit: None,
        });
        // What an end has interrupted may go on with a new process of the agent.
        push(EventBody::AgentEnded { why: "gone".to_owned() });
        let again = ToolPatch {
            id: "t".to_owned(),
            status: Some(ToolStatus::InProgress),
            ..ToolPatch::default()
        };
        push(EventBody::Tool { item: 2, tool: again });
        push(EventBody::TurnEnded { turn: turn(number.into()), outcome: Outcome::Cut });
    }
    events
}

fn whole(events: &[Event]) -> Detail {
    let thread = Thread::created(&events[0]).unwrap();
    let page = Page { segments: vec![Segment::new(0)], before: None, seq: thread.seq };
    let mut detail = Detail::new(thread, page);
    for event in &events[1..] {
        assert_eq!(detail.apply(event), Applied::Changed);
    }
    detail
}

#[test]
fn a_segment_gathers_texts_tools_and_terminals_and_a_cut_interrupts_its_tools() {
    let detail = whole(&history());
    assert_eq!(detail.page.segments.len(), 3);
    let last = &detail.page.segments[2];
    assert_eq!(last.turn.as_ref().unwrap().outcome, Some(Outcome::Cut));
    assert_eq!(last.items[1].body, ItemBody::Text { role: Role::Agent, text: "abc".to_owned() });
    let ItemBody::Tool { tool } = &last.items[2].body else { panic!("a tool") };
    assert_eq!(tool.status, ToolStatus::Interrupted);
    assert!(detail.thread.open_tools.is_empty());
    assert!(detail.thread.turn.is_none());
}

/// The window of a thread that begins at item `first` of its newest segment, and the page before.
fn halves(full: &Detail, first: u32) -> (Detail, PageCursor, Page) {
    let newest = full.page.segments.last().unwrap();
    let mut upper = newest.clone();
    upper.skip_to(first);
    let cursor = PageCursor { created: Seq(1), segment: newest.number, item: first };
    let page = Page { segments: vec![upper], before: Some(cursor), seq: full.thread.seq };
    (Detail::new(full.thread.clone(), page), cursor, before(full, cursor))
}

/// What is before a cursor.
fn before(full: &Detail, cursor: PageCursor) -> Page {
    let mut segments = full.page.segments.clone();
    segments.retain(|segment| segment.number <= cursor.segment);
    let last = segments.last_mut().unwrap();
    last.items.truncate(usize::try_from(cursor.item).unwrap());
    Page { segments, before: None, seq: full.thread.seq }
}

#[test]
fn a_window_that_begins_anywhere_goes_on_as_the_whole_does() {
    let events = history();
    let end = whole(&events);
    // The window is cut at one moment, the older page read at another and merged at a third.
    for cut in 1..events.len() {
        let full = whole(&events[..cut]);
        for first in 0..=full.page.segments.last().unwrap().next_item() {
            for read in cut..=events.len() {
                for merged in cut..=events.len() {
                    let (mut window, cursor, _) = halves(&full, first);
                    for event in &events[cut..merged] {
                        window.apply(event);
                        window.apply(event);
                    }
                    let page = before(&whole(&events[..read]), cursor);
                    if window.prepend(cursor, page) == Prepended::Stale {
                        assert!(read < merged, "a page that is not older than the window fits");
                        let page = before(&whole(&events[..merged]), cursor);
                        assert_eq!(window.prepend(cursor, page), Prepended::Done);
                    }
                    for event in &events[merged..] {
                        window.apply(event);
                    }
                    assert_eq!(window.page, end.page, "cut {cut}, first {first}, read {read}");
                    assert_eq!(window.thread, end.thread);
                }
            }
        }
    }
}

#[test]
fn pages_of_several_later_moments_before_one_window_are_each_at_their_own() {
    let events = history();
    let end = whole(&events);
    for cut in 1..events.len() {
        let full = whole(&events[..cut]);
        for first in 1..=full.page.segments.last().unwrap().next_item() {
            for between in 0..=first {
                for one in cut..=events.len() {
                    for other in one..=events.len() {
                        let (mut window, cursor, _) = halves(&full, first);
                        let mut page = before(&whole(&events[..one]), cursor);
                        let number = cursor.segment;
                        page.segments.retain(|segment| segment.number == number);
                        page.segments[0].skip_to(between);
                        let further = PageCursor { item: between, ..cursor };
                        page.before = Some(further);
                        assert_eq!(window.prepend(cursor, page), Prepended::Done);
                        let page = before(&whole(&events[..other]), further);
                        assert_eq!(window.prepend(further, page), Prepended::Done);
                        for event in &events[cut..] {
                            window.apply(event);
                        }
                        let at = format!("cut {cut}, {between} to {first}, read {one}, {other}");
                        assert_eq!(window.page, end.page, "{at}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_page_that_was_asked_for_elsewhere_is_refused() {
    let full = whole(&history());
    let (mut window, cursor, page) = halves(&full, 2);
    let elsewhere = PageCursor { item: 1, ..cursor };
    assert_eq!(window.prepend(elsewhere, page.clone()), Prepended::Stale);
    assert_eq!(window.prepend(cursor, page.clone()), Prepended::Done);
    assert_eq!(window.prepend(cursor, page), Prepended::Stale);
}

#[test]
fn a_terminal_keeps_the_newest_of_its_output() {
    let mut segment = Segment::new(1);
    let piece = "é".repeat(TERMINAL_KEPT / 4);
    for seq in 1..=5 {
        segment.apply(&with(
            seq,
            EventBody::Terminal {
                item: 0,
                terminal: "x".to_owned(),
                text: format!("{piece}."),
                exit: None,
            },
        ));
    }
    let ItemBody::Terminal { text, dropped, .. } = &segment.items[0].body else {
        panic!("a terminal")
    };
    assert!(text.len() <= TERMINAL_KEPT && text.len() > TERMINAL_KEPT - 4);
    let all = u64::try_from(5 * (piece.len() + 1)).unwrap();
    assert_eq!(*dropped + u64::try_from(text.len()).unwrap(), all);
    assert!(text.ends_with('.'));
}

#[test]
fn a_prompt_leaves_the_queue_when_its_turn_starts_and_a_cut_holds_the_rest() {
    let mut held = Thread::created(&created(1)).unwrap();
    let prompt = |number| Prompt::text(client(number), "p");
    held.apply(&with(2, EventBody::PromptQueued { prompt: prompt(1) }));
    held.apply(&with(3, EventBody::PromptQueued { prompt: prompt(2) }));
    held.apply(&with(4, EventBody::TurnStarted { turn: turn(9), segment: 1, prompt: prompt(1) }));
    assert_eq!(held.queue.len(), 1);
    held.apply(&with(5, EventBody::TurnEnded { turn: turn(8), outcome: Outcome::Cut }));
    assert!(held.turn.is_some(), "the end of another turn ends nothing");
    held.apply(&with(6, EventBody::TurnEnded { turn: turn(9), outcome: Outcome::Cut }));
    assert!(held.held && held.is_live() && held.turn.is_none());
    held.apply(&with(7, EventBody::PromptRemoved { client: client(2) }));
    assert!(!held.held && held.is_idle());
}
