//! What `attach` decides: which thread is shown, what is sent, what a person is told, and when it
//! ends. Pure.
//!
//! The link says what it knows ([`View`]) and this says what follows: [`Session::poll_act`] is to be
//! done, [`Session::poll_said`] is to be shown, [`Session::finished`] is the end.

mod calls;
mod lists;
mod typed;

use std::{collections::VecDeque, sync::Arc};

use wakeful_link::{
    ConnectionState, DataStatus, Failure, FailureClass, Instant, shell::ShellState,
    threads::ThreadState,
};
use wakeful_wire::{
    Timestamp,
    rpc::{Call, Outcome, RequestId, Seq, ShellRow, ThreadId},
};

use super::{
    args::AttachArgs,
    change::Change,
    exit,
    harmless::one_line,
    line::{self, Facts},
    outbox::{Outbox, Sending},
    pick::{LIST_WAIT, Picked, Search, Wanted},
    screen::Connection,
    shown::Shown,
    standing::{Manner, Sight, Standing, Turn},
};

pub(super) use typed::Moment;

/// The longest reason that is shown, in characters.
const REASON_MAX: usize = 2_000;

/// Who attaches, and to what.
#[derive(Debug)]
pub(super) struct Setting {
    /// What the host is called.
    pub(super) name: String,
    /// The thread.
    pub(super) wanted: Wanted,
    /// How.
    pub(super) options: AttachArgs,
    /// Whether a person types here.
    pub(super) interactive: bool,
    /// Whether it is shown on a terminal.
    pub(super) screen: bool,
}

/// What a person does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// A typed line.
    Line(String),
    /// The end of what is typed.
    End,
    /// An interrupt.
    Interrupt,
    /// A signal to end.
    Terminated,
    /// The window has another size.
    Resized,
}

/// What the link knows at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    /// The link's clock.
    pub(super) now: Instant,
    /// The connection; nothing while the host is not known.
    pub(super) connection: Option<&'a ConnectionState>,
    /// Why the host is not known: what keeps its platform from saying.
    pub(super) platform: Option<&'a Failure>,
    /// The host's list of threads.
    pub(super) shell: Option<&'a ShellState>,
    /// The shown thread.
    pub(super) thread: Option<&'a ThreadState>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Act {
    /// Make this call; its outcome comes back with the number.
    Call(Sending, Box<Call>),
    /// Look at this thread, and no longer at the one before.
    Show(ThreadId),
    /// Read a page of earlier content of this thread.
    LoadOlder(ThreadId),
    /// A person needs the host.
    Wake,
    /// Connect now.
    Retry,
    /// A person is there.
    Active,
}

/// What is to be shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Said {
    /// What is new in the thread.
    Changes(Vec<Change>),
    /// A line on the side.
    Note(String),
    /// How it stands with the host; with a sentence for people.
    Standing(Connection, Option<String>),
}

/// How it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// With this exit code.
    Code(u8),
    /// The thread is not in the list, which leaves some out.
    NotListed,
    /// It does not work, for this reason.
    Failed(String),
}

/// One `attach`.
#[derive(Debug)]
pub(super) struct Session {
    name: String,
    options: AttachArgs,
    interactive: bool,
    screen: bool,
    /// What is looked for, and since when.
    wanted: Option<(Wanted, Option<Instant>)>,
    shown: Option<Shown>,
    standing: Standing,
    generation: u64,
    outbox: Outbox,
    /// Permissions that the rule has dealt with, as long as they wait.
    ruled: Vec<RequestId>,
    interrupted: Option<Instant>,
    /// The newest event that a call of ours has caused: it must have been seen before the thread
    /// counts as idle.
    caused: Seq,
    /// The threads as they were last listed here.
    listed: Vec<ThreadId>,
    acts: VecDeque<Act>,
    said: VecDeque<Said>,
    end: Option<End>,
}

impl Session {
    /// Begins.
    pub(super) fn new(setting: Setting) -> Self {
        let Setting { name, wanted, options, interactive, screen } = setting;
        let stays = interactive && !options.until_idle;
        let hint = Said::Note("`/help` says what can be told here".to_owned());
        Self {
            name,
            options,
            interactive,
            screen,
            wanted: Some((wanted, None)),
            shown: None,
            standing: Standing::new(Manner {
                wakes: options.wake,
                stays,
                waits: options.until_idle,
            }),
            generation: 0,
            outbox: Outbox::default(),
            ruled: Vec::new(),
            interrupted: None,
            caused: Seq::ZERO,
            listed: Vec::new(),
            acts: VecDeque::new(),
            said: interactive.then_some(hint).into_iter().collect(),
            end: None,
        }
    }

    /// The shown thread.
    pub(super) fn thread(&self) -> Option<ThreadId> {
        self.shown.as_ref().map(Shown::thread)
    }

    /// What is to be done next.
    pub(super) fn poll_act(&mut self) -> Option<Act> {
        self.acts.pop_front()
    }

    /// What is to be shown next.
    pub(super) fn poll_said(&mut self) -> Option<Said> {
        self.said.pop_front()
    }

    /// When to look again at the latest.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let list = match &self.wanted {
            Some((_, Some(since))) => Some(since.after(LIST_WAIT)),
            Some((_, None)) | None => None,
        };
        Instant::earliest([self.standing.poll_timeout(), list])
    }

    fn note(&mut self, text: impl Into<String>) {
        self.said.push_back(Said::Note(text.into()));
    }

    fn ends(&mut self, end: End) {
        self.end.get_or_insert(end);
    }

    /// Takes in what the link knows.
    pub(super) fn look(&mut self, view: &View<'_>) {
        let shows = self.shown.as_ref().is_some_and(Shown::is_told);
        let sight =
            Sight { now: view.now, connection: view.connection, platform: view.platform, shows };
        for turn in self.standing.look(sight) {
            match turn {
                Turn::Say(connection, text) => {
                    self.said.push_back(Said::Standing(connection, text));
                }
                Turn::Wake => self.acts.push_back(Act::Wake),
                Turn::EndsAsleep => self.ends(End::Code(exit::ASLEEP)),
                Turn::Ends(why) => self.ends(End::Failed(why)),
            }
        }
        let generation = view.connection.map_or(0, |connection| connection.generation);
        if std::mem::replace(&mut self.generation, generation) != generation {
            // A host that comes back from an older copy numbers anew.
            self.caused = Seq::ZERO;
        }
        self.pick(view);
        if let Some(state) = view.thread {
            self.see(state);
        }
        self.rule();
        self.send();
    }

    fn pick(&mut self, view: &View<'_>) {
        let (Some(connection), Some(shell), Some((wanted, since))) =
            (view.connection, view.shell, &mut self.wanted)
        else {
            return;
        };
        let since = *since.get_or_insert(view.now);
        let kept_will_do = self.screen && self.interactive;
        let search = Search { wanted, kept_will_do, name: &self.name, since };
        match search.pick(view.now, connection, shell) {
            Ok(Picked::Thread(thread)) => self.show(thread),
            Ok(Picked::Later) => {}
            Ok(Picked::NotListed) => self.ends(End::NotListed),
            Err(error) => self.ends(End::Failed(format!("{error:#}"))),
        }
    }

    /// Shows this thread from now on.
    fn show(&mut self, thread: ThreadId) {
        self.wanted = None;
        self.shown = Some(Shown::new(thread, self.screen && self.interactive));
        self.ruled.clear();
        self.interrupted = None;
        self.acts.push_back(Act::Show(thread));
        let dropped = self.outbox.drop_unsent(|call| matches!(call, Call::ThreadPrompt(_)));
        if dropped > 0 {
            self.note("what was asked for and not sent yet is dropped, but for prompts");
        }
    }

    /// The thread cannot be looked at.
    pub(super) fn handle_not_shown(&mut self, failure: &Failure) {
        self.ends(End::Failed(one_line(&failure.detail, REASON_MAX)));
    }

    fn see(&mut self, state: &ThreadState) {
        let Some(shown) = &mut self.shown else { return };
        let (was_told, mut changes) = (shown.is_told(), Vec::new());
        shown.look(state, &mut changes);
        let late = shown.look_earlier(state, &mut changes);
        let gone = shown.is_gone();
        let refused = shown.error().filter(|error| error.class() == FailureClass::Blocked);
        let refused = refused.map(|error| one_line(&error.detail, REASON_MAX));
        let thread = shown.thread();
        if !changes.is_empty() {
            self.said.push_back(Said::Changes(changes));
        }
        if let Some(why) = late {
            self.note(format!("what is earlier cannot be had: {}", one_line(&why, REASON_MAX)));
        }
        if gone && !was_told {
            self.ends(End::Failed(format!("there is no thread {thread}")));
        } else if gone {
            let left = if self.options.until_idle { exit::NOT_COMPLETED } else { exit::DONE };
            self.ends(End::Code(left));
        }
        if let Some(why) = refused {
            self.ends(End::Failed(why));
        }
    }

    /// How it ends, if it does now.
    pub(super) fn finished(&self) -> Option<End> {
        if let Some(end) = &self.end {
            return Some(end.clone());
        }
        let shown = self.shown.as_ref()?;
        if !self.options.until_idle || !self.outbox.is_empty() || shown.seq() < self.caused {
            return None;
        }
        shown.idle().map(|outcome| match outcome {
            None | Some(Outcome::Completed { .. }) => End::Code(exit::DONE),
            Some(
                Outcome::Cancelled { .. } | Outcome::Failed { .. } | Outcome::Cut | Outcome::Other,
            ) => End::Code(exit::NOT_COMPLETED),
        })
    }

    /// The connection line, and whether it changes by time alone.
    pub(super) fn line(
        &self,
        now: Instant,
        clock: Timestamp,
        connection: Option<&ConnectionState>,
    ) -> (String, bool) {
        let shown = self.shown.as_ref();
        line::line(&Facts {
            name: &self.name,
            now,
            clock,
            connection,
            status: shown.map_or(DataStatus::Empty, Shown::status),
            error: shown.and_then(Shown::error),
            shows: shown.is_some_and(Shown::is_told),
            running_since: shown.and_then(Shown::running_since),
            pending: shown.map_or(0, |shown| shown.pending().len()),
            queued: shown.map_or(0, |shown| shown.queue().len()),
            unconfirmed: self.outbox.len(),
        })
    }
}

/// The threads that `/threads` lists, the newest first.
pub(super) type Rows = Vec<Arc<ShellRow>>;
