//! A boundary over real sessions, routed as a parent does it, with the hosts' side by hand.

use std::collections::BTreeMap;

use serde_json::Value;
use wakeful_wire::{
    Code, Problem,
    rpc::{Call, CallId, ClientFrame, Empty, ServerFrame, ShellSubscribe, ThreadRename},
};

use crate::{
    AttemptId, Instant,
    boundary::{Action, Boundary, OnFailure, SubscriptionId},
    session::{Session, SessionEvent, tests::sample},
};

/// Two sessions, one after the other.
pub(super) const A: AttemptId = AttemptId(1);
pub(super) const B: AttemptId = AttemptId(2);

#[derive(Debug, Default)]
pub(super) struct Bench {
    pub(super) now: Instant,
    pub(super) boundary: Boundary,
    sessions: BTreeMap<AttemptId, Session>,
    log: Vec<Action>,
    sent: Vec<(AttemptId, ClientFrame)>,
}

impl Bench {
    /// With a session that is ready and current.
    pub(super) fn connected() -> Self {
        let mut bench = Self::default();
        bench.publish(A);
        bench
    }

    /// A session becomes ready and the current one.
    pub(super) fn publish(&mut self, attempt: AttemptId) {
        self.sessions.insert(attempt, sample::ready(self.now));
        self.boundary.handle_published(attempt);
        self.settle();
    }

    /// The current session is taken away. Its socket may still deliver.
    pub(super) fn unpublish(&mut self) {
        self.boundary.handle_unpublished();
        self.settle();
    }

    /// A host says something on a socket.
    pub(super) fn says(&mut self, attempt: AttemptId, frame: &ServerFrame) {
        let session = self.sessions.get_mut(&attempt).unwrap();
        session.handle_frame(self.now, &sample::text(frame)).unwrap();
        self.settle();
    }

    pub(super) fn item(&mut self, attempt: AttemptId, id: CallId, item: impl Into<Value>) {
        self.says(attempt, &ServerFrame::Item { id, item: item.into() });
    }

    pub(super) fn refuses(&mut self, attempt: AttemptId, id: CallId, code: Code) {
        self.says(attempt, &ServerFrame::Error { id, problem: Problem::new(code) });
    }

    /// Time passes, to the next deadline and over each one on the way.
    pub(super) fn pass(&mut self, ms: u64) {
        let until = Instant(self.now.0 + ms);
        while let Some(at) = self.boundary.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.boundary.handle_timeout(self.now);
            self.settle();
        }
        self.now = until;
    }

    /// A subscription whose owner always answers with the same input, asked for it once.
    pub(super) fn subscribed(&mut self, on_failure: OnFailure) -> (SubscriptionId, CallId) {
        let subscription = self.boundary.subscribe(on_failure).unwrap();
        self.settle();
        let id = self.build(subscription);
        (subscription, id)
    }

    /// Its owner is asked for its input and gives it. Returns the call on the current session.
    #[track_caller]
    pub(super) fn build(&mut self, subscription: SubscriptionId) -> CallId {
        self.settle();
        let log = self.log();
        assert!(log.contains(&Action::Build { subscription }), "{log:?}");
        self.boundary.handle_input(subscription, list());
        self.settle();
        let log = self.log();
        assert_eq!(log, [Action::Started { subscription }]);
        let (_, frame) = self.sent().pop().unwrap();
        let ClientFrame::Request { id, .. } = frame else { panic!("{frame:?}") };
        id
    }

    /// Routes whatever waits.
    pub(super) fn settle(&mut self) {
        loop {
            let mut moved = false;
            while let Some(action) = self.boundary.poll_action() {
                moved = true;
                self.carry_out(action);
            }
            for (attempt, session) in &mut self.sessions {
                while let Some(text) = session.poll_frame() {
                    self.sent.push((*attempt, serde_json::from_str(&text).unwrap()));
                }
                while let Some(event) = session.poll_event() {
                    if let SessionEvent::Call(event) = event {
                        moved = true;
                        self.boundary.handle_event(self.now, *attempt, event);
                    }
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn carry_out(&mut self, action: Action) {
        if let Action::Send { attempt, sending, call } = action {
            let sent = self.sessions.get_mut(&attempt).unwrap().call(&call);
            self.boundary.handle_sent(self.now, sending, sent);
        } else if let Action::Cancel { attempt, id } = action {
            self.sessions.get_mut(&attempt).unwrap().cancel(id);
        } else {
            self.log.push(action);
        }
    }

    /// What was reported since the last look.
    pub(super) fn log(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.log)
    }

    /// What was sent since the last look.
    pub(super) fn sent(&mut self) -> Vec<(AttemptId, ClientFrame)> {
        std::mem::take(&mut self.sent)
    }

    /// What became of the session's own calls.
    pub(super) fn session(&mut self, attempt: AttemptId) -> &mut Session {
        self.sessions.get_mut(&attempt).unwrap()
    }
}

pub(super) fn command() -> Call {
    Call::Activity(Empty {})
}

pub(super) fn rename(title: &str) -> Call {
    Call::ThreadRename(ThreadRename {
        thread: "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e50".parse().unwrap(),
        title: title.to_owned(),
    })
}

pub(super) fn list() -> Call {
    Call::ShellSubscribe(ShellSubscribe::default())
}
