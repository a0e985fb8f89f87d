//! The task of one thread that an agent works in.

use std::{collections::VecDeque, sync::Arc};

use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    time::Instant,
};
use wakeful_wire::rpc::{Outcome, Prompt, ThreadId, TurnId};

use super::{Lease, Shared, slot::Slot};
use crate::{
    agent::port::{Opening, Order, SAID_MAX, Said, Session},
    thread::command::AgentUpdate,
};

/// A turn that the log says has begun.
pub(super) struct Turn {
    pub(super) id: TurnId,
    /// Until the agent has it.
    prompt: Option<Prompt>,
    place: Option<OwnedSemaphorePermit>,
    /// Dropped with the turn, which lets the environment sleep.
    _lease: Box<dyn Lease>,
}

pub(super) struct Work {
    pub(super) shared: Arc<Shared>,
    pub(super) thread: ThreadId,
    slot: Arc<Slot>,
    session: Option<Session>,
    /// Orders that the session has not taken yet.
    pub(super) orders: VecDeque<Order>,
    /// The session was told to end, or has ended; what it still says is taken.
    ending: bool,
    pub(super) turn: Option<Turn>,
    pub(super) heard: Instant,
}

/// What to do next.
enum Step {
    Wanted,
    Stop,
    Place(OwnedSemaphorePermit),
    Taken(bool),
    Said(Vec<Said>),
    Idle,
}

impl Work {
    pub(super) fn new(shared: Arc<Shared>, thread: ThreadId, slot: Arc<Slot>) -> Self {
        Self {
            shared,
            thread,
            slot,
            session: None,
            orders: VecDeque::new(),
            ending: false,
            turn: None,
            heard: Instant::now(),
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            self.take_wanted().await;
            self.begin().await;
            self.show();
            let stopping = self.shared.stopping.is_cancelled();
            if self.session.is_none()
                && (stopping || self.turn.is_none())
                && (self.shared.retire(self.thread, &self.slot) || stopping)
            {
                return self.cut().await;
            }
            match self.step().await {
                Step::Wanted => {}
                Step::Stop | Step::Idle => self.end_session(),
                Step::Place(place) => {
                    if let Some(turn) = &mut self.turn {
                        turn.place = Some(place);
                    }
                }
                Step::Taken(true) => {}
                Step::Taken(false) => self.ending = true,
                Step::Said(said) if said.is_empty() => self.session_over().await,
                Step::Said(said) => self.heard(said).await,
            }
        }
    }

    /// Says where the thread stands, for whoever needs room.
    fn show(&self) {
        let idle = self.turn.is_none() && self.session.is_some() && !self.ending;
        self.slot.set(self.session.is_some(), idle.then_some(self.heard));
    }

    async fn step(&mut self) -> Step {
        let needs_place =
            self.turn.as_ref().is_some_and(|turn| turn.prompt.is_some() && turn.place.is_none());
        let places = Arc::clone(&self.shared.places);
        let idle_at = (self.turn.is_none() && self.session.is_some() && !self.ending)
            .then(|| self.heard + self.shared.limits.idle);
        let has_order = !self.orders.is_empty() && !self.ending;
        let stops = self.session.is_none() || !self.ending;
        let (said, orders) = match &mut self.session {
            Some(session) => (Some(&mut session.said), Some(session.orders.clone())),
            None => (None, None),
        };
        let queue = &mut self.orders;
        let send = async {
            let Some(orders) = orders else { return std::future::pending().await };
            let Ok(room) = orders.reserve().await else { return false };
            if let Some(order) = queue.pop_front() {
                room.send(order);
            }
            true
        };
        tokio::select! {
            biased;
            () = self.shared.stopping.cancelled(), if stops => Step::Stop,
            () = self.slot.changed() => Step::Wanted,
            taken = send, if has_order => Step::Taken(taken),
            said = next(said) => Step::Said(said),
            Ok(place) = places.acquire_owned(), if needs_place => Step::Place(place),
            () = at(idle_at) => Step::Idle,
        }
    }

    /// Takes over what is wanted.
    async fn take_wanted(&mut self) {
        let wanted = self.slot.take();
        if let Some((id, prompt, lease)) = wanted.start {
            self.turn = Some(Turn { id, prompt: Some(prompt), place: None, _lease: lease });
        }
        if let Some(id) = wanted.cancel {
            self.cancel(id).await;
        }
        // Without a session nobody waits for an answer, and a mode is asked for when one opens.
        if self.session.is_some() && !self.ending {
            for (request, option) in wanted.answers {
                self.orders.push_back(Order::Answer { request, option: Some(option) });
            }
            if let Some(mode) = wanted.mode {
                self.orders.push_back(Order::Mode { mode });
            }
        }
        if wanted.end {
            // A session that was asked to make room, and got a turn meanwhile, stays.
            let deleted = self.shared.reports.thread(self.thread).is_none();
            if deleted {
                self.turn = None;
            }
            if deleted || self.turn.is_none() {
                self.end_session();
            }
        }
    }

    async fn cancel(&mut self, id: TurnId) {
        match &self.turn {
            // The agent has not heard of it.
            Some(turn) if turn.id == id && turn.prompt.is_some() => {
                let ended = AgentUpdate::TurnEnded(Outcome::Cancelled { obeyed: true });
                self.end_turn(id, ended).await;
            }
            Some(turn) if turn.id == id => self.orders.push_back(Order::Cancel { turn: id }),
            Some(_) | None => {}
        }
    }

    /// Gives the turn to the agent, once it has a place and the agent is there.
    async fn begin(&mut self) {
        let Some(turn) = &self.turn else { return };
        if turn.prompt.is_none() || turn.place.is_none() || self.ending {
            return;
        }
        let id = turn.id;
        if self.session.is_none() {
            let Some(thread) = self.shared.reports.thread(self.thread) else {
                self.turn = None;
                return;
            };
            let Some(agent) = self.shared.agents.get(&thread.agent) else {
                let message = format!("there is no agent `{}` here", thread.agent);
                let ended = AgentUpdate::TurnEnded(Outcome::Failed { message });
                return self.end_turn(id, ended).await;
            };
            self.shared.make_room();
            self.session = Some(agent.open(Opening {
                thread: self.thread,
                project: thread.project,
                session: thread.session.map(|session| session.id),
                mode: thread.mode_wanted.or(thread.mode),
            }));
        }
        if let Some(prompt) = self.turn.as_mut().and_then(|turn| turn.prompt.take()) {
            self.orders.push_back(Order::Prompt { turn: id, prompt });
        }
    }

    fn end_session(&mut self) {
        if let Some(session) = &mut self.session
            && !self.ending
        {
            self.ending = true;
            // Taken at once or not at all: a full channel ends with the session, too.
            let _ended_already = session.orders.try_send(Order::End);
            let (closed, _) = mpsc::channel(1);
            session.orders = closed;
        }
    }

    /// The session said its last.
    async fn session_over(&mut self) {
        self.session = None;
        self.ending = false;
        // A prompt that it never took was never begun: the next session gets it.
        for order in std::mem::take(&mut self.orders) {
            if let Order::Prompt { turn: id, prompt } = order
                && let Some(turn) = self.turn.as_mut().filter(|turn| turn.id == id)
            {
                turn.prompt = Some(prompt);
            }
        }
        if let Some(turn) = self.turn.as_ref().filter(|turn| turn.prompt.is_none()) {
            let id = turn.id;
            self.end_turn(id, AgentUpdate::TurnEnded(Outcome::Cut)).await;
        }
    }

    /// The host stops: what has begun is cut.
    async fn cut(mut self) {
        if let Some(turn) = &self.turn {
            let id = turn.id;
            self.end_turn(id, AgentUpdate::TurnEnded(Outcome::Cut)).await;
        }
    }
}

/// What was said meanwhile, in order; nothing at all at the end of the session.
async fn next(said: Option<&mut mpsc::Receiver<Said>>) -> Vec<Said> {
    let Some(said) = said else { return std::future::pending().await };
    let mut all = Vec::new();
    let _count = said.recv_many(&mut all, SAID_MAX).await;
    all
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
