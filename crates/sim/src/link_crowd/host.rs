//! The host of a crowd: one list, and tokens that it believes until they end.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;
use wakeful_link::http::{HttpAnswer, Method, Proof, Reply, Request};
use wakeful_wire::{
    Code, HostId, HostSessionId, Problem, Timestamp, UserName,
    host::{
        Capabilities, DESCRIPTOR_PATH, Descriptor, Platform, Scopes, SessionMethod, SessionView,
        TOKEN_PATH, TOKEN_TYPE, TokenResponse,
    },
    rpc::{
        Call, ClientFrame, Counts, Cursor, Epoch, Hello, HelloAgain, HostConfig, OlderSettled,
        Omissions, PROTOCOL, Seq, ServerFrame, ShellItem, ShellRow, ShellSnapshot, ThreadId,
    },
};

/// Where the host is.
pub(super) const ADDRESS: &str = "https://host.example";
/// How long a token lives, in milliseconds.
const TOKEN_LIFE: u64 = 3_600_000;
/// Threads in the list.
const ROWS: u64 = 20;

/// The host's id.
pub(super) const fn id() -> HostId {
    HostId::from_uuid(Uuid::from_u128(0xa057))
}

/// How the host receives its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// It serves them.
    Open,
    /// Nobody is there.
    Closed,
    /// It has too much to do, and says when to come back.
    Busy {
        /// After how long.
        retry_after: Duration,
    },
    /// It refuses sockets with this status.
    Refuses {
        /// The status.
        status: u16,
    },
    /// It takes sockets, and ends them.
    Ends {
        /// Whether it greets them before.
        greets: bool,
        /// After how many milliseconds.
        after: u64,
        /// With which code.
        code: u16,
    },
    /// It takes sockets and says nothing.
    Silent,
    /// It greets with something that cannot be read.
    Nonsense,
}

/// The host.
#[derive(Debug)]
pub struct Host {
    /// How it receives its clients.
    pub door: Door,
    epoch: u64,
    starts: Vec<(u64, u64)>,
    head: u64,
    rows: Vec<Arc<ShellRow>>,
    /// Until when each client's token is good.
    tokens: BTreeMap<usize, u64>,
    /// Whole lists that were sent, over HTTP or the socket.
    pub lists: usize,
    /// Subscriptions that went on from where they were.
    pub resumes: usize,
    /// Tokens that were given.
    pub exchanges: usize,
}

impl Host {
    pub(super) fn new() -> Self {
        let rows = (1..=ROWS).map(row).collect();
        Self {
            door: Door::Open,
            epoch: 1,
            starts: vec![(1, 1)],
            head: ROWS + 1,
            rows,
            tokens: BTreeMap::new(),
            lists: 0,
            resumes: 0,
            exchanges: 0,
        }
    }

    pub(super) const fn forget_counts(&mut self) {
        (self.lists, self.resumes, self.exchanges) = (0, 0, 0);
    }

    /// It starts anew; its log is as it was.
    pub fn restart(&mut self) {
        self.epoch += 1;
        self.head += 1;
        self.starts.push((self.epoch, self.head));
    }

    const fn cursor(&self) -> Cursor {
        Cursor { epoch: Epoch(self.epoch), seq: Seq(self.head) }
    }

    fn confirms(&self, cursor: Cursor) -> bool {
        let place = self.starts.iter().position(|(epoch, _)| *epoch == cursor.epoch.0);
        place.is_some_and(|place| match self.starts.get(place + 1) {
            Some((_, first)) => cursor.seq.0 < *first,
            None => cursor.seq.0 <= self.head,
        })
    }

    fn is_there(&self) -> Result<(), Box<Reply>> {
        match self.door {
            Door::Closed => {
                Err(Box::new(Reply::Unreachable("The connection was refused.".to_owned())))
            }
            Door::Busy { retry_after } => {
                Err(Box::new(refusal(&Problem::new(Code::Overloaded), Some(retry_after))))
            }
            Door::Open
            | Door::Refuses { .. }
            | Door::Ends { .. }
            | Door::Silent
            | Door::Nonsense => Ok(()),
        }
    }

    fn is_good(&self, time: u64, client: usize, token: &str) -> bool {
        token == format!("token.{client}")
            && self.tokens.get(&client).is_some_and(|until| *until > time)
    }

    /// Answers a request of a client.
    pub(super) fn answer(&mut self, time: u64, client: usize, request: &Request) -> Reply {
        if let Err(reply) = self.is_there() {
            return *reply;
        }
        let path = request.path.as_str();
        if path == DESCRIPTOR_PATH {
            return answer(&descriptor());
        }
        if (request.method, path) == (Method::Post, TOKEN_PATH) {
            self.exchanges += 1;
            self.tokens.insert(client, time + TOKEN_LIFE);
            return answer(&TokenResponse {
                access_token: format!("token.{client}"),
                token_type: TOKEN_TYPE.to_owned(),
                expires_in: TOKEN_LIFE / 1_000,
                scope: Scopes::all(),
                refresh_token: None,
                session: session(client),
            });
        }
        let good = match &request.proof {
            Proof::Access(access) => self.is_good(time, client, access.token.reveal()),
            Proof::None | Proof::Key { .. } => false,
        };
        if !good {
            return challenge();
        }
        if path.starts_with("/shell?") {
            self.lists += 1;
            return answer(&self.snapshot());
        }
        answer(&Counts { seq: Seq(self.head), ..Counts::default() })
    }

    /// Lets a socket in or not. Returns what it is greeted with, if with anything.
    pub(super) fn admit(
        &self,
        time: u64,
        client: usize,
        token: &str,
        known: Option<&str>,
    ) -> Result<Option<String>, Box<Reply>> {
        self.is_there()?;
        if let Door::Refuses { status } = self.door {
            let host = Some(id());
            let answer = HttpAnswer { status, host, ..HttpAnswer::default() };
            return Err(Box::new(Reply::Answered(answer)));
        }
        if !self.is_good(time, client, token) {
            return Err(Box::new(challenge()));
        }
        match self.door {
            Door::Silent | Door::Ends { greets: false, .. } => Ok(None),
            Door::Nonsense => Ok(Some("\"nonsense\"".to_owned())),
            Door::Open
            | Door::Ends { .. }
            | Door::Closed
            | Door::Busy { .. }
            | Door::Refuses { .. } => Ok(Some(text(&self.greeting(client, known)))),
        }
    }

    fn greeting(&self, client: usize, known: Option<&str>) -> ServerFrame {
        let tag = "1".to_owned();
        let (head, session, heartbeat_ms) = (self.cursor(), view(client), 300_000);
        if known == Some("1") {
            let (protocol, host) = (PROTOCOL, id());
            let again = HelloAgain { protocol, host, tag, session, head };
            return ServerFrame::HelloAgain(Box::new(again));
        }
        ServerFrame::Hello(Box::new(Hello {
            protocol: PROTOCOL,
            host: descriptor(),
            capabilities: Capabilities::and(&[]),
            config: HostConfig { revision: 1, ..HostConfig::default() },
            session,
            head,
            heartbeat_ms,
            tag: Some(tag),
        }))
    }

    fn snapshot(&self) -> ShellSnapshot {
        ShellSnapshot {
            cursor: self.cursor(),
            omitted: Omissions { families: true, older_settled: true },
            rows: self.rows.clone(),
            older_settled: Some(OlderSettled::default()),
        }
    }

    /// What a frame is answered with.
    pub(super) fn heard(&mut self, frame: &str) -> Vec<String> {
        let head = self.cursor();
        match serde_json::from_str(frame) {
            Ok(ClientFrame::Probe { id }) => vec![text(&ServerFrame::Alive { id, head })],
            Ok(ClientFrame::Request { id, method, params }) => {
                let Ok(Call::ShellSubscribe(asked)) = Call::read(&method, params) else {
                    return vec![text(&ServerFrame::Response { id, result: json!({}) })];
                };
                let first = match asked.cursor.filter(|cursor| self.confirms(*cursor)) {
                    Some(cursor) => {
                        self.resumes += 1;
                        ShellItem::Resumed { cursor: Cursor { epoch: head.epoch, ..cursor } }
                    }
                    None => {
                        self.lists += 1;
                        ShellItem::Snapshot { snapshot: self.snapshot() }
                    }
                };
                let items = [first, ShellItem::Synchronized { cursor: head }];
                let frame = |item: &ShellItem| text(&ServerFrame::Item { id, item: value(item) });
                items.iter().map(frame).collect()
            }
            Ok(ClientFrame::Cancel { .. } | ClientFrame::Unknown) | Err(_) => Vec::new(),
        }
    }
}

fn session(client: usize) -> HostSessionId {
    HostSessionId::from_uuid(Uuid::from_u128(0x5e55 + client as u128))
}

fn view(client: usize) -> SessionView {
    SessionView {
        id: session(client),
        subject: UserName::new("somebody").unwrap_or_else(|_| unreachable!("a name")),
        scopes: Scopes::all(),
        method: SessionMethod::Pairing,
        label: "one of many".to_owned(),
        issued_at: Timestamp(1_700_000_000_000),
        expires_at: Timestamp(1_702_592_000_000),
        last_connected_at: Some(Timestamp(1_700_000_000_000)),
        connections: 1,
    }
}

fn descriptor() -> Descriptor {
    Descriptor {
        id: id(),
        environment: None,
        label: "host".to_owned(),
        release: "1.0.0".to_owned(),
        protocols: (1, 1),
        platform: Platform { os: "linux".to_owned(), arch: "x86_64".to_owned() },
        capabilities: Capabilities::and(&[]),
    }
}

fn row(number: u64) -> Arc<ShellRow> {
    let made = Timestamp(1_700_000_000_000 + number);
    let thread = ThreadId::from_uuid(Uuid::from_u128(u128::from(number)));
    Arc::new(ShellRow {
        id: thread,
        seq: Seq(number + 1),
        created_at: made,
        active_at: made,
        parent: None,
        root: thread,
        project: "site".to_owned(),
        agent: "shell".to_owned(),
        title: Some(format!("Thread {number}")),
        pinned: false,
        snoozed_until: None,
        settled: None,
        running_since: None,
        cancelling: false,
        last_outcome: None,
        queued: 0,
        held: false,
        pending: 0,
        background: false,
        mode: None,
    })
}

fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

fn text(of: &impl Serialize) -> String {
    serde_json::to_string(of).unwrap_or_default()
}

fn answer(body: &impl Serialize) -> Reply {
    Reply::Answered(HttpAnswer {
        status: 200,
        content_type: Some("application/json".to_owned()),
        body: text(body).into_bytes(),
        ..HttpAnswer::default()
    })
}

fn refusal(problem: &Problem, retry_after: Option<Duration>) -> Reply {
    Reply::Answered(HttpAnswer {
        status: problem.status,
        retry_after,
        content_type: Some(Problem::MEDIA_TYPE.to_owned()),
        body: text(problem).into_bytes(),
        ..HttpAnswer::default()
    })
}

fn challenge() -> Reply {
    Reply::Answered(HttpAnswer {
        status: 401,
        host: Some(id()),
        challenge: Some(r#"DPoP error="invalid_token", algs="ES256 EdDSA""#.to_owned()),
        ..HttpAnswer::default()
    })
}
