use std::{cell::RefCell, collections::VecDeque, future::pending, rc::Rc};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use wakeful_wire::{
    Code, Phase, Problem,
    rpc::{Call, CallId, Cursor, ServerFrame, ThreadItem},
};

use super::super::{
    args::AttachArgs,
    exit,
    follow::{Follow, Host, Socket},
    render::Render,
    screen::Screen,
    session::{Input, Session},
    state::Following,
    testing::{DONE, Log, Printed, client, thread},
};
use crate::host::{Ended, HostError};

/// What a scripted socket does next.
enum Step {
    /// An item of the subscription.
    Item(ThreadItem),
    /// The subscription is refused.
    Refuse(Problem),
    /// The next call of this method is answered, once it has come.
    Answer(&'static str, Value),
    /// Nothing more until a call of this method has come.
    Sent(&'static str),
    /// A person does something now.
    Input(Input),
    /// The socket ends.
    End(Option<u16>),
}

/// A host whose sockets follow scripts.
struct Scripted {
    sockets: RefCell<VecDeque<Result<VecDeque<Step>, HostError>>>,
    calls: Rc<RefCell<Vec<(usize, Call)>>>,
    wakes: RefCell<Vec<bool>>,
    inputs: mpsc::Sender<Input>,
}

struct ScriptedSocket {
    number: usize,
    steps: VecDeque<Step>,
    calls: Rc<RefCell<Vec<(usize, Call)>>>,
    asked: Vec<&'static str>,
    inputs: mpsc::Sender<Input>,
}

impl Host for Scripted {
    type Socket = ScriptedSocket;

    async fn connect(&self, wake: bool) -> Result<ScriptedSocket, HostError> {
        self.wakes.borrow_mut().push(wake);
        let next = self.sockets.borrow_mut().pop_front();
        let steps = next.expect("no further socket is opened")?;
        let (number, calls) = (self.wakes.borrow().len(), Rc::clone(&self.calls));
        let inputs = self.inputs.clone();
        Ok(ScriptedSocket { number, steps, calls, asked: Vec::new(), inputs })
    }
}

impl Socket for ScriptedSocket {
    async fn request(&mut self, call: &Call) -> Result<CallId, Ended> {
        self.calls.borrow_mut().push((self.number, call.clone()));
        self.asked.push(call.method());
        Ok(CallId(u32::try_from(self.asked.len()).unwrap()))
    }

    async fn next(&mut self) -> Result<ServerFrame, Ended> {
        let asked = |method: &str| self.asked.iter().position(|asked| *asked == method);
        match self.steps.front() {
            Some(Step::Answer(method, _) | Step::Sent(method)) if asked(method).is_none() => {
                pending().await
            }
            None => pending().await,
            Some(_) => {}
        }
        match self.steps.pop_front().unwrap() {
            Step::Item(item) => {
                let item = serde_json::to_value(item).unwrap();
                Ok(ServerFrame::Item { id: CallId(1), item })
            }
            Step::Sent(_) => Ok(ServerFrame::Unknown),
            Step::Refuse(problem) => Ok(ServerFrame::Error { id: CallId(1), problem }),
            Step::Answer(method, result) => {
                let place = self.asked.iter().position(|asked| *asked == method).unwrap();
                self.asked[place] = "answered";
                Ok(ServerFrame::Response { id: CallId(u32::try_from(place).unwrap() + 1), result })
            }
            Step::Input(input) => {
                self.inputs.try_send(input).unwrap();
                Ok(ServerFrame::Unknown)
            }
            Step::End(code) => Err(Ended { code, reason: "over".to_owned() }),
        }
    }

    async fn close(self) {}
}

/// What came of it.
struct Ran {
    code: anyhow::Result<u8>,
    out: String,
    notes: Vec<String>,
    calls: Vec<(usize, Call)>,
    wakes: Vec<bool>,
}

impl Ran {
    fn json(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn cursors(&self) -> Vec<Option<Cursor>> {
        let cursor = |(_, call): &(usize, Call)| {
            if let Call::ThreadSubscribe(subscribe) = call { Some(subscribe.cursor) } else { None }
        };
        self.calls.iter().filter_map(cursor).collect()
    }
}

async fn run(sockets: Vec<Result<Vec<Step>, HostError>>, options: AttachArgs, json: bool) -> Ran {
    let (sender, mut inputs) = mpsc::channel(8);
    let sockets = sockets.into_iter().map(|socket| socket.map(VecDeque::from)).collect();
    let host = Scripted {
        sockets: RefCell::new(sockets),
        calls: Rc::default(),
        wakes: RefCell::default(),
        inputs: sender,
    };
    let printed = Printed::default();
    let render = (!json).then(|| Render::new(false, true));
    let follow = Follow {
        session: Session::new(Following::new(thread()), options, true),
        screen: Screen::new(printed.clone(), render),
        inputs: &mut inputs,
        fresh: || client(9),
        chance: || 0.0,
    };
    let code = follow.run(&host).await;
    let (calls, wakes) = (host.calls.take(), host.wakes.take());
    Ran { code, out: printed.out.take(), notes: printed.notes.take(), calls, wakes }
}

fn talk() -> Log {
    let mut log = Log::new();
    log.begin(1, "one").text(1, "Hel").text(1, "lo").end(1, DONE);
    log
}

const UNTIL_IDLE: AttachArgs = AttachArgs { wake: false, until_idle: true, approve: None };

#[tokio::test]
async fn a_broken_socket_is_resumed_by_its_cursor_and_no_event_comes_twice() {
    let log = talk();
    let sockets = || {
        vec![
            Ok(vec![
                Step::Item(log.snapshot(2, 1)),
                Step::Item(log.synchronized(2, 1)),
                Step::Item(log.events(2..4)),
                Step::End(None),
            ]),
            Err(HostError::Unreachable("the gateway restarts".to_owned())),
            Ok(vec![
                Step::Item(log.resumed(4, 2)),
                Step::Item(log.events(3..6)),
                Step::Item(log.synchronized(6, 2)),
            ]),
        ]
    };
    let ran = run(sockets(), UNTIL_IDLE, true).await;
    assert_eq!(ran.code.as_ref().unwrap(), &exit::DONE);
    assert_eq!(ran.cursors(), [None, Some(log.cursor(4, 1))]);
    let lines = ran.json();
    let seqs: Vec<_> = lines.iter().filter_map(|line| line["event"]["seq"].as_u64()).collect();
    let expected: Vec<_> = log.0[2..].iter().map(|event| event.seq.0).collect();
    assert_eq!(seqs, expected);
    let kinds: Vec<_> = lines
        .iter()
        .filter(|line| line["type"] != "event")
        .map(|line| line["state"].as_str().or_else(|| line["type"].as_str()).unwrap())
        .collect();
    let expected = ["connected", "snapshot", "synchronized", "lost", "lost", "connected"];
    assert_eq!(kinds[..6], expected);
    assert_eq!(kinds[6..], ["synchronized"]);

    let ran = run(sockets(), UNTIL_IDLE, false).await;
    // A line that was open when the socket broke is ended by the notice.
    assert_eq!(ran.out, "thread with shell\n> one\nHel\nlo\n── done\n");
    assert!(ran.notes[0].starts_with("connection lost, trying again in 0."), "{:?}", ran.notes);
}

#[tokio::test]
async fn a_prompt_whose_answer_was_lost_is_sent_again_under_its_id() {
    let mut log = Log::new();
    let first = vec![
        Step::Item(log.snapshot(1, 1)),
        Step::Item(log.synchronized(1, 1)),
        Step::Input(Input::Line("hello".to_owned())),
        Step::Sent("thread.prompt"),
        Step::End(None),
    ];
    log.begin(1, "hello").end(1, DONE);
    let second = vec![
        Step::Item(log.resumed(1, 1)),
        Step::Item(log.synchronized(1, 1)),
        Step::Answer("thread.prompt", json!({ "seq": log.0[1].seq, "changed": true })),
        Step::Item(log.events(1..4)),
        Step::Input(Input::End),
    ];
    let ran = run(vec![Ok(first), Ok(second)], AttachArgs::default(), true).await;
    assert_eq!(ran.code.unwrap(), exit::DONE);
    let prompt = |(_, call): &(usize, Call)| {
        if let Call::ThreadPrompt(call) = call { Some(call.prompt.client) } else { None }
    };
    let prompts: Vec<_> = ran.calls.iter().filter_map(prompt).collect();
    assert_eq!(prompts, [client(9), client(9)]);
}

#[tokio::test]
async fn an_environment_that_falls_asleep_ends_it_or_is_woken() {
    let log = talk();
    let asleep = || {
        Ok(vec![
            Step::Item(log.snapshot(3, 1)),
            Step::Item(log.synchronized(3, 1)),
            Step::End(Some(4503)),
        ])
    };
    let ran = run(vec![asleep()], UNTIL_IDLE, true).await;
    assert_eq!(ran.code.as_ref().unwrap(), &exit::ASLEEP);
    let last = ran.json().pop().unwrap();
    assert_eq!(last, json!({ "type": "connection", "state": "asleep" }));
    assert_eq!(ran.wakes, [false]);

    let suspended = HostError::Asleep { phase: Some(Phase::Suspended) };
    let ran = run(vec![Err(suspended)], AttachArgs::default(), false).await;
    assert_eq!(ran.code.unwrap(), exit::ASLEEP);

    let back = vec![
        Step::Item(log.resumed(3, 2)),
        Step::Item(log.events(3..6)),
        Step::Item(log.synchronized(6, 2)),
    ];
    let wake = AttachArgs { wake: true, ..UNTIL_IDLE };
    let ran = run(vec![asleep(), Ok(back)], wake, true).await;
    assert_eq!(ran.code.unwrap(), exit::DONE);
    assert_eq!(ran.wakes, [true, true]);
}

#[tokio::test]
async fn what_cannot_be_mended_by_waiting_is_an_error() {
    let unknown = Problem::new(Code::NotFound).detail("There is no such thread.");
    let ran = run(vec![Ok(vec![Step::Refuse(unknown)])], AttachArgs::default(), false).await;
    assert!(format!("{:#}", ran.code.unwrap_err()).contains("There is no such thread."));

    let revoked = Ok(vec![Step::End(Some(4411))]);
    let ran = run(vec![revoked], AttachArgs::default(), false).await;
    assert!(format!("{:#}", ran.code.unwrap_err()).contains("revoked"));

    let nobody = HostError::Unreachable("nobody there".to_owned());
    let ran = run(vec![Err(nobody)], AttachArgs::default(), false).await;
    assert!(format!("{:#}", ran.code.unwrap_err()).contains("nobody there"));
}

#[tokio::test]
async fn an_expired_token_is_renewed_without_a_word() {
    let log = talk();
    let first = vec![
        Step::Item(log.snapshot(3, 1)),
        Step::Item(log.synchronized(3, 1)),
        Step::End(Some(4412)),
    ];
    let second = vec![
        Step::Item(log.resumed(3, 1)),
        Step::Item(log.events(3..6)),
        Step::Item(log.synchronized(6, 1)),
    ];
    let ran = run(vec![Ok(first), Ok(second)], UNTIL_IDLE, false).await;
    assert_eq!(ran.code.unwrap(), exit::DONE);
    assert_eq!(ran.notes, [""; 0]);
}

#[tokio::test]
async fn a_deleted_thread_ends_it() {
    let log = talk();
    let deleted = ThreadItem::Deleted { seq: log.0[5].seq.next() };
    let steps = || Ok(vec![Step::Item(log.snapshot(6, 1)), Step::Item(deleted.clone())]);
    let ran = run(vec![steps()], AttachArgs::default(), false).await;
    assert_eq!(ran.code.unwrap(), exit::DONE);
    assert!(ran.out.ends_with("the thread was deleted\n"));
    let ran = run(vec![steps()], UNTIL_IDLE, false).await;
    assert_eq!(ran.code.unwrap(), exit::NOT_COMPLETED);
}

#[tokio::test]
async fn a_person_can_leave_while_the_host_is_away() {
    let log = talk();
    let first = vec![Step::Item(log.snapshot(6, 1)), Step::Input(Input::End), Step::End(None)];
    // The loop may see the socket's end before the input: then it waits, and leaves from there.
    let ran = run(vec![Ok(first)], AttachArgs::default(), false).await;
    assert_eq!(ran.code.unwrap(), exit::DONE);
}
