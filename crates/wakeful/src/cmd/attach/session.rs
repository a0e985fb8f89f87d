//! What `attach` decides: what is sent, what a person is told, and when it ends. Pure.

use std::time::Duration;

use tokio::time::Instant;
use wakeful_wire::{
    Problem,
    rpc::{
        AnswerPermission, Call, CallId, ClientId, Outcome, Prompt, Remember, RequestId, Seq, Taken,
        ThreadCancel, ThreadItem, ThreadPrompt, ThreadSubscribe,
    },
};

use super::{
    answer::Typed,
    args::AttachArgs,
    change::Change,
    exit,
    harmless::one_line,
    outbox::{Full, Outbox},
    state::Following,
};

/// Within this time a second interrupt leaves.
const TWICE: Duration = Duration::from_secs(2);

/// What a person does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// A typed line.
    Line(String),
    /// The end of what is typed.
    End,
    /// An interrupt.
    Interrupt,
}

/// What comes of an input or an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reaction {
    /// Nothing to say.
    Nothing,
    /// Something to say on the side.
    Note(String),
    /// It ends, with this exit code.
    Leave(u8),
}

/// One `attach`.
#[derive(Debug)]
pub(super) struct Session {
    following: Following,
    outbox: Outbox,
    options: AttachArgs,
    /// Whether a person types here.
    interactive: bool,
    /// Permissions that the rule has dealt with, as long as they wait.
    ruled: Vec<RequestId>,
    interrupted: Option<Instant>,
    /// The newest event that a call of ours has caused: it must have been seen before the thread
    /// counts as idle.
    caused: Seq,
}

impl Session {
    /// Follows a thread.
    pub(super) fn new(following: Following, options: AttachArgs, interactive: bool) -> Self {
        Self {
            following,
            outbox: Outbox::default(),
            options,
            interactive,
            ruled: Vec::new(),
            interrupted: None,
            caused: Seq::ZERO,
        }
    }

    /// What is followed.
    pub(super) const fn following(&self) -> &Following {
        &self.following
    }

    /// How it is followed.
    pub(super) const fn options(&self) -> AttachArgs {
        self.options
    }

    /// The subscription that a new socket begins with.
    pub(super) fn subscribe(&self) -> Call {
        let (thread, cursor) = (self.following.thread(), self.following.cursor());
        Call::ThreadSubscribe(ThreadSubscribe { thread, cursor })
    }

    /// Takes in an item of the subscription.
    pub(super) fn handle_item(&mut self, item: ThreadItem) -> Vec<Change> {
        let changes = self.following.handle_item(item);
        self.rule();
        changes
    }

    /// Answers whatever waits, where a rule says how. Each permission once, also if the host does
    /// not take the answer.
    fn rule(&mut self) {
        let Some(approve) = self.options.approve else { return };
        let following = &self.following;
        self.ruled.retain(|request| following.is_pending(*request));
        for pending in following.pending() {
            if self.ruled.contains(&pending.request) {
                continue;
            }
            if let Some(option) = approve.choose(&pending.options) {
                let answer = answer_of(following, pending.request, option.id.clone(), None);
                // Where there is no room it is tried again with the next item.
                if self.outbox.put(answer).is_err() {
                    return;
                }
            }
            self.ruled.push(pending.request);
        }
    }

    /// Takes in what a person does.
    pub(super) fn handle_input(
        &mut self,
        input: Input,
        now: Instant,
        fresh: impl FnOnce() -> ClientId,
    ) -> Reaction {
        match input {
            Input::Line(line) => self.typed(&line, fresh),
            Input::End => Reaction::Leave(exit::DONE),
            Input::Interrupt => self.interrupt(now),
        }
    }

    fn typed(&mut self, line: &str, fresh: impl FnOnce() -> ClientId) -> Reaction {
        let thread = self.following.thread();
        let call = match Typed::read(line, !self.following.pending().is_empty()) {
            Typed::Nothing => return Reaction::Nothing,
            Typed::Prompt(text) => {
                Call::ThreadPrompt(ThreadPrompt { thread, prompt: Prompt::text(fresh(), text) })
            }
            Typed::Option(number, remember) => {
                let Some(oldest) = self.following.pending().first() else {
                    return Reaction::Nothing;
                };
                let request = oldest.request;
                let answers = |call: &Call| matches!(call, Call::ThreadAnswer(answer) if answer.request == request);
                if self.outbox.any(answers) {
                    return Reaction::Note("that is answered already, and on its way".to_owned());
                }
                let option = number.checked_sub(1).and_then(|place| oldest.options.get(place));
                let Some(option) = option else {
                    let most = oldest.options.len();
                    return Reaction::Note(format!("answer with a number from 1 to {most}"));
                };
                let remember = remember.then_some(Remember::Thread);
                answer_of(&self.following, request, option.id.clone(), remember)
            }
        };
        self.put(call)
    }

    fn put(&mut self, call: Call) -> Reaction {
        match self.outbox.put(call) {
            Ok(()) => Reaction::Nothing,
            Err(Full) => {
                Reaction::Note("too much waits for the host; that was not taken".to_owned())
            }
        }
    }

    fn interrupt(&mut self, now: Instant) -> Reaction {
        let again = self.interrupted.is_some_and(|last| now.duration_since(last) < TWICE);
        if again || !self.interactive {
            return Reaction::Leave(exit::INTERRUPTED);
        }
        self.interrupted = Some(now);
        let Some(turn) = self.following.running() else {
            return Reaction::Note("nothing runs; press Ctrl-C again to leave".to_owned());
        };
        let (thread, turn) = (self.following.thread(), Some(turn));
        let cancel = Call::ThreadCancel(ThreadCancel { thread, turn });
        if !self.outbox.any(|waiting| *waiting == cancel)
            && let Reaction::Note(full) = self.put(cancel)
        {
            return Reaction::Note(full);
        }
        Reaction::Note("the turn is cancelled; press Ctrl-C again to leave".to_owned())
    }

    /// The next call to be sent. Nothing until it is known how the thread stands: what has lost its
    /// purpose meanwhile is not sent.
    pub(super) fn next_call(&mut self) -> Option<&Call> {
        if !self.following.is_synchronized() {
            return None;
        }
        let following = &self.following;
        self.outbox.drop_unsent(|call| has_purpose(following, call));
        self.outbox.unsent()
    }

    /// That call is on its way.
    pub(super) fn handle_sent(&mut self, id: CallId) {
        self.outbox.handle_sent(id);
    }

    /// A call was answered.
    pub(super) fn handle_answer(
        &mut self,
        id: CallId,
        answer: Result<Option<Taken>, Problem>,
    ) -> Reaction {
        if self.outbox.handle_answer(id).is_none() {
            return Reaction::Nothing;
        }
        match answer {
            Ok(taken) => {
                self.caused = self.caused.max(taken.map_or(Seq::ZERO, |taken| taken.seq));
                Reaction::Nothing
            }
            Err(problem) => {
                let why = problem.detail.as_deref().unwrap_or(&problem.title);
                Reaction::Note(format!("not taken: {}", one_line(why, 2_000)))
            }
        }
    }

    /// The socket is gone.
    pub(super) fn handle_lost(&mut self) {
        self.following.handle_lost();
        self.outbox.handle_lost();
        self.caused = Seq::ZERO;
    }

    /// With which code it ends by itself, if it does now.
    pub(super) fn finished(&self) -> Option<u8> {
        if self.following.is_gone() {
            return Some(if self.options.until_idle { exit::NOT_COMPLETED } else { exit::DONE });
        }
        if !self.options.until_idle || !self.outbox.is_empty() || self.following.seq() < self.caused
        {
            return None;
        }
        self.following.idle().map(|outcome| match outcome {
            None | Some(Outcome::Completed { .. }) => exit::DONE,
            Some(
                Outcome::Cancelled { .. } | Outcome::Failed { .. } | Outcome::Cut | Outcome::Other,
            ) => exit::NOT_COMPLETED,
        })
    }
}

fn answer_of(
    following: &Following,
    request: RequestId,
    option: String,
    remember: Option<Remember>,
) -> Call {
    let thread = following.thread();
    Call::ThreadAnswer(AnswerPermission { thread, request, option, remember })
}

fn has_purpose(following: &Following, call: &Call) -> bool {
    if let Call::ThreadAnswer(answer) = call {
        following.is_pending(answer.request)
    } else if let Call::ThreadCancel(cancel) = call {
        cancel.turn.is_none() || cancel.turn == following.running()
    } else {
        true
    }
}
