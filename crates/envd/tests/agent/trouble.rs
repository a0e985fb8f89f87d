//! Agents that do what no agent should.

use std::time::Duration;

use serde_json::json;
use wakeful_envd::{
    agent::{AgentLimits, Order},
    thread::command::AgentUpdate,
};
use wakeful_wire::rpc::{Outcome, ToolContent, WithdrawnWhy};

use crate::fixture::{DONE, Place, Talk, eventually, lives, opening, pid_in, quick};

#[tokio::test]
async fn noise_on_the_output_is_logged_and_never_answered() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake("noise"), opening(None));
    // The agent repeats all that it receives: an answer to that would be repeated, too.
    assert_eq!(talk.turn(json!([{"say": "one"}, {"raw": "plain"}])).await, DONE);
    assert_eq!(talk.turn(json!([{"say": "two"}])).await, DONE);
    assert_eq!(talk.text(), "onetwo");
    assert_eq!(talk.notices(), "");
    talk.order(Order::End).await;
    talk.hear_the_end().await;
    let remarks = place.remarks();
    assert!(remarks.contains("stdout: Welcome!") && remarks.contains("stdout: plain"), "{remarks}");
    assert!(!remarks.contains("error"), "{remarks}");
}

#[tokio::test]
async fn an_agent_that_answers_nothing_fails_the_turn_and_is_killed() {
    let place = Place::new();
    let limits = AgentLimits { open: Duration::from_millis(300), ..quick() };
    let mut talk = Talk::open(&place.fake_within("mute", limits), opening(None));
    let outcome = talk.turn(json!([])).await;
    let Outcome::Failed { message } = outcome else { panic!("{outcome:?}") };
    assert!(message.contains("did not answer in time"), "{message}");
    talk.hear_the_end().await;
    assert_eq!(talk.ends(), 1);
}

#[tokio::test]
async fn an_agent_that_cannot_start_says_why() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake("dies"), opening(None));
    let outcome = talk.turn(json!([])).await;
    let Outcome::Failed { message } = outcome else { panic!("{outcome:?}") };
    assert!(message.contains("status 3") && message.contains("broken"), "{message}");
    talk.hear_the_end().await;
}

#[tokio::test]
async fn a_flood_is_cut_and_the_turn_still_ends() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake(""), opening(None));
    let outcome = talk.turn(json!([{"flood": 20_000}, {"say": "last"}])).await;
    assert_eq!(outcome, DONE);
    assert!(talk.text().len() <= 8 * 1024 * 1024);
    assert!(talk.notices().contains("left out"), "{}", talk.notices());
    assert!(talk.heard.len() < 2_000, "{} events", talk.heard.len());
    // The next turn has a bound of its own.
    assert_eq!(talk.turn(json!([{"say": "next"}])).await, DONE);
    assert!(talk.text().ends_with("next"));
}

#[tokio::test]
async fn a_line_that_is_too_long_costs_only_itself() {
    let place = Place::new();
    let limits = AgentLimits { line: 64 * 1024, ..quick() };
    let mut talk = Talk::open(&place.fake_within("", limits), opening(None));
    let outcome = talk.turn(json!([{"huge": 1_000_000}, {"say": "still here"}])).await;
    assert_eq!(outcome, DONE);
    assert_eq!(talk.text(), "still here");
    assert!(talk.notices().contains("left out"), "{}", talk.notices());
}

#[tokio::test]
async fn a_huge_tool_output_keeps_its_two_ends() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake(""), opening(None));
    let long = format!("BEGIN{}END", "x".repeat(2_000_000));
    let outcome = talk
        .turn(json!([{"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t",
            "status": "completed", "rawOutput": {"output": long},
            "content": [{"type": "content", "content": {"type": "text", "text": long}}]}}]))
        .await;
    assert_eq!(outcome, DONE);
    let tool = talk.heard.iter().find_map(|said| match &said.update {
        AgentUpdate::Tool(tool) => Some(tool.clone()),
        _ => None,
    });
    let tool = tool.unwrap();
    assert!(serde_json::to_string(&tool).unwrap().len() < 200_000);
    let Some([ToolContent::Text { text }]) = tool.content.as_deref() else { panic!("{tool:?}") };
    assert!(text.starts_with("BEGIN") && text.ends_with("END") && text.contains("left out"));
}

#[tokio::test]
async fn a_crash_cuts_the_turn_and_takes_every_tool_along() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake(""), opening(None));
    let turn = talk.play(json!([{"spawn": "sleep 1000"}, {"say": "then"}, {"die": 9}])).await;
    assert_eq!(talk.end_of(turn).await, Outcome::Cut);
    let pid = pid_in(&talk.text());
    let why = talk.hear_the_end().await;
    assert!(why.contains("status 9"), "{why}");
    assert!(talk.text().contains("then"), "what it said before is kept");
    assert!(!lives(pid), "a tool outlived its agent");
    assert_eq!(talk.ends(), 1);
}

#[tokio::test]
async fn an_agent_that_closes_its_output_is_gone() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake(""), opening(None));
    assert_eq!(talk.turn(json!([{"close": true}])).await, Outcome::Cut);
    assert!(talk.hear_the_end().await.contains("closed its output"));
}

#[tokio::test]
async fn a_cancel_is_obeyed_or_enforced() {
    for (words, obeyed) in [("", true), ("deaf", false)] {
        let place = Place::new();
        let mut talk = Talk::open(&place.fake(words), opening(None));
        let turn = talk.play(json!([{"spawn": "sleep 1000"}, {"hang": true}])).await;
        talk.until_text("pid ").await;
        let pid = pid_in(&talk.text());
        talk.order(Order::Cancel { turn }).await;
        assert_eq!(talk.end_of(turn).await, Outcome::Cancelled { obeyed }, "{words}");
        if obeyed {
            assert_eq!(talk.turn(json!([{"say": "again"}])).await, DONE);
            talk.order(Order::End).await;
        }
        talk.hear_the_end().await;
        assert!(!lives(pid), "a tool outlived its agent");
    }
}

#[tokio::test]
async fn after_a_cancel_an_agents_own_word_for_the_end_does_not_count() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake("liar"), opening(None));
    let ask = json!({"toolCallId": "t", "title": "May I?"});
    let turn = talk.play(json!([{"ask": ask}, {"stop": "end_turn"}])).await;
    talk.until(|update| matches!(update, AgentUpdate::Permission { .. })).await;
    talk.order(Order::Cancel { turn }).await;
    assert_eq!(talk.end_of(turn).await, Outcome::Cancelled { obeyed: true });
    let withdrawn = talk.heard.iter().any(|said| {
        matches!(said.update, AgentUpdate::Withdrawn { why: WithdrawnWhy::TurnEnded, .. })
    });
    assert!(withdrawn, "{:?}", talk.heard);
    // A cancel of a turn that is over is nothing.
    talk.order(Order::Cancel { turn }).await;
    assert_eq!(talk.turn(json!([{"say": "next"}])).await, DONE);
}

#[tokio::test]
async fn a_turn_that_never_ends_is_ended_by_the_limit() {
    for words in ["", "deaf"] {
        let place = Place::new();
        let limits = AgentLimits { turn: Duration::from_millis(1_500), ..quick() };
        let mut talk = Talk::open(&place.fake_within(words, limits), opening(None));
        let outcome = talk.turn(json!([{"hang": true}])).await;
        let Outcome::Failed { message } = outcome else { panic!("{outcome:?}") };
        assert!(message.contains("limit"), "{message}");
    }
}

#[tokio::test]
async fn an_agent_that_stays_when_its_input_closes_is_made_to_leave() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake("stays"), opening(None));
    assert_eq!(talk.turn(json!([{"spawn": "sleep 1000"}])).await, DONE);
    let pid = pid_in(&talk.text());
    talk.order(Order::End).await;
    talk.hear_the_end().await;
    assert!(!lives(pid));
}

#[tokio::test]
async fn a_dropped_session_leaves_nothing_running() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake("deaf"), opening(None));
    let _turn = talk.play(json!([{"spawn": "sleep 1000"}, {"hang": true}])).await;
    talk.until_text("pid ").await;
    let pid = pid_in(&talk.text());
    drop(talk);
    eventually("the end of the tool", || !lives(pid)).await;
}

#[tokio::test]
async fn a_project_outside_the_workspace_is_refused() {
    let place = Place::new();
    for project in ["..", "/etc", "a/../../b", "missing"] {
        let mut first = opening(None);
        first.project = project.to_owned();
        let mut talk = Talk::open(&place.fake(""), first);
        let outcome = talk.turn(json!([])).await;
        assert!(matches!(outcome, Outcome::Failed { .. }), "{project}: {outcome:?}");
        talk.hear_the_end().await;
    }
}

#[tokio::test]
async fn a_host_that_is_killed_leaves_nothing_running() {
    let place = Place::new();
    let mut host = std::process::Command::new(&place.surroundings.program)
        .args(["run", "setsid sh -c 'echo $$ > pid; exec sleep 1000'"])
        .current_dir(place.workspace())
        .env("HOME", &place.surroundings.scratch)
        .env("TMPDIR", &place.surroundings.scratch)
        .spawn()
        .unwrap();
    let file = place.workspace().join("pid");
    let pid = || std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
    eventually("the command", || pid().is_some()).await;
    assert!(lives(pid().unwrap()));
    host.kill().unwrap();
    host.wait().unwrap();
    eventually("the end of every process", || place.processes().is_empty()).await;
}
