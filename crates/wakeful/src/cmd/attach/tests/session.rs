use std::time::Duration;

use tokio::time::Instant;
use wakeful_wire::{
    Code, Problem,
    rpc::{Call, CallId, Outcome, Remember, Seq, Taken},
};

use super::super::{
    args::{Approve, AttachArgs},
    exit,
    session::{Input, Reaction, Session},
    state::Following,
    testing::{DONE, Log, client, request, thread, turn},
};

fn session(options: AttachArgs) -> Session {
    Session::new(Following::new(thread()), options, true)
}

fn shown(log: &Log, options: AttachArgs) -> Session {
    let mut session = session(options);
    session.handle_item(log.snapshot(log.len(), 1));
    session.handle_item(log.synchronized(log.len(), 1));
    session
}

fn line(session: &mut Session, text: &str) -> Reaction {
    session.handle_input(Input::Line(text.to_owned()), Instant::now(), || client(7))
}

/// Sends whatever is to be sent.
fn sent(session: &mut Session, first: u32) -> Vec<Call> {
    let mut calls = Vec::new();
    while let Some(call) = session.next_call() {
        calls.push(call.clone());
        session.handle_sent(CallId(first + u32::try_from(calls.len()).unwrap() - 1));
    }
    calls
}

fn taken(seq: u64) -> Result<Option<Taken>, Problem> {
    Ok(Some(Taken { seq: Seq(seq), thread: None, changed: true }))
}

#[test]
fn a_prompt_is_sent_again_under_its_id_until_it_is_answered() {
    let log = Log::new();
    let mut session = shown(&log, AttachArgs::default());
    assert_eq!(line(&mut session, "hello"), Reaction::Nothing);
    let first = sent(&mut session, 2);
    assert!(matches!(&first[..], [Call::ThreadPrompt(call)] if call.prompt.client == client(7)));
    assert_eq!(sent(&mut session, 9), [], "once per socket");
    session.handle_lost();
    assert_eq!(sent(&mut session, 2), [], "not before it is known how the thread stands");
    session.handle_item(log.resumed(1, 1));
    session.handle_item(log.synchronized(1, 1));
    assert_eq!(sent(&mut session, 2), first);
    assert_eq!(session.handle_answer(CallId(2), taken(9)), Reaction::Nothing);
    session.handle_lost();
    session.handle_item(log.synchronized(1, 1));
    assert_eq!(sent(&mut session, 2), []);
}

#[test]
fn a_number_answers_the_oldest_permission_once() {
    let mut log = Log::new();
    log.begin(1, "one").ask(1, 1).ask(2, 2);
    let mut session = shown(&log, AttachArgs::default());
    assert!(matches!(line(&mut session, "3"), Reaction::Note(_)));
    assert!(matches!(line(&mut session, "0"), Reaction::Note(_)));
    assert_eq!(line(&mut session, "2!"), Reaction::Nothing);
    assert!(matches!(line(&mut session, "1"), Reaction::Note(_)), "on its way");
    let calls = sent(&mut session, 2);
    let [Call::ThreadAnswer(answer)] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!((answer.request, &*answer.option), (request(1), "no"));
    assert_eq!(answer.remember, Some(Remember::Thread));
    // The socket breaks, and somebody else was faster: the answer has lost its purpose.
    session.handle_lost();
    log.answer(1, 1, "yes");
    session.handle_item(log.events(5..6));
    session.handle_item(log.synchronized(6, 1));
    assert_eq!(sent(&mut session, 2), []);
    assert_eq!(line(&mut session, "1"), Reaction::Nothing);
    let calls = sent(&mut session, 2);
    assert!(matches!(&calls[..], [Call::ThreadAnswer(answer)] if answer.request == request(2)));
}

#[test]
fn a_rule_answers_each_permission_once() {
    let mut log = Log::new();
    log.begin(1, "one").ask(1, 1);
    let reject = AttachArgs { approve: Some(Approve::Reject), ..AttachArgs::default() };
    let mut session = shown(&log, reject);
    let calls = sent(&mut session, 2);
    assert!(matches!(&calls[..], [Call::ThreadAnswer(answer)] if answer.option == "no"));
    let refused = Problem::new(Code::Conflict).detail("Too late.");
    let reaction = session.handle_answer(CallId(2), Err(refused));
    assert_eq!(reaction, Reaction::Note("not taken: Too late.".to_owned()));
    session.handle_lost();
    session.handle_item(log.snapshot(log.len(), 2));
    session.handle_item(log.synchronized(log.len(), 2));
    assert_eq!(sent(&mut session, 2), [], "a refused answer is not given again");
    log.ask(2, 2);
    session.handle_item(log.events(4..5));
    assert_eq!(sent(&mut session, 3).len(), 1);
}

#[test]
fn an_interrupt_cancels_and_a_second_one_leaves() {
    let mut log = Log::new();
    log.begin(1, "one");
    let mut session = shown(&log, AttachArgs::default());
    let now = Instant::now();
    let press = |session: &mut Session, after: u64| {
        let at = now + Duration::from_millis(after);
        session.handle_input(Input::Interrupt, at, || client(1))
    };
    assert!(matches!(press(&mut session, 0), Reaction::Note(_)));
    let calls = sent(&mut session, 2);
    assert!(matches!(&calls[..], [Call::ThreadCancel(call)] if call.turn == Some(turn(1))));
    assert!(matches!(press(&mut session, 2_500), Reaction::Note(_)), "too late to leave");
    assert_eq!(sent(&mut session, 3), [], "the first one is still on its way");
    assert_eq!(press(&mut session, 3_000), Reaction::Leave(exit::INTERRUPTED));
    let mut alone = Session::new(Following::new(thread()), AttachArgs::default(), false);
    assert_eq!(press(&mut alone, 0), Reaction::Leave(exit::INTERRUPTED));
    let end = alone.handle_input(Input::End, now, || client(1));
    assert_eq!(end, Reaction::Leave(exit::DONE));
}

#[test]
fn a_cancel_is_not_sent_to_another_turn() {
    let mut log = Log::new();
    log.begin(1, "one");
    let mut session = shown(&log, AttachArgs::default());
    session.handle_lost();
    session.handle_input(Input::Interrupt, Instant::now(), || client(1));
    log.end(1, DONE).begin(2, "two");
    session.handle_item(log.events(3..log.len()));
    session.handle_item(log.synchronized(log.len(), 1));
    assert_eq!(sent(&mut session, 2), []);
}

#[test]
fn until_idle_ends_with_how_the_last_turn_ended() {
    let until_idle = AttachArgs { until_idle: true, ..AttachArgs::default() };
    let failed = Outcome::Failed { message: String::new() };
    let cancelled = Outcome::Cancelled { obeyed: true };
    let cases = [
        (None, exit::DONE),
        (Some(DONE), exit::DONE),
        (Some(failed), exit::NOT_COMPLETED),
        (Some(cancelled), exit::NOT_COMPLETED),
        (Some(Outcome::Cut), exit::NOT_COMPLETED),
    ];
    for (outcome, code) in cases {
        let mut log = Log::new();
        if let Some(outcome) = &outcome {
            log.begin(1, "one").end(1, outcome.clone());
        }
        assert_eq!(shown(&log, until_idle).finished(), Some(code), "{outcome:?}");
        assert_eq!(shown(&log, AttachArgs::default()).finished(), None);
    }
}

#[test]
fn until_idle_waits_for_what_was_sent() {
    let mut log = Log::new();
    let until_idle = AttachArgs { until_idle: true, ..AttachArgs::default() };
    let mut session = shown(&log, until_idle);
    line(&mut session, "hello");
    assert_eq!(session.finished(), None, "not sent");
    sent(&mut session, 2);
    log.begin(1, "hello").end(1, DONE);
    session.handle_answer(CallId(2), taken(log.0[1].seq.0));
    assert_eq!(session.finished(), None, "taken, and not seen");
    session.handle_item(log.events(1..3));
    assert_eq!(session.finished(), None, "running");
    session.handle_item(log.events(3..4));
    assert_eq!(session.finished(), Some(exit::DONE));
}
