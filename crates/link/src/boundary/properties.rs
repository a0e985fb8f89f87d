//! A boundary under random sessions, hosts and callers.
//!
//! Old sockets go on delivering after they were replaced, hosts answer whatever is open in whatever
//! way, and owners answer late. What must hold is written at [`World`].

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};
use wakeful_wire::{
    Code, Problem,
    rpc::{
        Call, CallId, ClientFrame, Cursor, Epoch, Seq, ServerFrame, ShellSubscribe, ThreadRename,
    },
};

use super::{Action, Boundary, OnFailure, SubscriptionId, Token};
use crate::{
    AttemptId, Instant,
    session::{Session, SessionEvent, tests::sample},
};

#[derive(Debug, Clone)]
enum Step {
    Publish,
    Unpublish,
    Request,
    Stream,
    GiveUp(usize),
    Subscribe(u8),
    Unsubscribe(usize),
    Resubscribe(usize),
    Defect(usize),
    /// An owner answers the oldest question for its input.
    Build,
    /// The host says something on a session about the nth of its open calls.
    Host {
        session: usize,
        call: usize,
        how: u8,
    },
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Publish),
        1 => Just(Step::Unpublish),
        3 => Just(Step::Request),
        1 => Just(Step::Stream),
        1 => (0..8_usize).prop_map(Step::GiveUp),
        3 => (0..3_u8).prop_map(Step::Subscribe),
        1 => (0..8_usize).prop_map(Step::Unsubscribe),
        2 => (0..8_usize).prop_map(Step::Resubscribe),
        1 => (0..8_usize).prop_map(Step::Defect),
        6 => Just(Step::Build),
        12 => (0..3_usize, 0..8_usize, 0..8_u8)
            .prop_map(|(session, call, how)| Step::Host { session, call, how }),
        2 => (0..60_000_u64).prop_map(Step::Wait),
    ]
}

/// One socket, with the calls that its host has open.
#[derive(Debug)]
struct Socket {
    attempt: AttemptId,
    session: Session,
    open: Vec<(CallId, Call)>,
}

/// What is followed of one subscription.
#[derive(Debug, Default)]
struct Followed {
    /// How often its input was built. The call says it, and the host's items repeat it.
    builds: u64,
    /// Whether it was started, and on which session.
    on: Option<AttemptId>,
}

/// The parent's routing, the hosts, and what must hold:
///
/// - a request is sent at most once over all sessions, and has at most one outcome;
/// - what was given up or ended says nothing more;
/// - an item comes only on the current session, after "started", and of the input built last;
/// - nothing is sent to a session that is not the current one.
#[derive(Debug, Default)]
struct World {
    now: Instant,
    boundary: Boundary,
    sockets: Vec<Socket>,
    waiting: BTreeSet<Token>,
    tokens: Vec<Token>,
    titles: BTreeMap<String, u32>,
    subscriptions: BTreeMap<SubscriptionId, Followed>,
    to_build: Vec<SubscriptionId>,
    made: u64,
}

impl World {
    fn take(&mut self, step: Step) {
        match step {
            Step::Publish => {
                self.made += 1;
                let attempt = AttemptId(self.made);
                let session = sample::ready(self.now);
                self.sockets.push(Socket { attempt, session, open: Vec::new() });
                if self.sockets.len() > 3 {
                    self.sockets.remove(0);
                }
                self.boundary.handle_published(attempt);
                self.carry_out();
            }
            Step::Unpublish => {
                self.boundary.handle_unpublished();
                self.carry_out();
                assert!(self.waiting.is_empty(), "no request outlives its session");
            }
            Step::Request => {
                self.made += 1;
                let title = self.made.to_string();
                let thread = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e50".parse().unwrap();
                let call = Call::ThreadRename(ThreadRename { thread, title });
                let token = self.boundary.request(self.now, call);
                self.waits_for(token);
            }
            Step::Stream => {
                let call = Call::ShellSubscribe(ShellSubscribe::default());
                let token = self.boundary.stream(call);
                self.waits_for(token);
            }
            Step::GiveUp(at) => {
                if let Some(token) = self.tokens.get(at).copied() {
                    self.boundary.give_up(token);
                    self.waiting.remove(&token);
                }
            }
            Step::Subscribe(how) => {
                let (least, most) = (Duration::from_secs(1), Duration::from_secs(60));
                let on_failure = match how {
                    0 => OnFailure::Surface,
                    1 => OnFailure::Dormant,
                    _ => OnFailure::After { least, most },
                };
                if let Ok(id) = self.boundary.subscribe(on_failure) {
                    self.subscriptions.insert(id, Followed::default());
                }
            }
            Step::Unsubscribe(at) => {
                if let Some(id) = self.nth(at) {
                    self.boundary.unsubscribe(id);
                    self.subscriptions.remove(&id);
                }
            }
            Step::Resubscribe(at) => {
                if let Some(id) = self.nth(at) {
                    self.boundary.resubscribe(id);
                    self.subscriptions.get_mut(&id).unwrap().on = None;
                }
            }
            Step::Defect(at) => {
                if let Some(id) = self.nth(at) {
                    self.boundary.handle_defect(id, "unreadable");
                }
            }
            Step::Build => {
                if !self.to_build.is_empty() {
                    let id = self.to_build.remove(0);
                    self.build(id);
                }
            }
            Step::Host { session, call, how } => self.host_says(session, call, how),
            Step::Wait(ms) => {
                self.now = Instant(self.now.0 + ms);
                self.boundary.handle_timeout(self.now);
            }
        }
        self.carry_out();
        assert!(self.boundary.poll_timeout().is_none_or(|at| at > self.now));
    }

    fn waits_for(&mut self, token: Token) {
        self.tokens.insert(0, token);
        self.tokens.truncate(8);
        assert!(self.waiting.insert(token));
    }

    fn nth(&self, at: usize) -> Option<SubscriptionId> {
        self.subscriptions.keys().nth(at).copied()
    }

    fn build(&mut self, id: SubscriptionId) {
        let Some(followed) = self.subscriptions.get_mut(&id) else { return };
        followed.builds += 1;
        let cursor = Cursor { epoch: Epoch(id.0), seq: Seq(followed.builds) };
        let call = ShellSubscribe { cursor: Some(cursor), ..ShellSubscribe::default() };
        self.boundary.handle_input(id, Call::ShellSubscribe(call));
        // If nobody had asked any more, the built input is not what a later item is of.
        if !self.carry_out() {
            self.subscriptions.get_mut(&id).into_iter().for_each(|followed| followed.builds -= 1);
        }
    }

    fn host_says(&mut self, session: usize, call: usize, how: u8) {
        let Some(Socket { session, open, .. }) = self.sockets.get_mut(session) else { return };
        let Some((id, call)) = open.get(call).cloned() else { return };
        let problem = |code| ServerFrame::Error { id, problem: Problem::new(code) };
        let frame = match (how, call) {
            (0, _) => problem(Code::Internal),
            (1, _) => problem(Code::NotFound),
            (2, _) => problem(Code::Forbidden),
            (3, Call::ShellSubscribe(_)) => ServerFrame::End { id },
            (_, Call::ShellSubscribe(ShellSubscribe { cursor, .. })) => {
                ServerFrame::Item { id, item: json!(cursor) }
            }
            _ => ServerFrame::Response { id, result: Value::Null },
        };
        if !matches!(frame, ServerFrame::Item { .. }) {
            open.retain(|(other, _)| *other != id);
        }
        session.handle_frame(self.now, &sample::text(&frame)).unwrap();
    }

    /// Routes whatever waits. Returns whether anything was sent.
    fn carry_out(&mut self) -> bool {
        let mut sent = false;
        loop {
            let mut moved = false;
            while let Some(action) = self.boundary.poll_action() {
                moved = true;
                sent |= matches!(action, Action::Send { .. });
                self.act(action);
            }
            for Socket { attempt, session, open } in &mut self.sockets {
                while let Some(text) = session.poll_frame() {
                    let frame: ClientFrame = serde_json::from_str(&text).unwrap();
                    if let ClientFrame::Request { id, method, params } = frame {
                        assert_eq!(self.boundary.session(), Some(*attempt));
                        let call = Call::read(&method, params).unwrap();
                        if let Call::ThreadRename(ThreadRename { title, .. }) = &call {
                            let times = self.titles.entry(title.clone()).or_default();
                            *times += 1;
                            assert_eq!(*times, 1, "a command is sent once");
                        }
                        open.push((id, call));
                    }
                }
                while let Some(event) = session.poll_event() {
                    if let SessionEvent::Call(event) = event {
                        moved = true;
                        self.boundary.handle_event(self.now, *attempt, event);
                    }
                }
            }
            if !moved {
                return sent;
            }
        }
    }

    fn session(&mut self, attempt: AttemptId) -> &mut Session {
        assert_eq!(self.boundary.session(), Some(attempt), "nothing is for an old session");
        let socket = self.sockets.iter_mut().find(|socket| socket.attempt == attempt);
        &mut socket.unwrap().session
    }

    fn act(&mut self, action: Action) {
        let current = self.boundary.session();
        match action {
            Action::Send { attempt, sending, call } => {
                let sent = self.session(attempt).call(&call);
                self.boundary.handle_sent(self.now, sending, sent);
            }
            Action::Cancel { attempt, id } => self.session(attempt).cancel(id),
            Action::Finished { token, .. } => {
                assert!(self.waiting.remove(&token), "one outcome, of what is waited for");
            }
            Action::StreamItem { token, .. } => assert!(self.waiting.contains(&token)),
            Action::Build { subscription } => {
                self.subscriptions.get_mut(&subscription).unwrap().on = None;
                self.to_build.push(subscription);
            }
            Action::Started { subscription } => {
                let followed = self.subscriptions.get_mut(&subscription).unwrap();
                assert_eq!(std::mem::replace(&mut followed.on, current), None);
            }
            Action::Item { subscription, item } => {
                let followed = &self.subscriptions[&subscription];
                assert_eq!(followed.on, current, "of the current session");
                assert_eq!(item["seq"], followed.builds, "of the input that was built last");
            }
            Action::Lost { subscription } => {
                let followed = self.subscriptions.get_mut(&subscription).unwrap();
                assert!(followed.on.take().is_some(), "only what was started is lost");
            }
            Action::Failed { subscription, .. } => {
                self.subscriptions.get_mut(&subscription).unwrap().on = None;
            }
            Action::Over { subscription, .. } => {
                assert!(self.subscriptions.remove(&subscription).is_some(), "once");
            }
        }
    }
}

proptest! {
    #[test]
    fn requests_are_sent_once_and_items_are_of_the_current_session(
        steps in vec(step(), 0..200),
    ) {
        let mut world = World::default();
        for step in steps {
            world.take(step);
        }
        world.take(Step::Unpublish);
    }
}
