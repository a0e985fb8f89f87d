//! The ledger against a small model, with writes that fail and crashes between any two steps.

use std::{collections::BTreeMap, time::Duration};

use proptest::prelude::*;
use wakeful_wire::{
    HostSessionId, Timestamp,
    host::{Denial, Scope, Scopes, SessionEvent, SessionMethod},
};

use super::{
    CloseCause, Outcome, Session,
    ledger::{Effect, Issue, Ledger, SocketId, Write},
    testing::{key, session_id, user},
};

const SESSIONS_MAX: usize = 64;

#[derive(Debug, Clone)]
enum Step {
    Issue {
        client: u8,
        life: u64,
        replaces: bool,
    },
    /// Planned, but the file refuses it.
    FailedIssue {
        client: u8,
    },
    Extend {
        session: usize,
        life: u64,
    },
    Revoke {
        session: usize,
    },
    RevokeOthers {
        session: usize,
        of_subject: bool,
    },
    Connect {
        session: usize,
    },
    Disconnect {
        socket: usize,
    },
    Advance {
        by: u64,
    },
    /// The process ends and starts again on what was written.
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let session = 0..64_usize;
    prop_oneof![
        6 => (0..6_u8, 1..40_u64, prop::bool::weighted(0.1))
            .prop_map(|(client, life, replaces)| Step::Issue { client, life, replaces }),
        1 => (0..6_u8).prop_map(|client| Step::FailedIssue { client }),
        2 => (session.clone(), 1..40_u64).prop_map(|(session, life)| Step::Extend { session, life }),
        2 => session.clone().prop_map(|session| Step::Revoke { session }),
        1 => (session.clone(), any::<bool>())
            .prop_map(|(session, of_subject)| Step::RevokeOthers { session, of_subject }),
        6 => session.clone().prop_map(|session| Step::Connect { session }),
        4 => session.prop_map(|socket| Step::Disconnect { socket }),
        6 => (0..12_u64).prop_map(|by| Step::Advance { by }),
        1 => Just(Step::Crash),
    ]
}

/// Six clients: two keys, two subjects, two sets of scopes, not in every combination.
fn issue(n: u64, client: u8, life: u64, replaces: bool) -> Issue {
    let scopes = if client == 5 { vec![Scope::Read] } else { vec![Scope::Read, Scope::Write] };
    Issue {
        id: session_id(n),
        subject: user(if client.is_multiple_of(2) { "alice" } else { "bob" }),
        scopes: Scopes::from_iter(scopes),
        method: SessionMethod::Grant,
        key: key(client / 3),
        label: String::new(),
        lifetime: Duration::from_millis(life),
        replaces,
    }
}

/// What the rules say, written down as directly as they are read.
#[derive(Default)]
struct Model {
    sessions: Vec<Known>,
    sockets: Vec<Socket>,
}

struct Known {
    id: HostSessionId,
    client: (u8, bool, bool),
    expires_at: u64,
    is_revoked: bool,
}

struct Socket {
    id: SocketId,
    on: HostSessionId,
    closing: Option<CloseCause>,
}

fn class(client: u8) -> (u8, bool, bool) {
    (client / 3, client.is_multiple_of(2), client == 5)
}

impl Model {
    fn session(&self, id: HostSessionId) -> Option<&Known> {
        self.sessions.iter().find(|session| session.id == id)
    }

    fn holds(&self, id: HostSessionId, now: u64) -> bool {
        self.session(id).is_some_and(|s| !s.is_revoked && s.expires_at > now)
    }

    fn connections(&self, id: HostSessionId) -> u32 {
        u32::try_from(self.sockets.iter().filter(|socket| socket.on == id).count()).unwrap()
    }

    fn listed(&self, now: u64) -> Vec<(HostSessionId, u32)> {
        self.sessions
            .iter()
            .map(|s| (s, self.connections(s.id)))
            .filter(|(s, sockets)| !s.is_revoked && (s.expires_at > now || *sockets > 0))
            .map(|(s, sockets)| (s.id, sockets))
            .collect()
    }

    fn revoke(&mut self, which: impl Fn(&Known) -> bool) {
        for session in &mut self.sessions {
            if !session.is_revoked && which(session) {
                session.is_revoked = true;
                for socket in &mut self.sockets {
                    if socket.on == session.id {
                        socket.closing = socket.closing.or(Some(CloseCause::Revoked));
                    }
                }
            }
        }
    }

    fn issue(&mut self, id: HostSessionId, client: u8, expires_at: u64, replaces: bool, now: u64) {
        let client = class(client);
        if expires_at > now {
            for at in 0..self.sockets.len() {
                let on = self.session(self.sockets[at].on).map(|session| session.client);
                if self.sockets[at].closing.is_none() && on == Some(client) {
                    self.sockets[at].on = id;
                }
            }
        }
        if replaces {
            self.revoke(|session| session.client.1 == client.1);
        }
        self.sessions.push(Known { id, client, expires_at, is_revoked: false });
    }

    fn connect(&mut self, id: HostSessionId, socket: SocketId, now: u64) {
        let client = self.session(id).unwrap().client;
        let newest = self
            .sessions
            .iter()
            .rev()
            .find(|s| s.client == client && !s.is_revoked && s.expires_at > now)
            .unwrap();
        self.sockets.push(Socket { id: socket, on: newest.id, closing: None });
    }

    fn tick(&mut self, now: u64) {
        for at in 0..self.sockets.len() {
            if self.session(self.sockets[at].on).unwrap().expires_at <= now {
                let socket = &mut self.sockets[at];
                socket.closing = socket.closing.or(Some(CloseCause::Expired));
            }
        }
    }
}

/// The ledger with what a file would hold and what a follower of the list has heard.
struct System {
    ledger: Ledger,
    file: BTreeMap<HostSessionId, Session>,
    heard: BTreeMap<HostSessionId, u32>,
    told: BTreeMap<SocketId, CloseCause>,
}

impl System {
    fn new() -> Self {
        Self {
            ledger: Ledger::new([], SESSIONS_MAX),
            file: BTreeMap::new(),
            heard: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }

    fn change(&mut self, writes: &[Write], now: Timestamp) {
        for write in writes {
            match write {
                Write::Insert(session) => {
                    assert!(self.file.insert(session.id, session.clone()).is_none());
                }
                Write::Revoke { id, at } => self.file.get_mut(id).unwrap().revoked_at = Some(*at),
                Write::Extend { id, expires_at } => {
                    self.file.get_mut(id).unwrap().expires_at = *expires_at;
                }
                Write::Forget { id } => drop(self.file.remove(id)),
                Write::Connected { .. } | Write::UseGrant { .. } => unreachable!(),
            }
        }
        let effects = self.ledger.apply(writes, now);
        self.hear(effects);
    }

    fn hear(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Socket(socket, Outcome::Close(cause)) => {
                    assert!(self.told.insert(socket, cause).is_none(), "told to close once");
                }
                Effect::Socket(_, Outcome::Moved { from, to }) => assert_ne!(from, to),
                Effect::Listing(SessionEvent::Updated { session }) => {
                    self.heard.insert(session.id, session.connections);
                }
                Effect::Listing(SessionEvent::Removed { id }) => {
                    assert!(self.heard.remove(&id).is_some(), "removed once");
                }
                Effect::Record(Write::Connected { id, at }) => {
                    self.file.get_mut(&id).unwrap().last_connected_at = Some(at);
                }
                Effect::Listing(SessionEvent::Unknown) | Effect::Record(_) => unreachable!(),
            }
        }
    }
}

fn check(system: &System, model: &Model, now: u64) -> Result<(), TestCaseError> {
    let views = system.ledger.list(Timestamp(now));
    let listed: Vec<_> = views.iter().map(|view| (view.id, view.connections)).collect();
    prop_assert_eq!(&listed, &model.listed(now));
    let heard: Vec<_> = system.heard.iter().map(|(id, sockets)| (*id, *sockets)).collect();
    prop_assert_eq!(&heard, &listed, "what a follower heard is what is listed");
    for session in &model.sessions {
        let answer = system.ledger.holding(session.id, Timestamp(now));
        prop_assert_eq!(answer.is_ok(), model.holds(session.id, now));
        if session.is_revoked && session.expires_at > now {
            prop_assert_eq!(answer.err(), Some(Denial::SessionRevoked));
        }
    }
    for socket in &model.sockets {
        let watch = system.ledger.socket(socket.id).unwrap();
        prop_assert_eq!((watch.current().id, watch.closing()), (socket.on, socket.closing));
        prop_assert_eq!(system.told.get(&socket.id).copied(), socket.closing);
        // After a look at the clock nobody stands on credentials that are over.
        prop_assert_eq!(socket.closing.is_none(), model.holds(socket.on, now));
    }
    prop_assert!(system.ledger.poll_deadline().is_none_or(|at| at > Timestamp(now)));
    system.ledger.check_counts();
    Ok(())
}

fn run(steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut system, mut model) = (System::new(), Model::default());
    let mut now = 1_000;
    let mut issued = 0;
    for step in steps {
        let at = Timestamp(now);
        let pick = |model: &Model, n: usize| {
            let known = &model.sessions;
            (!known.is_empty()).then(|| known[n % known.len()].id)
        };
        match step {
            Step::Issue { client, life, replaces } => {
                issued += 1;
                let issue = issue(issued, *client, *life, *replaces);
                let Ok((session, writes)) = system.ledger.plan_issue(issue, at) else { continue };
                if writes.iter().any(|write| matches!(write, Write::Forget { .. })) {
                    // The bound has tests of its own.
                    continue;
                }
                system.change(&writes, at);
                model.issue(session.id, *client, now + life, *replaces, now);
            }
            Step::FailedIssue { client } => {
                let planned = system.ledger.plan_issue(issue(999, *client, 30, true), at);
                prop_assume!(planned.is_ok());
            }
            Step::Extend { session, life } => {
                let Some(id) = pick(&model, *session) else { continue };
                let planned = system.ledger.plan_extend(id, Duration::from_millis(*life), at);
                prop_assert_eq!(planned.is_ok(), model.holds(id, now));
                if let Ok((_, writes)) = planned {
                    system.change(&writes, at);
                    let known = model.sessions.iter_mut().find(|s| s.id == id).unwrap();
                    known.expires_at = known.expires_at.max(now + life);
                }
            }
            Step::Revoke { session } => {
                let Some(id) = pick(&model, *session) else { continue };
                let writes = system.ledger.plan_revoke(id, at);
                system.change(&writes, at);
                model.revoke(|session| session.id == id);
            }
            Step::RevokeOthers { session, of_subject } => {
                let Some(id) = pick(&model, *session) else { continue };
                let alice = user("alice");
                let subject = of_subject.then_some(&alice);
                let writes = system.ledger.plan_revoke_others(id, subject, at);
                system.change(&writes, at);
                model.revoke(|session| session.id != id && (!of_subject || session.client.1));
            }
            Step::Connect { session } => {
                let Some(id) = pick(&model, *session) else { continue };
                let before: Vec<_> = system.ledger.list(at);
                match system.ledger.connect(id, at) {
                    Ok((socket, effects)) => {
                        prop_assert!(model.holds(id, now));
                        system.hear(effects);
                        model.connect(id, socket, now);
                        let on = model.sockets.last().unwrap().on;
                        let was = before.iter().find(|view| view.id == on).unwrap();
                        let is = system.ledger.list(at).into_iter().find(|v| v.id == on).unwrap();
                        let expected =
                            if was.connections == 0 { Some(at) } else { was.last_connected_at };
                        prop_assert_eq!(is.last_connected_at, expected);
                    }
                    Err(_) => prop_assert!(!model.holds(id, now)),
                }
            }
            Step::Disconnect { socket } => {
                if model.sockets.is_empty() {
                    continue;
                }
                let socket = model.sockets.remove(socket % model.sockets.len()).id;
                let effects = system.ledger.disconnect(socket, at);
                system.hear(effects);
                prop_assert!(system.ledger.disconnect(socket, at).is_empty(), "surplus");
            }
            Step::Advance { by } => {
                now += by;
                let effects = system.ledger.tick(Timestamp(now));
                system.hear(effects);
                model.tick(now);
            }
            Step::Crash => {
                system.ledger = Ledger::new(system.file.values().cloned(), SESSIONS_MAX);
                model.sockets.clear();
                system.told.clear();
                let effects = system.ledger.tick(at);
                prop_assert!(effects.iter().all(|effect| matches!(effect, Effect::Listing(_))));
                // A follower lists anew.
                system.heard =
                    system.ledger.list(at).into_iter().map(|v| (v.id, v.connections)).collect();
            }
        }
        check(&system, &model, now)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn the_ledger_does_what_the_model_says(steps in prop::collection::vec(step(), 1..120)) {
        run(&steps)?;
    }
}
