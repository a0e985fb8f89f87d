use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use wakeful_link::{
    ConnectionPhase, ConnectionState, DataStatus, Failure, FailureReason, Instant,
    boundary::CallFailure, session::Effect, threads::ThreadState,
};
use wakeful_wire::rpc::{Call, Outcome, Remember, ShellRow, ThreadId};

use super::super::{
    args::{Approve, AttachArgs},
    change::Change,
    exit,
    outbox::Sending,
    pick::Wanted,
    screen::Connection,
    session::{Act, End, Input, Moment, Said, Session, Setting, View},
    testing::{DONE, Log, client, request, row, thread, turn},
};

const LIVE: DataStatus = DataStatus::Live;
const UNTIL_IDLE: AttachArgs = AttachArgs { wake: false, until_idle: true, approve: None };

/// A session, and what the link knows beside it.
struct Desk {
    session: Session,
    now: Instant,
    connection: ConnectionState,
    state: Option<ThreadState>,
    rows: Vec<Arc<ShellRow>>,
}

impl Desk {
    fn new(options: AttachArgs) -> Self {
        Self::of(Setting {
            name: "lab".to_owned(),
            wanted: Wanted::Thread(thread()),
            options,
            interactive: true,
            screen: true,
        })
    }

    fn of(setting: Setting) -> Self {
        let mut desk = Self {
            session: Session::new(setting),
            now: Instant(1_000_000),
            connection: ConnectionState::default(),
            state: None,
            rows: Vec::new(),
        };
        desk.connect();
        desk
    }

    /// A thread that is followed, current.
    fn live(log: &Log, options: AttachArgs) -> Self {
        let mut desk = Self::new(options);
        desk.look();
        assert_eq!(desk.acts(), [Act::Show(thread())]);
        desk.show(log, LIVE);
        desk.said();
        desk
    }

    fn connect(&mut self) {
        self.connection.phase = ConnectionPhase::Connected;
        self.connection.generation += 1;
        self.connection.last_failure = None;
        self.connection.retry_at = None;
    }

    fn lose(&mut self, phase: ConnectionPhase) {
        self.connection.phase = phase;
        self.connection.attempt += 1;
        let failure = Failure::new(FailureReason::Transport, "The connection ended.");
        self.connection.last_failure = Some(failure);
        self.connection.retry_at = Some(self.now.after(Duration::from_secs(2)));
        if let Some(state) = &mut self.state {
            state.status = DataStatus::Cached;
        }
        self.look();
    }

    fn show(&mut self, log: &Log, status: DataStatus) {
        self.state = Some(log.state(log.len(), status));
        self.look();
    }

    fn look(&mut self) {
        let shell = Default::default();
        self.session.look(&View {
            now: self.now,
            connection: Some(&self.connection),
            platform: None,
            shell: Some(&shell),
            thread: self.state.as_ref(),
        });
    }

    fn input(&mut self, input: Input) {
        let moment = Moment {
            now: self.now,
            clock: Default::default(),
            fresh: client(7),
            rows: self.rows.clone(),
            thread: self.state.as_ref(),
        };
        self.session.handle_input(input, moment);
    }

    fn line(&mut self, text: &str) {
        self.input(Input::Line(text.to_owned()));
    }

    /// What was to be done, but for what says that somebody is there.
    fn acts(&mut self) -> Vec<Act> {
        let acts = std::iter::from_fn(|| self.session.poll_act());
        acts.filter(|act| *act != Act::Active).collect()
    }

    fn calls(&mut self) -> Vec<(Sending, Call)> {
        let call =
            |act| if let Act::Call(sending, call) = act { Some((sending, *call)) } else { None };
        self.acts().into_iter().filter_map(call).collect()
    }

    fn said(&mut self) -> Vec<Said> {
        std::iter::from_fn(|| self.session.poll_said()).collect()
    }

    fn notes(&mut self) -> Vec<String> {
        let note = |said| if let Said::Note(text) = said { Some(text) } else { None };
        self.said().into_iter().filter_map(note).collect()
    }

    /// The one note there is.
    fn note(&mut self) -> String {
        let notes = self.notes();
        let [note] = &notes[..] else { panic!("{notes:?}") };
        note.clone()
    }
}

fn taken(seq: u64) -> Result<Value, CallFailure> {
    Ok(json!({ "seq": seq, "changed": true }))
}

fn failed(reason: FailureReason, effect: Effect) -> Result<Value, CallFailure> {
    Err(CallFailure { failure: Failure::new(reason, "Too late."), effect })
}

fn lost() -> Result<Value, CallFailure> {
    failed(FailureReason::Transport, Effect::Unknown)
}

#[test]
fn a_prompt_whose_answer_was_lost_is_sent_again_under_its_id_and_once_per_loss() {
    let log = Log::new();
    let mut desk = Desk::live(&log, AttachArgs::default());
    desk.line("hello");
    let first = desk.calls();
    let [(sending, Call::ThreadPrompt(call))] = &first[..] else { panic!("{first:?}") };
    assert_eq!(call.prompt.client, client(7));
    desk.look();
    assert_eq!(desk.calls(), [], "it is on its way");
    desk.lose(ConnectionPhase::Backoff);
    desk.session.handle_answered(*sending, lost());
    desk.look();
    assert_eq!(desk.calls(), [], "there is no connection");
    desk.connect();
    desk.look();
    let again = desk.calls();
    let [(second, same)] = &again[..] else { panic!("{again:?}") };
    assert_ne!(second, sending);
    assert_eq!(*same, first[0].1);
    desk.session.handle_answered(*sending, taken(9));
    assert_eq!(desk.session.finished(), None);
    desk.session.handle_answered(*second, taken(9));
    desk.lose(ConnectionPhase::Backoff);
    desk.connect();
    desk.look();
    assert_eq!(desk.calls(), [], "it was taken");
}

#[test]
fn what_is_no_prompt_is_not_repeated_when_its_answer_is_lost_and_that_is_said() {
    let mut log = Log::new();
    log.begin(1, "one").ask(1, 1);
    let mut desk = Desk::live(&log, AttachArgs::default());
    desk.line("/cancel");
    desk.line("1");
    let calls = desk.calls();
    assert_eq!(calls.len(), 2);
    desk.said();
    desk.lose(ConnectionPhase::Backoff);
    desk.said();
    for (sending, _) in &calls {
        desk.session.handle_answered(*sending, lost());
    }
    let notes = desk.notes();
    assert!(notes[0].contains("not sent again (thread.cancel)"), "{notes:?}");
    assert!(notes[1].contains("answer again"), "{notes:?}");
    desk.connect();
    desk.show(&log, LIVE);
    assert_eq!(desk.calls(), []);
    let asked = |said: &Said| matches!(said, Said::Changes(changes) if matches!(changes[..], [Change::Asked(_)]));
    assert!(desk.said().iter().any(asked), "what still waits is asked again");
}

#[test]
fn a_call_that_certainly_did_not_happen_for_a_passing_reason_is_made_later() {
    let mut log = Log::new();
    log.begin(1, "one");
    let mut desk = Desk::live(&log, AttachArgs::default());
    desk.line("/cancel");
    let (sending, call) = desk.calls().pop().unwrap();
    desk.session.handle_answered(sending, failed(FailureReason::Transport, Effect::None));
    desk.look();
    assert_eq!(desk.calls().pop().unwrap().1, call);
}

#[test]
fn a_refusal_is_told() {
    let mut desk = Desk::live(&Log::new(), AttachArgs::default());
    desk.line("hello");
    let (sending, _) = desk.calls().pop().unwrap();
    desk.session.handle_answered(sending, failed(FailureReason::Permission, Effect::None));
    assert_eq!(desk.note(), "not taken: Too late.");
    desk.look();
    assert_eq!(desk.calls(), []);
}

#[test]
fn answers_that_may_have_been_overlooked_count_as_lost() {
    let mut desk = Desk::live(&Log::new(), AttachArgs::default());
    desk.line("hello");
    let (_, call) = desk.calls().pop().unwrap();
    desk.session.handle_overlooked();
    desk.look();
    assert_eq!(desk.calls().pop().unwrap().1, call);
}

#[test]
fn a_number_answers_the_oldest_permission_once() {
    let mut log = Log::new();
    log.begin(1, "one").ask(1, 1).ask(2, 2);
    let mut desk = Desk::live(&log, AttachArgs::default());
    desk.line("3");
    desk.line("0");
    assert_eq!(desk.notes().len(), 2);
    desk.line("2!");
    desk.line("1");
    assert!(desk.note().contains("on its way"));
    let calls = desk.calls();
    let [(_, Call::ThreadAnswer(answer))] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!((answer.request, &*answer.option), (request(1), "no"));
    assert_eq!(answer.remember, Some(Remember::Thread));
}

#[test]
fn words_answer_like_numbers() {
    let mut log = Log::new();
    log.begin(1, "one").ask(1, 1);
    for (line, option, remember) in
        [("/allow", "yes", None), ("/deny!", "no", Some(Remember::Thread))]
    {
        let mut desk = Desk::live(&log, AttachArgs::default());
        desk.line(line);
        let calls = desk.calls();
        let [(_, Call::ThreadAnswer(answer))] = &calls[..] else { panic!("{calls:?}") };
        assert_eq!((&*answer.option, answer.remember), (option, remember), "{line}");
    }
    let mut desk = Desk::live(&Log::new(), AttachArgs::default());
    desk.line("/allow");
    assert_eq!(desk.note(), "nothing is asked for");
}

#[test]
fn an_answer_that_has_lost_its_purpose_is_not_sent() {
    let mut log = Log::new();
    log.begin(1, "one").ask(1, 1);
    let mut desk = Desk::live(&log, AttachArgs::default());
    desk.lose(ConnectionPhase::Backoff);
    desk.line("1");
    // Somebody else was faster.
    log.answer(1, 1, "yes");
    desk.connect();
    desk.look();
    assert_eq!(desk.calls(), [], "not before it is known how the thread stands");
    desk.show(&log, LIVE);
    assert_eq!(desk.calls(), []);
}

#[test]
fn a_rule_answers_each_permission_once() {
    let mut log = Log::new();
    log.begin(1, "one").ask(1, 1);
    let reject = AttachArgs { approve: Some(Approve::Reject), ..AttachArgs::default() };
    let mut desk = Desk::live(&log, reject);
    let (sending, call) = desk.calls().pop().unwrap();
    assert!(matches!(call, Call::ThreadAnswer(answer) if answer.option == "no"));
    desk.session.handle_answered(sending, failed(FailureReason::Configuration, Effect::None));
    assert_eq!(desk.note(), "not taken: Too late.");
    desk.lose(ConnectionPhase::Backoff);
    desk.connect();
    desk.show(&log, LIVE);
    assert_eq!(desk.calls(), [], "a refused answer is not given again");
    log.ask(2, 2);
    desk.show(&log, LIVE);
    assert_eq!(desk.calls().len(), 1);
}

#[test]
fn a_rule_decides_anew_where_its_answer_was_lost_and_the_question_stands() {
    let mut log = Log::new();
    log.begin(1, "one").ask(1, 1);
    let allow = AttachArgs { approve: Some(Approve::Allow), ..AttachArgs::default() };
    let mut desk = Desk::live(&log, allow);
    let (sending, first) = desk.calls().pop().unwrap();
    desk.lose(ConnectionPhase::Backoff);
    desk.session.handle_answered(sending, lost());
    desk.connect();
    desk.look();
    assert_eq!(desk.calls(), [], "not before it is known whether it stands");
    desk.show(&log, LIVE);
    assert_eq!(desk.calls().pop().unwrap().1, first);
}

#[test]
fn an_interrupt_cancels_and_a_second_one_leaves() {
    let mut log = Log::new();
    log.begin(1, "one");
    let mut desk = Desk::live(&log, AttachArgs::default());
    let start = desk.now;
    let press = |desk: &mut Desk, after: u64| {
        desk.now = start.after(Duration::from_millis(after));
        desk.input(Input::Interrupt);
        desk.session.finished()
    };
    assert_eq!(press(&mut desk, 0), None);
    let calls = desk.calls();
    assert!(matches!(&calls[..], [(_, Call::ThreadCancel(call))] if call.turn == Some(turn(1))));
    assert_eq!(press(&mut desk, 2_500), None, "too late to leave");
    assert_eq!(desk.calls(), [], "the first one is still on its way");
    assert_eq!(press(&mut desk, 3_000), Some(End::Code(exit::INTERRUPTED)));

    let setting = |interactive| Setting {
        name: "lab".to_owned(),
        wanted: Wanted::Newest,
        options: AttachArgs::default(),
        interactive,
        screen: false,
    };
    let mut alone = Desk::of(setting(false));
    assert_eq!(press(&mut alone, 0), Some(End::Code(exit::INTERRUPTED)));
    let mut left = Desk::of(setting(true));
    left.input(Input::End);
    assert_eq!(left.session.finished(), Some(End::Code(exit::DONE)));
}

#[test]
fn a_cancel_is_not_sent_to_another_turn() {
    let mut log = Log::new();
    log.begin(1, "one");
    let mut desk = Desk::live(&log, AttachArgs::default());
    desk.lose(ConnectionPhase::Backoff);
    desk.input(Input::Interrupt);
    assert!(desk.notes().pop().unwrap().contains("once the host is there"));
    log.end(1, DONE).begin(2, "two");
    desk.connect();
    desk.show(&log, LIVE);
    assert_eq!(desk.calls(), []);
}

#[test]
fn until_idle_ends_with_how_the_last_turn_ended() {
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
        let idle = Desk::live(&log, UNTIL_IDLE).session.finished();
        assert_eq!(idle, Some(End::Code(code)), "{outcome:?}");
        assert_eq!(Desk::live(&log, AttachArgs::default()).session.finished(), None);
    }
}

#[test]
fn until_idle_waits_for_what_was_sent_and_never_trusts_what_is_old() {
    let mut log = Log::new();
    let mut desk = Desk::live(&log, UNTIL_IDLE);
    desk.line("hello");
    assert_eq!(desk.session.finished(), None, "not answered");
    let (sending, _) = desk.calls().pop().unwrap();
    log.begin(1, "hello").end(1, DONE);
    desk.session.handle_answered(sending, taken(log.0[1].seq.0));
    assert_eq!(desk.session.finished(), None, "taken, and not seen");
    desk.state = Some(log.state(3, LIVE));
    desk.look();
    assert_eq!(desk.session.finished(), None, "running");
    desk.show(&log, DataStatus::Cached);
    assert_eq!(desk.session.finished(), None, "not known to be the newest");
    desk.show(&log, LIVE);
    assert_eq!(desk.session.finished(), Some(End::Code(exit::DONE)));
}

#[test]
fn a_deleted_thread_ends_it_and_an_unknown_one_is_an_error() {
    let gone = || ThreadState { status: DataStatus::Deleted, ..ThreadState::default() };
    for (options, code) in [(AttachArgs::default(), exit::DONE), (UNTIL_IDLE, exit::NOT_COMPLETED)]
    {
        let mut log = Log::new();
        log.begin(1, "one");
        let mut desk = Desk::live(&log, options);
        desk.state = Some(gone());
        desk.look();
        assert_eq!(desk.session.finished(), Some(End::Code(code)));
        assert!(desk.said().contains(&Said::Changes(vec![Change::Deleted])));
    }
    let mut desk = Desk::new(AttachArgs::default());
    desk.state = Some(gone());
    desk.look();
    desk.look();
    assert!(matches!(desk.session.finished(), Some(End::Failed(why)) if why.contains("no thread")));
}

#[test]
fn a_thread_that_may_not_be_read_is_an_error() {
    let mut desk = Desk::live(&Log::new(), AttachArgs::default());
    let failure = Failure::new(FailureReason::Permission, "Not for you.");
    desk.state = Some(ThreadState { error: Some(failure), ..ThreadState::default() });
    desk.look();
    assert_eq!(desk.session.finished(), Some(End::Failed("Not for you.".to_owned())));
}

#[test]
fn a_prompt_wakes_what_sleeps_and_is_sent_once_it_is_there() {
    let mut desk = Desk::live(&Log::new(), AttachArgs::default());
    desk.lose(ConnectionPhase::Asleep);
    let standing = desk.said();
    assert!(matches!(&standing[..], [Said::Standing(Connection::Asleep, Some(_))]), "{standing:?}");
    assert_eq!(desk.session.finished(), None, "a person stays");
    assert_eq!(desk.acts(), [], "nothing is woken by itself");
    desk.line("hello");
    assert_eq!(desk.acts(), [Act::Wake]);
    assert!(desk.note().contains("woken"));
    desk.connect();
    desk.look();
    assert_eq!(desk.calls().len(), 1);
}

#[test]
fn a_person_wakes_retries_and_loads_by_a_word() {
    let mut desk = Desk::live(&Log::new(), AttachArgs::default());
    desk.line("/wake");
    assert_eq!(desk.note(), "it is awake");
    desk.lose(ConnectionPhase::Backoff);
    desk.said();
    desk.line("/retry");
    desk.line("/wake");
    assert_eq!(desk.acts(), [Act::Retry, Act::Wake]);
    desk.line("/older");
    assert_eq!(desk.note(), "that is the beginning of the thread");
    desk.state.as_mut().unwrap().page.has_more = true;
    desk.line("/older");
    assert!(desk.note().contains("not connected"));
    desk.connect();
    desk.look();
    desk.line("/older");
    assert_eq!(desk.acts(), [Act::LoadOlder(thread())]);
    desk.line("/quit");
    assert_eq!(desk.session.finished(), Some(End::Code(exit::DONE)));
}

#[test]
fn a_prompt_that_was_not_confirmed_is_named_when_one_leaves() {
    let mut desk = Desk::live(&Log::new(), AttachArgs::default());
    desk.lose(ConnectionPhase::Backoff);
    desk.said();
    desk.line("cook soup");
    desk.said();
    desk.line("/quit");
    assert!(desk.note().contains("cook soup"));
    assert_eq!(desk.session.finished(), Some(End::Code(exit::NOT_COMPLETED)));
}

#[test]
fn threads_are_listed_and_gone_to_by_number_or_id() {
    let mut desk = Desk::live(&Log::new(), AttachArgs::default());
    let ids: Vec<ThreadId> =
        (1..=3_u128).map(|n| ThreadId::from_uuid(uuid::Uuid::from_u128(n << 100 | n))).collect();
    desk.rows = ids.iter().zip(1..).map(|(id, at)| Arc::new(row(*id, at))).collect();
    desk.line("/threads");
    let list = desk.note();
    let first = list.lines().next().unwrap();
    assert!(first.contains("  1  00000030"), "the newest first: {list}");
    desk.line("/switch 2");
    assert_eq!(desk.acts(), [Act::Show(ids[1])]);
    assert_eq!(desk.session.thread(), Some(ids[1]));
    // What was listed keeps its numbers, whatever happens meanwhile.
    desk.rows.reverse();
    desk.line("/switch 1");
    assert_eq!(desk.acts(), [Act::Show(ids[2])]);
    desk.line("/switch 00000010");
    assert_eq!(desk.acts(), [Act::Show(ids[0])]);
    desk.line("/switch 9999");
    assert!(desk.notes()[0].contains("there is no thread"));
    assert_eq!(desk.acts(), []);
    let mut log = Log::new();
    log.begin(1, "shown anew");
    desk.state = None;
    desk.show(&log, LIVE);
    assert!(matches!(&desk.said()[..], [Said::Changes(_)]));
}

#[test]
fn going_to_another_thread_keeps_prompts_that_wait_and_drops_what_was_for_the_first() {
    let mut log = Log::new();
    log.begin(1, "one").ask(1, 1);
    let mut desk = Desk::live(&log, AttachArgs::default());
    desk.lose(ConnectionPhase::Backoff);
    desk.line("later");
    desk.line("1");
    desk.said();
    let other = ThreadId::from_uuid(uuid::Uuid::from_u128(77));
    desk.line(&format!("/switch {other}"));
    assert!(desk.note().contains("dropped"));
    desk.acts();
    desk.state = None;
    desk.connect();
    desk.look();
    let calls = desk.calls();
    let [(_, Call::ThreadPrompt(call))] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(call.thread, thread(), "it goes where it was written");
}

#[test]
fn waiting_prompts_are_listed_taken_out_and_let_go_on() {
    let mut log = Log::new();
    log.begin(1, "one").queue(2, "second").queue(3, "third");
    let mut desk = Desk::live(&log, AttachArgs::default());
    desk.line("/queue");
    let list = desk.note();
    assert!(list.contains("1  second") && list.contains("2  third"), "{list}");
    desk.line("/unqueue 2");
    let calls = desk.calls();
    assert!(matches!(&calls[..], [(_, Call::ThreadUnqueue(call))] if call.client == client(3)));
    desk.line("/unqueue 3");
    assert!(desk.note().contains("no such prompt"));
    desk.line("/release");
    assert!(matches!(&desk.calls()[..], [(_, Call::ThreadRelease(_))]));
}
