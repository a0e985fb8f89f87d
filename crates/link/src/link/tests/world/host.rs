//! A host: its log, its sessions, and the sockets that it serves.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::{Value, json};
use uuid::Uuid;
use wakeful_wire::{
    Code, EnvId, HostId, HostSessionId, Phase, Problem, Timestamp, UserName,
    host::{Capabilities, Descriptor, Platform, Scopes, SessionMethod, SessionView},
    rpc::{
        Call, CallId, ClientFrame, ClientId, EventBody, Hello, HelloAgain, HostConfig, Omissions,
        PROTOCOL, Seq, ServerFrame, ShellItem, Taken, ThreadId, ThreadItem,
    },
};

use super::log::{Log, Wrote};

/// How a host answers whoever comes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::link::tests) enum Reach {
    /// It is there.
    #[default]
    Up,
    /// Nobody listens.
    Refuses,
    /// Nothing is answered and nothing arrives: neither requests nor what is on open sockets.
    Silent,
    /// It, or somebody before it, has too much to do, and says when to come back.
    Busy(Duration),
}

/// What becomes of a socket that is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::link::tests) enum Manner {
    /// It is greeted and served.
    #[default]
    Serves,
    /// It is closed with this code after a while, without a greeting.
    ClosesUngreeted(Duration, u16),
    /// It is greeted, and closed with this code after a while.
    Closes(Duration, u16),
    /// It is open, and nothing comes.
    SaysNothing,
    /// It is greeted with something that cannot be read.
    SpeaksNonsense,
    /// The upgrade is refused with this status.
    Forbids(u16),
}

#[derive(Debug, Clone)]
pub(in crate::link::tests) struct Session {
    pub(in crate::link::tests) subject: UserName,
    /// In the time of the world, in milliseconds.
    pub(in crate::link::tests) until: u64,
    pub(in crate::link::tests) revoked: bool,
    method: SessionMethod,
}

/// What a socket follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::link::tests) enum Topic {
    List,
    Thread(ThreadId),
}

/// One socket, as the host has it.
#[derive(Debug)]
pub(in crate::link::tests) struct Served {
    pub(in crate::link::tests) session: HostSessionId,
    pub(in crate::link::tests) topics: BTreeMap<CallId, Topic>,
}

/// What was asked of a host, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::link::tests) struct Counts {
    pub(in crate::link::tests) dials: usize,
    pub(in crate::link::tests) greeted: usize,
    pub(in crate::link::tests) exchanges: usize,
    /// Whole lists, over HTTP and over the socket.
    pub(in crate::link::tests) lists: usize,
    /// Reads of the list that were answered by 304.
    pub(in crate::link::tests) unchanged: usize,
    pub(in crate::link::tests) list_resumes: usize,
    pub(in crate::link::tests) thread_snapshots: usize,
    pub(in crate::link::tests) thread_resumes: usize,
    pub(in crate::link::tests) descriptors: usize,
    pub(in crate::link::tests) probes: usize,
    /// Requests whose token was refused.
    pub(in crate::link::tests) refused: usize,
}

/// A host.
#[derive(Debug)]
pub(in crate::link::tests) struct Host {
    pub(in crate::link::tests) id: HostId,
    pub(in crate::link::tests) name: &'static str,
    pub(in crate::link::tests) env: Option<EnvId>,
    pub(in crate::link::tests) address: String,
    pub(in crate::link::tests) log: Log,
    pub(in crate::link::tests) reach: Reach,
    pub(in crate::link::tests) manner: Manner,
    pub(in crate::link::tests) release: &'static str,
    pub(in crate::link::tests) token_life: Duration,
    /// Whether its token endpoint works.
    pub(in crate::link::tests) exchanges: bool,
    /// How long answers to requests take beside the way.
    pub(in crate::link::tests) thinks: Duration,
    pub(in crate::link::tests) sessions: BTreeMap<HostSessionId, Session>,
    pub(in crate::link::tests) sockets: BTreeMap<u64, Served>,
    /// Each prompt that was taken, and how often it arrived.
    pub(in crate::link::tests) prompts: BTreeMap<ClientId, usize>,
    pub(in crate::link::tests) counts: Counts,
    used: BTreeSet<String>,
    drawn: u128,
}

/// What the host does with a socket.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::link::tests) enum Out {
    Frame(u64, Box<ServerFrame>),
    Close(u64, u16, &'static str),
}

impl Host {
    pub(in crate::link::tests) fn new(
        id: HostId,
        name: &'static str,
        env: Option<EnvId>,
        address: String,
    ) -> Self {
        Self {
            id,
            name,
            env,
            address,
            log: Log::begin(1),
            reach: Reach::Up,
            manner: Manner::Serves,
            release: "1.0.0",
            token_life: Duration::from_secs(3_600),
            exchanges: true,
            thinks: Duration::ZERO,
            sessions: BTreeMap::new(),
            sockets: BTreeMap::new(),
            prompts: BTreeMap::new(),
            counts: Counts::default(),
            used: BTreeSet::new(),
            drawn: 0,
        }
    }

    pub(in crate::link::tests) fn descriptor(&self) -> Descriptor {
        Descriptor {
            id: self.id,
            environment: self.env,
            label: self.name.to_owned(),
            release: self.release.to_owned(),
            protocols: (1, 1),
            platform: Platform { os: "linux".to_owned(), arch: "x86_64".to_owned() },
            capabilities: Capabilities::and(&[]),
        }
    }

    /// A session for this subject, and what of the open sockets it takes over.
    pub(in crate::link::tests) fn enter(
        &mut self,
        now: u64,
        subject: &UserName,
        grant: Option<&str>,
    ) -> Option<HostSessionId> {
        if grant.is_some_and(|grant| !self.used.insert(grant.to_owned())) {
            return None;
        }
        let until = now + u64::try_from(self.token_life.as_millis()).unwrap();
        let method = if grant.is_some() { SessionMethod::Grant } else { SessionMethod::Pairing };
        // The session of a pairing is one, and only lasts longer.
        let paired = self
            .sessions
            .iter_mut()
            .find(|(_, session)| grant.is_none() && session.method == method && !session.revoked);
        if let Some((id, session)) = paired {
            session.until = session.until.max(until);
            return Some(*id);
        }
        self.drawn += 1;
        let id = HostSessionId::from_uuid(Uuid::from_u128(self.drawn));
        let subject = subject.clone();
        let session = Session { subject: subject.clone(), until, revoked: false, method };
        let sessions = &self.sessions;
        let same = |served: &&mut Served| {
            sessions.get(&served.session).is_some_and(|old| old.subject == subject && !old.revoked)
        };
        self.sockets.values_mut().filter(same).for_each(|served| served.session = id);
        self.sessions.insert(id, session);
        Some(id)
    }

    pub(in crate::link::tests) fn token(session: HostSessionId) -> String {
        format!("token.{session}")
    }

    /// The session that a token stands for, if it is good.
    pub(in crate::link::tests) fn session_of(
        &self,
        now: u64,
        token: &str,
    ) -> Option<HostSessionId> {
        let id = token.strip_prefix("token.")?.parse().ok()?;
        let session = self.sessions.get(&id)?;
        (!session.revoked && session.until > now).then_some(id)
    }

    /// Ends the sockets whose session has ended.
    pub(in crate::link::tests) fn expire(&mut self, now: u64) -> Vec<Out> {
        let mut out = Vec::new();
        let sessions = &self.sessions;
        self.sockets.retain(|socket, served| match sessions.get(&served.session) {
            Some(session) if session.revoked => {
                out.push(Out::Close(*socket, 4411, "session_revoked"));
                false
            }
            Some(session) if session.until <= now => {
                out.push(Out::Close(*socket, 4412, "session_expired"));
                false
            }
            Some(_) | None => true,
        });
        out
    }

    pub(in crate::link::tests) fn hello(&self, session: HostSessionId) -> Hello {
        let held = &self.sessions[&session];
        Hello {
            protocol: PROTOCOL,
            host: self.descriptor(),
            capabilities: Capabilities::and(&[]),
            config: HostConfig { revision: 1, ..HostConfig::default() },
            session: SessionView {
                id: session,
                subject: held.subject.clone(),
                scopes: Scopes::all(),
                method: held.method,
                label: String::new(),
                issued_at: Timestamp(0),
                expires_at: Timestamp(held.until),
                last_connected_at: None,
                connections: 1,
            },
            head: self.log.head(),
            heartbeat_ms: 15_000,
            tag: Some(self.release.to_owned()),
        }
    }

    /// The first frame, to a client that may know this host already.
    pub(in crate::link::tests) fn greeting(
        &self,
        session: HostSessionId,
        known: Option<&str>,
    ) -> ServerFrame {
        let Hello { protocol, session, head, .. } = self.hello(session);
        if known == Some(self.release) {
            let tag = self.release.to_owned();
            let host = self.id;
            let again = HelloAgain { protocol, host, tag, session, head };
            ServerFrame::HelloAgain(Box::new(again))
        } else {
            ServerFrame::Hello(Box::new(self.hello(session.id)))
        }
    }

    /// Something was written: whoever follows it hears it.
    pub(in crate::link::tests) fn publish(&self, wrote: &Wrote) -> Vec<Out> {
        let mut out = Vec::new();
        let deleted = matches!(wrote.event.body, EventBody::Deleted {});
        for (socket, served) in &self.sockets {
            for (id, topic) in &served.topics {
                let item = match topic {
                    Topic::List => wrote.list.as_ref().map(json_of::<ShellItem>),
                    Topic::Thread(thread) if wrote.event.thread == Some(*thread) => {
                        Some(json_of(&if deleted {
                            ThreadItem::Deleted { seq: wrote.event.seq }
                        } else {
                            ThreadItem::Events { events: vec![(*wrote.event).clone()] }
                        }))
                    }
                    Topic::Thread(_) => None,
                };
                let frame = item.map(|item| Box::new(ServerFrame::Item { id: *id, item }));
                out.extend(frame.map(|frame| Out::Frame(*socket, frame)));
            }
        }
        out
    }

    /// A frame has come.
    pub(in crate::link::tests) fn heard(&mut self, socket: u64, text: &str) -> Vec<Out> {
        let mut out = Vec::new();
        let Some(served) = self.sockets.get_mut(&socket) else { return out };
        let mut say = |frame| out.push(Out::Frame(socket, Box::new(frame)));
        let frame: ClientFrame = serde_json::from_str(text).expect("a frame");
        match frame {
            ClientFrame::Probe { id } => {
                self.counts.probes += 1;
                say(ServerFrame::Alive { id, head: self.log.head() });
            }
            ClientFrame::Cancel { id } => {
                if served.topics.remove(&id).is_some() {
                    say(ServerFrame::End { id });
                }
            }
            ClientFrame::Request { id, method, params } => {
                let call = Call::read(&method, params).expect("a known call");
                #[expect(clippy::wildcard_enum_match_arm, reason = "no test makes another call")]
                match call {
                    Call::ShellSubscribe(asked) => {
                        served.follow(id, Topic::List);
                        let items = self.log.shell_feed(asked.cursor, asked.omit);
                        let whole = matches!(items.first(), Some(ShellItem::Snapshot { .. }));
                        self.counts.lists += usize::from(whole);
                        self.counts.list_resumes += usize::from(!whole);
                        items.iter().for_each(|item| {
                            say(ServerFrame::Item { id, item: json_of(item) });
                        });
                    }
                    Call::ThreadSubscribe(asked) => {
                        let Some(items) = self.log.thread_feed(asked.thread, asked.cursor) else {
                            say(ServerFrame::Error { id, problem: Problem::new(Code::NotFound) });
                            return out;
                        };
                        served.follow(id, Topic::Thread(asked.thread));
                        let whole = matches!(items.first(), Some(ThreadItem::Snapshot { .. }));
                        self.counts.thread_snapshots += usize::from(whole);
                        self.counts.thread_resumes += usize::from(!whole);
                        items.iter().for_each(|item| {
                            say(ServerFrame::Item { id, item: json_of(item) });
                        });
                    }
                    Call::ThreadPrompt(asked) => {
                        *self.prompts.entry(asked.prompt.client).or_default() += 1;
                        if self.log.thread(asked.thread).is_none_or(|thread| thread.deleted) {
                            say(ServerFrame::Error { id, problem: Problem::new(Code::NotFound) });
                            return out;
                        }
                        let prompt = asked.prompt;
                        let wrote =
                            self.log.write(asked.thread, EventBody::PromptQueued { prompt });
                        say(ServerFrame::Response { id, result: taken(wrote.event.seq) });
                        out.extend(self.publish(&wrote));
                    }
                    Call::Activity(_) => say(ServerFrame::Response { id, result: json!({}) }),
                    other => panic!("the world does not know {}", other.method()),
                }
            }
            ClientFrame::Unknown => panic!("an unknown frame"),
        }
        out
    }

    /// Ends all sockets.
    pub(in crate::link::tests) fn close_all(
        &mut self,
        code: u16,
        reason: &'static str,
    ) -> Vec<Out> {
        let sockets = std::mem::take(&mut self.sockets);
        sockets.into_keys().map(|socket| Out::Close(socket, code, reason)).collect()
    }

    /// What a refusal of a sleeping environment says.
    pub(in crate::link::tests) const fn asleep(phase: Phase) -> Problem {
        let starts = matches!(phase, Phase::Starting);
        Problem::new(if starts { Code::Starting } else { Code::Asleep }).phase(phase)
    }

    /// The omissions in a query.
    pub(in crate::link::tests) fn omissions(path: &str) -> Omissions {
        Omissions {
            families: path.contains("families=true"),
            older_settled: path.contains("older_settled=true"),
        }
    }
}

impl Served {
    fn follow(&mut self, id: CallId, topic: Topic) {
        let twice = self.topics.values().any(|held| *held == topic);
        assert!(!twice, "two subscriptions of {topic:?} on one socket");
        self.topics.insert(id, topic);
    }
}

fn json_of<T: serde::Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("plain data")
}

fn taken(seq: Seq) -> Value {
    json_of(&Taken { seq, thread: None, changed: true })
}
