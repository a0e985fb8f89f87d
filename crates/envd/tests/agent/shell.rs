//! The built-in agent that runs commands in a real terminal.

use std::time::Duration;

use wakeful_envd::{
    agent::{Agent, AgentLimits, Order},
    thread::command::AgentUpdate,
};
use wakeful_wire::rpc::{Exit, Outcome, ToolStatus};

use crate::fixture::{DONE, PATIENCE, Place, Talk, eventually, lives, opening, pid_in, quick};

async fn run(talk: &mut Talk, command: &str) -> (Outcome, String) {
    let from = talk.output().len();
    let turn = talk.begin(command).await;
    let outcome = talk.end_of(turn).await;
    (outcome, talk.output()[from..].to_owned())
}

#[tokio::test]
async fn a_command_runs_in_a_real_terminal_and_its_output_is_kept_as_it_is() {
    let place = Place::new();
    let mut talk = Talk::open(&place.shell(), opening(None));
    let command = "test -t 0 && test -t 1 && tty >/dev/null && printf 'é 1%%\\r2%%\\n'; stty size";
    let (outcome, output) = run(&mut talk, command).await;
    assert_eq!(outcome, DONE);
    assert_eq!(output, "é 1%\r2%\r\n40 120\r\n");
    let tools: Vec<_> = talk
        .heard
        .iter()
        .filter_map(|said| match &said.update {
            AgentUpdate::Tool(tool) => tool.status,
            _ => None,
        })
        .collect();
    assert_eq!(tools, [ToolStatus::InProgress, ToolStatus::Completed]);
}

#[tokio::test]
async fn a_commands_status_is_the_turns_result() {
    let place = Place::new();
    let mut talk = Talk::open(&place.shell(), opening(None));
    let exit = |talk: &Talk| {
        talk.heard.iter().rev().find_map(|said| match said.update {
            AgentUpdate::Terminal { exit: Some(exit), .. } => Some(exit),
            _ => None,
        })
    };
    let failed = |message: &str| Outcome::Failed { message: message.to_owned() };
    let (outcome, _) = run(&mut talk, "exit 7").await;
    assert_eq!(outcome, failed("the command ended with status 7"));
    assert_eq!(exit(&talk), Some(Exit { code: Some(7), signal: None }));
    let (outcome, _) = run(&mut talk, "kill -9 $$").await;
    assert_eq!(outcome, failed("the command was ended by signal 9"));
    let (outcome, output) = run(&mut talk, "no-such-program").await;
    assert_eq!(outcome, failed("the command ended with status 127"));
    assert!(output.contains("not found"), "{output}");
    let (outcome, output) = run(&mut talk, "if then").await;
    assert!(matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
    assert!(output.contains("yntax error"), "{output}");
    let (outcome, output) = run(&mut talk, "echo \"$#\" 'a  b' # comment\necho second").await;
    assert_eq!((outcome, output.as_str()), (DONE, "0 a  b\r\nsecond\r\n"));
}

#[tokio::test]
async fn the_working_directory_is_kept_from_prompt_to_prompt_and_over_a_restart() {
    let place = Place::new();
    let mut talk = Talk::open(&place.shell(), opening(None));
    let (outcome, _) = run(&mut talk, "mkdir -p 'a b/c' && cd 'a b/c'").await;
    assert_eq!(outcome, DONE);
    let (_, output) = run(&mut talk, "pwd; cd / && exit 1").await;
    assert!(output.ends_with("/workspace/a b/c\r\n"), "{output}");
    let (_, output) = run(&mut talk, "pwd").await;
    assert!(output.ends_with("/workspace/a b/c\r\n"), "outside is not kept: {output}");
    let session = talk.bound().unwrap();
    assert_eq!(session, "cwd:a b/c");
    drop(talk);
    let mut talk = Talk::open(&place.shell(), opening(Some(&session)));
    let (_, output) = run(&mut talk, "pwd; rm -r ../../'a b'").await;
    assert!(output.ends_with("/workspace/a b/c\r\n"), "{output}");
    let (outcome, output) = run(&mut talk, "pwd").await;
    assert_eq!(outcome, DONE);
    assert!(output.ends_with("/workspace\r\n"), "{output}");
    assert!(talk.notices().contains("gone"), "{}", talk.notices());
    for session in ["cwd:../..", "cwd:/etc", "else"] {
        let mut talk = Talk::open(&place.shell(), opening(Some(session)));
        let (_, output) = run(&mut talk, "pwd").await;
        assert!(output.ends_with("/workspace\r\n"), "{session}: {output}");
    }
    let left = std::fs::read_dir(&place.surroundings.scratch).unwrap().count();
    assert_eq!(left, 0, "notes are removed");
}

#[tokio::test]
async fn output_is_streamed_while_the_command_runs() {
    let place = Place::new();
    let mut talk = Talk::open(&place.shell(), opening(None));
    let turn = talk.begin("echo first; cat > /dev/null").await;
    while !talk.output().contains("first") {
        talk.next().await.unwrap();
    }
    assert_eq!(talk.ends(), 0);
    talk.order(Order::Cancel { turn }).await;
    assert_eq!(talk.end_of(turn).await, Outcome::Cancelled { obeyed: true });
}

#[tokio::test]
async fn a_cancel_interrupts_then_terminates_then_kills() {
    let table = [
        (
            "trap 'sleep 0.2; echo got INT; exit 3' INT; echo ready; while :; do sleep 0.05; done",
            "INT",
            true,
        ),
        (
            "trap '' INT; trap 'echo got TERM; exit 3' TERM; echo ready; while :; do sleep 0.05; done",
            "TERM",
            true,
        ),
        ("trap '' INT TERM; echo ready; while :; do sleep 0.05; done", "ready", false),
    ];
    for (command, shown, obeyed) in table {
        let place = Place::new();
        // Whoever obeys a signal is given the time that it takes. The second comes after half of it.
        let patient = |cancel_grace| AgentLimits { cancel_grace, ..quick() };
        let limits = match shown {
            "INT" => patient(PATIENCE),
            "TERM" => patient(Duration::from_secs(6)),
            _ => quick(),
        };
        let mut talk = Talk::open(&place.shell_within(limits), opening(None));
        let turn = talk.begin(command).await;
        while !talk.output().contains("ready") {
            talk.next().await.unwrap();
        }
        talk.order(Order::Cancel { turn }).await;
        assert_eq!(talk.end_of(turn).await, Outcome::Cancelled { obeyed }, "{command}");
        assert!(talk.output().contains(shown), "{command}: {}", talk.output());
        let (outcome, _) = run(&mut talk, "true").await;
        assert_eq!(outcome, DONE);
    }
}

#[tokio::test]
async fn a_cancelled_command_leaves_nothing_and_a_finished_one_what_it_left_on_purpose() {
    // The end of a terminal ends what has not left it yet.
    let left = |name: &str| {
        format!(
            "setsid sh -c 'echo $$ > {name}; exec sleep 1000' & \
             until test -s {name}; do sleep 0.02; done; echo pid $(cat {name})"
        )
    };
    let place = Place::new();
    let mut talk = Talk::open(&place.shell(), opening(None));
    let (outcome, kept) = run(&mut talk, &left("kept")).await;
    assert_eq!(outcome, DONE);
    let kept = pid_in(&kept);
    let from = talk.output().len();
    let turn = talk.begin(&format!("{}; sleep 1000; echo never", left("cancelled"))).await;
    while !talk.output()[from..].contains('\n') {
        talk.next().await.unwrap();
    }
    let cancelled = pid_in(&talk.output()[from..]);
    assert!(lives(kept) && lives(cancelled));
    talk.order(Order::Cancel { turn }).await;
    assert!(matches!(talk.end_of(turn).await, Outcome::Cancelled { .. }));
    assert!(!lives(cancelled));
    assert!(lives(kept));
    talk.order(Order::End).await;
    talk.hear_the_end().await;
    assert!(!lives(kept));
}

#[tokio::test]
async fn a_flood_of_output_is_bounded_and_the_command_still_ends() {
    let place = Place::new();
    let mut talk = Talk::open(&place.shell(), opening(None));
    let (outcome, output) = run(&mut talk, "yes | head -c 20000000; echo END").await;
    assert_eq!(outcome, DONE);
    assert!(output.len() <= 8 * 1024 * 1024, "{}", output.len());
    assert!(talk.notices().contains("left out"), "{}", talk.notices());
}

#[tokio::test]
async fn the_end_of_a_session_ends_the_command() {
    let place = Place::new();
    let mut talk = Talk::open(&place.shell(), opening(None));
    let turn = talk.begin("echo pid $$; trap '' INT TERM HUP; sleep 1000").await;
    while !talk.output().contains('\n') {
        talk.next().await.unwrap();
    }
    let pid = pid_in(&talk.output());
    talk.order(Order::End).await;
    assert_eq!(talk.end_of(turn).await, Outcome::Cut);
    talk.hear_the_end().await;
    assert!(!lives(pid));
}

#[tokio::test]
async fn two_threads_work_at_once() {
    let place = Place::new();
    let shell = place.shell();
    let (mut one, mut two) =
        (Talk::open(&shell as &dyn Agent, opening(None)), Talk::open(&shell, opening(None)));
    // Each waits for the other's file, so neither ends unless both run.
    let first = one.begin("touch one; until test -e two; do sleep 0.02; done").await;
    let second = two.begin("touch two; until test -e one; do sleep 0.02; done").await;
    assert_eq!(one.end_of(first).await, DONE);
    assert_eq!(two.end_of(second).await, DONE);
    eventually("both files", || place.workspace().join("two").exists()).await;
}
