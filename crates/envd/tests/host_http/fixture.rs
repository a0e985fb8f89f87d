//! A host with everything real but the clock, and clients that are let in.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::json;
use tokio::sync::watch;
use uuid::Uuid;
use wakeful_envd::{
    credential::{Authority, AuthorityOptions, GrantGate, PairingOffer, Sources},
    host::{Address, Host, HostParts, Use},
    thread::{
        Settings, Threads,
        command::{AgentUpdate, Append, Command, Create},
    },
};
use wakeful_wire::{
    EnvId, GrantId, HostSessionId, Timestamp, UserName,
    host::{
        Capabilities, Descriptor, PUBLIC_ADDRESS_HEADER, Platform, Scopes, TicketResponse,
        TokenResponse, capability, grant::Grant,
    },
    rpc::{ClientId, HostConfig, Outcome, Prompt, Role, StopReason, ThreadId},
};

use crate::client::{Answer, Asking, ClientKey, Line};

const SECRET: &str = "the sandbox's secret";

/// A clock that goes only when it is told to.
#[derive(Clone)]
pub(crate) struct Clock {
    now: Arc<AtomicU64>,
    fails: Arc<AtomicBool>,
}

impl Clock {
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::SeqCst))
    }

    /// Has the authority panic the next time that it asks for the time.
    pub(crate) fn fail_once(&self) {
        self.fails.store(true, Ordering::SeqCst);
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.now.fetch_add(u64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

struct Unused;

impl Use for Unused {
    fn used(&self) {}
}

/// A host.
pub(crate) struct World {
    _dir: tempfile::TempDir,
    pub(crate) host: Host,
    pub(crate) threads: Threads,
    pub(crate) authority: Authority,
    pub(crate) clock: Clock,
    /// Where its clients reach it.
    pub(crate) base: String,
    env: EnvId,
    gate: GrantGate,
    is_stated: bool,
    drawn: AtomicU32,
}

/// A client that was let in.
pub(crate) struct Member {
    pub(crate) key: ClientKey,
    pub(crate) token: String,
    pub(crate) session: HostSessionId,
}

impl World {
    /// An environment's host, behind a gateway.
    pub(crate) async fn new() -> Self {
        Self::made(true).await
    }

    /// A host of its own.
    pub(crate) async fn alone() -> Self {
        Self::made(false).await
    }

    async fn made(is_stated: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let env = EnvId::from_uuid(Uuid::from_u64_pair(2, 7));
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = AtomicU64::new(u64::try_from(since.as_millis()).unwrap());
        let clock = Clock { now: Arc::new(now), fails: Arc::default() };
        let ticking = clock.clone();
        let sources = Sources::new(
            move || {
                assert!(!ticking.fails.swap(false, Ordering::SeqCst), "the clock was told to fail");
                ticking.now()
            },
            |bytes| getrandom::fill(bytes).expect("the kernel gives randomness"),
        );
        let gate = GrantGate::new(env, SECRET);
        let mut options = AuthorityOptions::new(dir.path().join("sessions.db"), sources);
        options.grants = is_stated.then(|| GrantGate::new(env, SECRET));
        let authority = Authority::open(options).await.unwrap();
        let ticking = clock.clone();
        let clocked: Arc<dyn Fn() -> Timestamp + Send + Sync> = Arc::new(move || ticking.now());
        let mut settings = Settings::new(dir.path().to_owned());
        settings.clock = Arc::clone(&clocked);
        let threads = Threads::open(settings).await.unwrap();
        let more = if is_stated { capability::GRANTS } else { capability::PAIRING };
        let (_, config) =
            watch::channel(HostConfig { revision: 1, agents: Vec::new(), default_agent: None });
        let host = Host::new(HostParts {
            threads: threads.clone(),
            authority: authority.clone(),
            descriptor: Descriptor {
                id: env.to_string().parse().unwrap(),
                environment: is_stated.then_some(env),
                label: "dev".to_owned(),
                release: "0.0.0".to_owned(),
                protocols: Host::protocols(),
                platform: Platform { os: "linux".to_owned(), arch: "x86_64".to_owned() },
                capabilities: Capabilities::and(&[more]),
            },
            config,
            address: if is_stated { Address::Stated } else { Address::Own(None) },
            used: Arc::new(Unused),
            clock: clocked,
            heartbeat: Duration::from_secs(15),
        });
        let base = if is_stated {
            format!("http://wakeful.localhost:7878/api/host/{env}")
        } else {
            "http://laptop.local:9000".to_owned()
        };
        let drawn = AtomicU32::new(0);
        Self { _dir: dir, host, threads, authority, clock, base, env, gate, is_stated, drawn }
    }

    /// A connection from the local network.
    pub(crate) fn line(&self) -> Line {
        self.line_from(Some(IpAddr::V4(Ipv4Addr::LOCALHOST)))
    }

    pub(crate) fn line_from(&self, peer: Option<IpAddr>) -> Line {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let host = self.host.clone();
        tokio::spawn(async move { host.serve(far, peer).await });
        Line::new(near)
    }

    /// A request as the gateway passes it on, or as it reaches a host of its own.
    pub(crate) fn asking(&self, method: &'static str, target: impl Into<String>) -> Asking {
        let asking = Asking::new(method, target);
        if self.is_stated {
            asking.header("host", "gateway.internal").header(PUBLIC_ADDRESS_HEADER, &self.base)
        } else {
            asking.header("host", "laptop.local:9000")
        }
    }

    /// A request with a member's token and a fresh proof.
    pub(crate) fn signed(
        &self,
        member: &Member,
        method: &'static str,
        target: impl Into<String>,
    ) -> Asking {
        let asking = self.asking(method, target);
        let url = format!("{}{}", self.base, asking.path());
        let proof = member.key.proof(method, &url, Some(&member.token), self.clock.now());
        asking.header("authorization", format!("DPoP {}", member.token)).header("dpop", proof)
    }

    pub(crate) async fn send(&self, asking: &Asking) -> Answer {
        self.line().ask(asking).await
    }

    pub(crate) async fn get(&self, member: &Member, target: impl Into<String>) -> Answer {
        self.send(&self.signed(member, "GET", target)).await
    }

    /// A grant's text, for alice.
    pub(crate) fn grant(&self, scopes: &str) -> String {
        let id = GrantId::from_uuid(Uuid::from_u64_pair(3, self.draw()));
        let user = UserName::new("alice").unwrap();
        let now = self.clock.now();
        self.gate.seal(&Grant::new(id, self.env, user, scopes.parse().unwrap(), now))
    }

    /// A client that enters with these scopes: by a grant, or by pairing.
    pub(crate) async fn member(&self, scopes: &str) -> Member {
        let key = ClientKey::new(u8::try_from(self.draw() % 250).unwrap());
        let request = if self.is_stated {
            json!({ "grant_type": "urn:wakeful:oauth:grant", "grant": self.grant(scopes) })
        } else {
            let offered = self.authority.offer_pairing(PairingOffer {
                subject: UserName::new("alice").unwrap(),
                scopes: scopes.parse::<Scopes>().unwrap(),
                label: "paired".to_owned(),
            });
            let code = offered.code.to_string();
            json!({ "grant_type": "urn:wakeful:oauth:pairing", "code": code })
        };
        let url = format!("{}/oauth/token", self.base);
        let asking = self
            .asking("POST", "/oauth/token")
            .header("dpop", key.proof("POST", &url, None, self.clock.now()))
            .json(&request);
        let token: TokenResponse = self.send(&asking).await.read();
        Member { key, token: token.access_token, session: token.session }
    }

    pub(crate) async fn ticket(&self, member: &Member) -> String {
        let answer = self.send(&self.signed(member, "POST", "/ticket")).await;
        answer.read::<TicketResponse>().ticket
    }

    /// Makes an idle thread.
    pub(crate) async fn thread(&self, title: &str) -> ThreadId {
        let id = ThreadId::from_uuid(Uuid::from_u64_pair(4, self.draw()));
        let create = Create {
            thread: Some(id),
            agent: "shell".to_owned(),
            title: Some(title.to_owned()),
            ..Create::default()
        };
        self.threads.command(Command::Create(create)).await.unwrap();
        id
    }

    pub(crate) async fn child(&self, parent: ThreadId) -> ThreadId {
        let id = ThreadId::from_uuid(Uuid::from_u64_pair(4, self.draw()));
        let create = Create {
            thread: Some(id),
            parent: Some(parent),
            agent: "shell".to_owned(),
            ..Create::default()
        };
        self.threads.command(Command::Create(create)).await.unwrap();
        id
    }

    /// Has a whole turn take place in a thread.
    pub(crate) async fn turn(&self, thread: ThreadId, text: &str) {
        let client = ClientId::from_uuid(Uuid::from_u64_pair(5, self.draw()));
        let prompt = Prompt::text(client, "go on");
        self.threads.command(Command::Prompt { thread, prompt }).await.unwrap();
        let turn = self.threads.thread(thread).unwrap().turn.unwrap().id;
        let said = AgentUpdate::Text { role: Role::Agent, message: None, text: text.to_owned() };
        let ended = AgentUpdate::TurnEnded(Outcome::Completed { reason: StopReason::EndTurn });
        let append = Append { thread, turn: Some(turn), updates: vec![said, ended] };
        self.threads.append(append).await.unwrap();
    }

    fn draw(&self) -> u64 {
        u64::from(self.drawn.fetch_add(1, Ordering::Relaxed)) + 1
    }
}
