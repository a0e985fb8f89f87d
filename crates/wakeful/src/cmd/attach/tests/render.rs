use wakeful_wire::rpc::{
    AnsweredBy, Exit, NoticeLevel, Outcome, PendingPermission, PermissionState, PlanEntry,
    PlanStatus, Prompt, Role, StopReason, ToolCall, ToolContent, ToolKind, ToolStatus, Usage,
    WithdrawnWhy,
};

use super::super::{
    change::{Change, Place},
    render::Render,
    testing::{client, options, request},
};

const PLACE: Place = Place { segment: 1, item: 1 };
const OTHER: Place = Place { segment: 1, item: 2 };

fn text(place: Place, role: Role, more: &str) -> Change {
    Change::Text { place, role, more: more.to_owned() }
}

fn output(more: &str) -> Change {
    Change::Terminal { place: OTHER, left_out: 0, more: more.to_owned(), exit: None }
}

fn tool(status: ToolStatus, diffs: Vec<ToolContent>, texts: Vec<String>) -> Change {
    let call = ToolCall {
        id: "1".to_owned(),
        title: "cargo test".to_owned(),
        kind: ToolKind::Execute,
        status,
        ..ToolCall::default()
    };
    Change::Tool { place: PLACE, call: Box::new(call), line: true, diffs, texts }
}

fn prompt(text: &str) -> Prompt {
    Prompt::text(client(1), text)
}

fn rendered(changes: &[Change]) -> String {
    let mut render = Render::new(false, true);
    render.render(changes) + &render.close()
}

#[test]
fn each_change_has_its_text() {
    let asked = PendingPermission {
        request: request(1),
        item: 1,
        at: Default::default(),
        tool: None,
        title: "rm -rf\nall".to_owned(),
        options: options(),
        key: None,
    };
    let diff = ToolContent::Diff {
        path: "src/a.rs".to_owned(),
        old: Some("a\nb\n".to_owned()),
        new: "a\nc\n".to_owned(),
    };
    let settled =
        |state| Change::Settled { place: PLACE, title: "rm".to_owned(), options: options(), state };
    let ended = |outcome| Change::Ended { segment: 1, outcome };
    let notice = |level| Change::Notice { level, text: "look".to_owned() };
    let plan = [PlanStatus::Completed, PlanStatus::InProgress, PlanStatus::Pending].map(|status| {
        PlanEntry { text: format!("{status:?}"), priority: Default::default(), status }
    });
    let usage = Usage {
        input_tokens: Some(12),
        output_tokens: Some(3),
        context_used: Some(15),
        context_size: Some(100),
        cost_micros: Some(1_050_000),
        currency: Some("USD".to_owned()),
    };
    let answered = |by| PermissionState::Answered { option: "yes".to_owned(), by };
    let exit = |code, signal| Change::Terminal {
        place: OTHER,
        left_out: 0,
        more: String::new(),
        exit: Some(Exit { code, signal }),
    };
    let thread =
        |project: &str| Change::Thread { agent: "shell".to_owned(), project: project.to_owned() };
    let cases: Vec<(Change, &str)> = vec![
        (thread(""), "thread with shell\n"),
        (thread("web"), "thread with shell in web\n"),
        (Change::Titled("Fix\nit".to_owned()), "# Fix it\n"),
        (Change::Prompt(prompt("do\nthis")), "> do\n> this\n"),
        (Change::Queued(prompt("later")), "waits: later\n"),
        (tool(ToolStatus::InProgress, vec![], vec![]), "▶ execute: cargo test\n"),
        (
            tool(ToolStatus::Failed, vec![], vec!["no\nway".to_owned()]),
            "✗ execute: cargo test (failed)\n  no\n  way\n",
        ),
        (
            tool(ToolStatus::Completed, vec![diff], vec![]),
            "✓ execute: cargo test\n  src/a.rs\n  @@ -1 +1 @@\n   a\n  -b\n  +c\n",
        ),
        (tool(ToolStatus::Interrupted, vec![], vec![]), "⊘ execute: cargo test (interrupted)\n"),
        (Change::Plan(plan.to_vec()), "plan\n  [x] Completed\n  [>] InProgress\n  [ ] Pending\n"),
        (notice(NoticeLevel::Info), "note: look\n"),
        (notice(NoticeLevel::Warning), "warning: look\n"),
        (notice(NoticeLevel::Error), "error: look\n"),
        (
            Change::Asked(Box::new(asked)),
            "? rm -rf\n? all\n  1  say yes\n  2  say no\n  answer with a number\n",
        ),
        (settled(answered(AnsweredBy::Hand)), "? rm: say yes\n"),
        (settled(answered(AnsweredBy::Remembered)), "? rm: say yes (remembered)\n"),
        (
            settled(PermissionState::Withdrawn { why: WithdrawnWhy::TurnEnded }),
            "? rm: the turn ended\n",
        ),
        (ended(Outcome::Completed { reason: StopReason::EndTurn }), "── done\n"),
        (
            ended(Outcome::Completed { reason: StopReason::MaxTokens }),
            "── ended: the output was full\n",
        ),
        (ended(Outcome::Cancelled { obeyed: true }), "── cancelled\n"),
        (ended(Outcome::Failed { message: "no key".to_owned() }), "── failed: no key\n"),
        (
            ended(Outcome::Cut),
            "── cut: the host was stopped or crashed; send the prompt again to go on\n",
        ),
        (Change::Usage(usage), "12 tokens read, 3 written, context 15 of 100, 1.050000 USD\n"),
        (exit(Some(0), None), "  └ ended with 0\n"),
        (exit(Some(2), None), "  └ ended with 2\n"),
        (exit(None, Some(9)), "  └ ended by signal 9\n"),
        (Change::Held(false), ""),
        (Change::LeftOut, "… earlier content is left out (`/older` shows it)\n"),
        (Change::Kept, "── as it was when this machine last saw it\n"),
        (Change::Current, "── up to date\n"),
    ];
    for (change, text) in cases {
        assert_eq!(rendered(std::slice::from_ref(&change)), text, "{change:?}");
    }
}

#[test]
fn a_text_goes_on_where_it_was_and_others_begin_on_a_line_of_their_own() {
    let changes = [
        text(PLACE, Role::Agent, "Hel"),
        text(PLACE, Role::Agent, "lo"),
        output("a\r"),
        output("\nb"),
        text(PLACE, Role::Agent, "again\n"),
        Change::Titled("x".to_owned()),
    ];
    assert_eq!(rendered(&changes), "Hello\n  │ a\n  │ b\nagain\n# x\n");
}

#[test]
fn only_a_render_with_colours_has_any_and_agents_bring_none() {
    let changes = [
        text(PLACE, Role::Thought, "\u{1b}[31mhm\u{1b}[0m"),
        output("\u{1b}]0;owned\u{7}\u{1b}[2Jok\n"),
        Change::Titled("\u{1b}[1m\u{202e}t".to_owned()),
        Change::Prompt(prompt("\u{1b}[5mblink")),
    ];
    let plain = rendered(&changes);
    assert_eq!(plain, "hm\n  │ ok\n# \u{fffd}t\n> blink\n");
    let mut render = Render::new(true, true);
    let coloured = render.render(&changes) + &render.close();
    assert!(coloured.contains("\u{1b}[2mhm\u{1b}[0m"));
    let mut stripped = coloured;
    for code in ["[2m", "[1m", "[36m", "[0m"] {
        stripped = stripped.replace(&format!("\u{1b}{code}"), "");
    }
    assert_eq!(stripped, plain, "no sequence but our own");
}

#[test]
fn long_things_are_cut_and_say_so() {
    let new = (0..500).map(|n| format!("{n}\n")).collect::<String>();
    let diff = ToolContent::Diff { path: "a".to_owned(), old: None, new: new.clone() };
    let shown = rendered(&[tool(ToolStatus::Completed, vec![diff], vec![new])]);
    assert_eq!(shown.lines().count(), 1 + 1 + 80 + 1 + 40 + 1);
    assert!(shown.contains("  a (new)\n"));
    assert!(shown.contains("  … 421 more lines\n"));
    assert!(shown.ends_with("  … 460 more lines\n"));
}

#[test]
fn who_cannot_answer_here_is_not_told_how() {
    let asked = PendingPermission {
        request: request(1),
        item: 1,
        at: Default::default(),
        tool: None,
        title: "x".to_owned(),
        options: options(),
        key: Some("k".to_owned()),
    };
    let asked = [Change::Asked(Box::new(asked))];
    assert!(rendered(&asked).contains("remembered for this thread"));
    assert!(!Render::new(false, false).render(&asked).contains("answer with"));
}
