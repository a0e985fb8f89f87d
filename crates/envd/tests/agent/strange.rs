//! Agents that say what nobody expects: nothing of it ends a turn or is lost in silence.

use serde_json::json;
use wakeful_envd::{agent::Order, thread::command::AgentUpdate};
use wakeful_wire::rpc::PermissionOptionKind;

use crate::fixture::{DONE, Place, Talk, eventually, opening};

#[tokio::test]
async fn an_answer_of_a_kind_that_is_not_known_is_offered_all_the_same() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake(""), opening(None));
    let options = [("hour", "allow_for_an_hour"), ("ever", "allow_always")];
    let options = options.map(|(id, kind)| json!({"optionId": id, "name": id, "kind": kind}));
    let turn = talk.play(json!([{"ask": {"toolCallId": "t"}, "options": options}])).await;
    let asked = talk.until(|update| matches!(update, AgentUpdate::Permission { .. })).await;
    let AgentUpdate::Permission { request, options, .. } = asked else { unreachable!() };
    let kinds: Vec<_> = options.iter().map(|option| option.kind).collect();
    assert_eq!(kinds, [PermissionOptionKind::Other, PermissionOptionKind::AllowAlways]);
    talk.order(Order::Answer { request, option: Some("hour".to_owned()) }).await;
    assert_eq!(talk.end_of(turn).await, DONE);
    assert_eq!(talk.text(), "answer hour");
}

#[tokio::test]
async fn a_permission_that_cannot_be_read_is_refused_and_said_so() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake(""), opening(None));
    let options = json!([{"name": "no id"}, 4]);
    let steps = json!([{"ask": {"toolCallId": "t"}, "options": options}, {"say": "."}]);
    assert_eq!(talk.turn(steps).await, DONE);
    assert_eq!(talk.text(), "answer none.");
    assert!(talk.notices().contains("without an answer to choose"), "{}", talk.notices());
}

#[tokio::test]
async fn requests_that_nobody_serves_are_refused_and_the_turn_goes_on() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake(""), opening(None));
    let table = [
        ("session/sing", json!({}), -32601),
        ("terminal/dance", json!({}), -32601),
        ("terminal/output", json!({"terminalId": "ghost"}), -32602),
        ("fs/read_text_file", json!({}), -32602),
        ("fs/write_text_file", json!({"path": 4}), -32602),
    ];
    for (method, with, code) in table {
        let from = talk.text().len();
        let outcome = talk.turn(json!([{"call": method, "with": with}])).await;
        assert_eq!(outcome, DONE, "{method}");
        let got: serde_json::Value = serde_json::from_str(&talk.text()[from..]).unwrap();
        assert_eq!(got["code"], code, "{method}: {got}");
    }
}

#[tokio::test]
async fn an_answer_to_nobody_or_a_second_one_ends_no_turn() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake(""), opening(None));
    assert_eq!(talk.turn(json!([{"say": "one"}])).await, DONE);
    // Each id that was asked with so far, the first turn's among them, and one that never was.
    let answer = |id: u32| {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"stopReason": "refusal"}});
        json!({"raw": answer.to_string()})
    };
    let steps = json!([answer(1), answer(2), answer(3), answer(999), {"say": "two"}]);
    assert_eq!(talk.turn(steps).await, DONE);
    assert_eq!((talk.text().as_str(), talk.ends()), ("onetwo", 2));
}

#[tokio::test]
async fn what_an_agent_says_before_its_session_has_a_name_is_heard() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake("early"), opening(None));
    assert_eq!(talk.turn(json!([{"say": "."}])).await, DONE);
    assert_eq!(talk.text(), "early words.");
}

#[tokio::test]
async fn what_is_said_in_another_session_is_not_said_in_this_one() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake(""), opening(None));
    let other = json!({"jsonrpc": "2.0", "method": "session/update", "params": {
        "sessionId": "a subagent's", "update": {"sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": "hidden"}}}});
    let steps = json!([{"say": "a"}, {"raw": other.to_string()}, {"say": "b"}]);
    assert_eq!(talk.turn(steps).await, DONE);
    assert_eq!((talk.text().as_str(), talk.notices().as_str()), ("ab", ""));
}

#[tokio::test]
async fn content_that_is_not_known_is_said_so_once() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake(""), opening(None));
    let film = json!({"update": {"sessionUpdate": "agent_message_chunk",
        "content": {"type": "film", "frames": 2}}});
    assert_eq!(talk.turn(json!([film, film, {"say": "."}])).await, DONE);
    assert_eq!(talk.text(), ".");
    let notices = talk.notices();
    assert!(notices.contains("agent_message_chunk"), "{notices}");
    assert_eq!(notices.lines().count(), 1, "{notices}");
}

#[tokio::test]
async fn an_error_output_without_end_holds_nothing_up_and_is_bounded() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake(""), opening(None));
    assert_eq!(talk.turn(json!([{"grumble": 40_000_000}, {"say": "."}])).await, DONE);
    assert_eq!((talk.text().as_str(), talk.notices().as_str()), (".", ""));
    talk.order(Order::End).await;
    talk.hear_the_end().await;
    let kept = std::fs::read_dir(&place.surroundings.scratch)
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum::<u64>();
    assert!(kept < 20_000_000, "{kept} bytes of it are kept");
}

#[tokio::test]
async fn an_agent_and_its_tools_see_only_the_environment_that_they_are_given() {
    let place = Place::new();
    let mut talk = Talk::open(&place.fake(""), opening(None));
    let steps =
        json!([{"spawn": "env > \"$HOME/seen.new\" && mv \"$HOME/seen.new\" \"$HOME/seen\""}]);
    assert_eq!(talk.turn(steps).await, DONE);
    let seen = place.surroundings.scratch.join("seen");
    eventually("the tool's own list", || seen.exists()).await;
    let seen = std::fs::read_to_string(seen).unwrap();
    let ours: Vec<_> = std::env::vars().map(|(name, _)| name).collect();
    assert!(ours.iter().any(|name| name == "CARGO_MANIFEST_DIR"), "the tests' own is another");
    assert!(seen.lines().any(|line| line.starts_with("HOME=")), "{seen}");
    assert!(!seen.contains("CARGO_"), "{seen}");
}
