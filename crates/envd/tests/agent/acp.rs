//! The Agent Client Protocol with an agent that does what real ones have done.

use serde_json::json;
use wakeful_envd::{agent::Order, thread::command::AgentUpdate};
use wakeful_wire::rpc::{
    NoticeLevel, Outcome, PlanStatus, Role, StopReason, ToolContent, ToolKind, ToolStatus,
    WithdrawnWhy,
};

use crate::fixture::{DONE, Place, Talk, eventually, opening};

#[tokio::test]
async fn a_turn_is_said_in_order_and_ends_once() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake(""), opening(None));
    let outcome = talk
        .turn(json!([
            {"think": "Let me look."},
            {"say": "I ", "id": "m1"}, {"say": "look.", "id": "m1"},
            {"update": {"sessionUpdate": "plan", "entries": [
                {"content": "look", "priority": "high", "status": "in_progress"}]}},
            {"update": {"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "edit",
                "kind": "edit", "status": "pending"}},
            {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t1",
                "status": "completed", "locations": [{"path": "/a", "line": 3}],
                "content": [{"type": "diff", "path": "/a", "oldText": "x", "newText": "y"}]}},
            {"update": {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}},
            {"update": {"sessionUpdate": "usage_update", "used": 5, "size": 10,
                "cost": {"amount": 0.5, "currency": "EUR"}}},
            {"update": {"sessionUpdate": "something_new", "x": 1}},
            {"say": "Done.", "id": "m2"}, {"stop": "end_turn"},
        ]))
        .await;
    assert_eq!(outcome, DONE);
    assert_eq!(talk.text(), "Let me look.I look.Done.");
    let updates: Vec<_> = talk.heard.iter().map(|said| said.update.clone()).collect();
    let at = |wanted: fn(&AgentUpdate) -> bool| updates.iter().position(wanted).unwrap();
    let order = [
        at(|it| matches!(it, AgentUpdate::Session(_))),
        at(|it| matches!(it, AgentUpdate::Text { role: Role::Thought, .. })),
        at(|it| matches!(it, AgentUpdate::Text { role: Role::Agent, .. })),
        at(
            |it| matches!(it, AgentUpdate::Plan(lines) if lines[0].status == PlanStatus::InProgress),
        ),
        at(|it| {
            matches!(it, AgentUpdate::Tool(tool) if tool.kind == Some(ToolKind::Edit)
                && tool.status == Some(ToolStatus::Completed)
                && matches!(tool.content.as_deref(), Some([ToolContent::Diff { .. }])))
        }),
        at(|it| matches!(it, AgentUpdate::Mode(mode) if mode == "plan")),
        at(|it| matches!(it, AgentUpdate::Usage(usage) if usage.cost_micros == Some(500_000))),
        at(|it| matches!(it, AgentUpdate::Notice { text, .. } if text.contains("something_new"))),
        at(|it| matches!(it, AgentUpdate::Usage(usage) if usage.input_tokens == Some(7))),
        at(|it| matches!(it, AgentUpdate::TurnEnded(_))),
    ];
    assert!(order.is_sorted(), "{order:?} in {updates:?}");
    assert_eq!(talk.ends(), 1);
    talk.order(Order::End).await;
    assert_eq!(talk.hear_the_end().await, "it was stopped");
}

#[tokio::test]
async fn what_comes_around_a_prompts_answer_stays_before_or_after_it() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake(""), opening(None));
    for _ in 0..20 {
        let turn = talk.play(json!([{"around": ["before", "after"]}])).await;
        let from = talk.heard.len();
        assert_eq!(talk.end_of(turn).await, DONE);
        talk.until(|update| matches!(update, AgentUpdate::Text { text, .. } if text == "after"))
            .await;
        let said: Vec<_> = talk.heard[from..]
            .iter()
            .filter(|said| matches!(said.update, AgentUpdate::Text { .. }))
            .map(|said| said.turn)
            .collect();
        assert_eq!(said, [Some(turn), None]);
        let last = talk.heard.last().unwrap();
        assert!(matches!(&last.update, AgentUpdate::Text { text, .. } if text == "after"));
    }
    assert_eq!(talk.ends(), 20);
}

#[tokio::test]
async fn what_comes_after_a_turn_belongs_to_no_turn() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake(""), opening(None));
    let outcome = talk
        .turn(json!([{"say": "in", "id": "m"}, {"later": [{"say": "out", "id": "m"},
            {"ask": {"toolCallId": "t", "title": "May I?", "kind": "execute"}}]}]))
        .await;
    assert_eq!(outcome, DONE);
    let asked = talk.until(|update| matches!(update, AgentUpdate::Permission { .. })).await;
    let AgentUpdate::Permission { request, .. } = asked else { unreachable!() };
    talk.order(Order::Answer { request, option: Some("yes".to_owned()) }).await;
    talk.until_text("answer yes").await;
    let outside: Vec<_> = talk.heard.iter().filter(|said| said.turn.is_none()).collect();
    let message = |wanted: &str| {
        talk.heard.iter().find_map(|said| match &said.update {
            AgentUpdate::Text { text, message, .. } if text == wanted => Some(message.clone()),
            _ => None,
        })
    };
    assert!(outside.len() >= 3, "{outside:?}");
    assert_ne!(message("in").unwrap(), message("out").unwrap(), "they would be one text");
    assert_eq!(talk.turn(json!([{"say": "next"}])).await, DONE);
}

#[tokio::test]
async fn stop_reasons_and_errors_become_outcomes() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake(""), opening(None));
    let completed = |reason| Outcome::Completed { reason };
    let table = [
        (json!([{"stop": "max_tokens"}]), completed(StopReason::MaxTokens)),
        (json!([{"stop": "refusal"}]), completed(StopReason::Refusal)),
        (json!([{"stop": "tired"}]), completed(StopReason::Other)),
        (
            json!([{"error": {"code": -32603, "message": "bad key"}}]),
            Outcome::Failed { message: "bad key".to_owned() },
        ),
        (
            json!([{"error": {"code": -32000, "message": "sign in"}}]),
            Outcome::Failed { message: "it needs to be signed in (sign in)".to_owned() },
        ),
    ];
    for (steps, outcome) in table {
        assert_eq!(talk.turn(steps.clone()).await, outcome, "{steps}");
    }
}

#[tokio::test]
async fn a_permission_waits_for_its_answer_and_names_the_kind_of_tool() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake(""), opening(None));
    let turn = talk
        .play(json!([
            {"update": {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "ls",
                "kind": "execute"}},
            {"ask": {"toolCallId": "t", "title": "Run ls"}},
            {"ask": {"toolCallId": "u", "title": "Something"},
                "options": [{"optionId": "hm", "name": "Hm", "kind": "perhaps"}]},
        ]))
        .await;
    for (key, option) in [(Some("execute"), "yes"), (None, "hm")] {
        let asked = talk.until(|update| matches!(update, AgentUpdate::Permission { .. })).await;
        let AgentUpdate::Permission { request, key: given, .. } = asked else { unreachable!() };
        assert_eq!(given.as_deref(), key);
        talk.order(Order::Answer { request, option: Some(option.to_owned()) }).await;
        // A second answer finds nobody.
        talk.order(Order::Answer { request, option: Some("no".to_owned()) }).await;
    }
    assert_eq!(talk.end_of(turn).await, DONE);
    assert_eq!(talk.text(), "answer yesanswer hm");
}

#[tokio::test]
async fn a_permission_that_was_settled_elsewhere_is_withdrawn() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake(""), opening(None));
    let outcome = talk
        .turn(json!([
            {"ask_and_go_on": {"toolCallId": "t", "title": "Run"}},
            {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t",
                "status": "completed"}},
        ]))
        .await;
    assert_eq!(outcome, DONE);
    let withdrawn: Vec<_> = talk
        .heard
        .iter()
        .filter_map(|said| match said.update {
            AgentUpdate::Withdrawn { why, .. } => Some(why),
            _ => None,
        })
        .collect();
    assert_eq!(withdrawn, [WithdrawnWhy::SettledElsewhere]);
}

#[tokio::test]
async fn a_session_is_taken_up_again_without_saying_twice_what_was_said() {
    for words in ["load", "resume"] {
        let place = Place::new();
        let mut talk = Talk::open(&place.fake(words), opening(None));
        assert_eq!(talk.turn(json!([{"say": "first"}])).await, DONE);
        let session = talk.bound().unwrap();
        talk.order(Order::End).await;
        talk.hear_the_end().await;
        let mut talk = Talk::open(&place.fake(words), opening(Some(&session)));
        assert_eq!(talk.turn(json!([{"say": "second"}])).await, DONE);
        assert_eq!(talk.text(), "second", "{words}");
        assert_eq!(talk.bound().unwrap(), session);
        assert_eq!(talk.notices(), "");
    }
}

#[tokio::test]
async fn a_session_that_is_lost_is_replaced_and_said_so() {
    for words in ["", "load lost", "resume lost"] {
        let place = Place::new();
        let mut talk = Talk::open(&place.fake(words), opening(Some("gone")));
        assert_eq!(talk.turn(json!([{"say": "hello"}])).await, DONE);
        assert_ne!(talk.bound().unwrap(), "gone");
        let warned = talk.heard.iter().any(|said| {
            matches!(&said.update, AgentUpdate::Notice { level: NoticeLevel::Warning, text }
                if text.contains("remembers nothing"))
        });
        assert!(warned, "{words}: {:?}", talk.heard);
    }
}

#[tokio::test]
async fn a_mode_is_set_before_the_first_prompt_and_later() {
    let place = Place::new();
    let mut first = opening(None);
    first.mode = Some("plan".to_owned());
    let mut talk = Talk::open(&place.fake(""), first);
    assert_eq!(talk.turn(json!([])).await, DONE);
    let modes = |talk: &Talk| -> Vec<String> {
        let mode = |update: &AgentUpdate| match update {
            AgentUpdate::Mode(mode) => Some(mode.clone()),
            _ => None,
        };
        talk.heard.iter().filter_map(|said| mode(&said.update)).collect()
    };
    talk.order(Order::Mode { mode: "build".to_owned() }).await;
    talk.order(Order::Mode { mode: "none".to_owned() }).await;
    talk.until(|update| matches!(update, AgentUpdate::Notice { .. })).await;
    assert_eq!(modes(&talk), ["build", "plan", "build"]);
    assert!(talk.notices().contains("no such mode"));
}

#[tokio::test]
async fn files_are_served_beneath_the_workspace_only() {
    let place = Place::new();
    let file = place.workspace().join("notes.txt");
    let mut talk = Talk::open(&place.fake(""), opening(None));
    let outcome = talk
        .turn(json!([
            {"call": "fs/write_text_file", "with": {"path": file, "content": "kept"}},
            {"call": "fs/read_text_file", "with": {"path": file}},
            {"call": "fs/read_text_file", "with": {"path": "/etc/passwd"}},
            {"call": "fs/unheard_of", "with": {}},
        ]))
        .await;
    assert_eq!(outcome, DONE);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
    let text = talk.text();
    assert!(text.contains(r#"{"content": "kept"}"#), "{text}");
    assert!(text.contains("outside the workspace") && text.contains("no such method"), "{text}");
}

#[tokio::test]
async fn terminals_are_served_streamed_and_ended_with_the_session() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake(""), opening(None));
    let sh = |script: &str| json!({"command": "sh", "args": ["-c", script]});
    let id = |number: u32| json!({"terminalId": format!("terminal-{number}")});
    let outcome = talk
        .turn(json!([
            {"call": "terminal/create", "with": sh("echo hello; pwd; exit 3")},
            {"call": "terminal/wait_for_exit", "with": id(1)},
            {"call": "terminal/output", "with": id(1)},
            {"call": "terminal/create", "with": sh("echo pid $$; exec sleep 1000")},
            {"call": "terminal/kill", "with": id(2)},
            {"call": "terminal/wait_for_exit", "with": id(2)},
            {"call": "terminal/release", "with": id(2)},
            {"call": "terminal/output", "with": id(2)},
            {"call": "terminal/create", "with": {"command": "sh", "cwd": "/"}},
            {"call": "terminal/create", "with": sh("echo pid $$; setsid sleep 1000 & wait")},
        ]))
        .await;
    assert_eq!(outcome, DONE);
    let text = talk.text();
    assert!(text.contains(r#""exitCode": 3"#) && text.contains("hello\\n"), "{text}");
    assert!(text.contains(&*place.workspace().to_string_lossy()), "{text}");
    assert!(text.contains(r#""signal": "9""#), "{text}");
    assert!(text.contains("no such terminal") && text.contains("outside the workspace"), "{text}");
    let exits = talk
        .heard
        .iter()
        .filter(|said| matches!(said.update, AgentUpdate::Terminal { exit: Some(_), .. }))
        .count();
    assert_eq!(exits, 2);
    let third = |update: &AgentUpdate| matches!(update, AgentUpdate::Terminal { terminal, .. } if terminal == "terminal-3");
    if !talk.heard.iter().any(|said| third(&said.update)) {
        talk.until(third).await;
    }
    assert!(place.processes().len() > 2, "the agent, and what runs in its terminal");
    talk.order(Order::End).await;
    talk.hear_the_end().await;
    eventually("the end of every process", || place.processes().is_empty()).await;
}
