//! Requests over HTTP, answered by a host or by the platform.

use serde::Serialize;
use serde_json::json;
use wakeful_wire::{
    Code, EnvId, GrantId, HostId, Phase, Problem, Timestamp, UserName,
    api::GrantAnswer,
    host::{
        Denial, Scopes, TOKEN_TYPE, TicketResponse, TokenError, TokenRequest, TokenResponse,
        grant::{Grant, SealedGrant},
    },
    rpc::{Counts, Rows, ThreadId},
};

use super::{
    Happening, Host, PLATFORM, Reach, World,
    sockets::{busy, challenge, problem},
};
use crate::{
    effect::AskId,
    http::{HttpAnswer, Proof, Reply, Request},
};

/// A request on its way.
#[derive(Debug, Clone)]
pub(super) struct Arrived {
    pub(super) ask: AskId,
    pub(super) address: String,
    pub(super) request: Request,
    /// Who was signed in at the platform when it was sent.
    pub(super) user: Option<UserName>,
    /// When it was sent.
    pub(super) sent: u64,
}

fn answer(body: &impl Serialize) -> Reply {
    Reply::Answered(HttpAnswer {
        status: 200,
        content_type: Some("application/json".to_owned()),
        body: serde_json::to_vec(body).expect("plain data"),
        ..HttpAnswer::default()
    })
}

fn limit(request: &Request) -> u64 {
    u64::try_from(request.limit.as_millis()).expect("a short time")
}

impl World {
    pub(super) fn arrives(&mut self, arrived: Arrived) {
        let reply = if arrived.address == PLATFORM {
            self.platform_answers(&arrived)
        } else {
            let host = self.host_at(&arrived.address);
            self.host_answers(host, &arrived)
        };
        let limit = limit(&arrived.request);
        let (after, reply) = match reply {
            Some((thinks, reply)) if self.way() + thinks < limit => (self.way() + thinks, reply),
            // Held until the environment is there, or the time is up.
            None if self.time - arrived.sent + 200 < limit => {
                return self.later(100, Happening::Arrives(arrived));
            }
            Some(_) | None => {
                let passed = self.time - arrived.sent;
                (limit.saturating_sub(passed), Reply::TimedOut)
            }
        };
        self.later(after, Happening::Answer(arrived.ask, reply));
    }

    /// What the platform answers and after how long; nothing while it holds the request.
    fn platform_answers(&mut self, arrived: &Arrived) -> Option<(u64, Reply)> {
        let request = &arrived.request;
        match self.platform.reach {
            Reach::Silent => return Some((u64::MAX / 4, Reply::TimedOut)),
            Reach::Refuses => {
                return Some((0, Reply::Unreachable("The connection was refused.".to_owned())));
            }
            Reach::Busy(after) => return Some((0, busy(after))),
            Reach::Up => {}
        }
        let Some(user) = arrived.user.clone().filter(|_| self.platform.grants) else {
            return Some((0, problem(&Problem::new(Code::Unauthenticated), None)));
        };
        if request.path == "/api/projects" {
            return Some((0, answer(&self.platform.projects())));
        }
        let env = request.path.strip_prefix("/api/environments/").expect("a known path");
        let env: EnvId = env.strip_suffix("/grant").expect("a grant").parse().expect("an id");
        let phase = self.phase_of(HostId::from(env)).expect("an environment");
        if phase != Phase::Ready {
            if request.wake && self.wake(HostId::from(env)) {
                return None;
            }
            return Some((0, problem(&Host::asleep(phase), None)));
        }
        self.drawn += 1;
        let id = GrantId::from_uuid(uuid::Uuid::from_u128(u128::from(self.drawn)));
        let grant = Grant::new(id, env, user, Scopes::all(), Timestamp(self.time));
        let given = GrantAnswer {
            grant: grant.seal(|_| [7; 32]),
            expires_in: 60,
            address: format!("{PLATFORM}/api/host/{env}"),
        };
        Some((self.platform.thinks, answer(&given)))
    }

    fn host_answers(&mut self, id: HostId, arrived: &Arrived) -> Option<(u64, Reply)> {
        let (time, request) = (self.time, &arrived.request);
        let host = self.host(id);
        match host.reach {
            Reach::Silent => return Some((u64::MAX / 4, Reply::TimedOut)),
            Reach::Refuses => {
                return Some((0, Reply::Unreachable("The connection was refused.".to_owned())));
            }
            Reach::Busy(after) => return Some((0, busy(after))),
            Reach::Up => {}
        }
        if let Some(phase) = self.phase_of(id).filter(|phase| *phase != Phase::Ready) {
            if request.wake && self.wake(id) {
                return None;
            }
            return Some((0, problem(&Host::asleep(phase), None)));
        }
        let thinks = u64::try_from(host.thinks.as_millis()).expect("a short time");
        let host = self.host_mut(id);
        let path = request.path.as_str();
        if path == "/descriptor" {
            host.counts.descriptors += 1;
            return Some((0, answer(&host.descriptor())));
        }
        if path == "/oauth/token" {
            return Some((thinks, self.exchanged(id, request)));
        }
        let token = match &request.proof {
            Proof::Access(access) => access.token.reveal().to_owned(),
            Proof::None | Proof::Key { .. } => String::new(),
        };
        let Some(session) = host.session_of(time, &token) else {
            host.counts.refused += 1;
            return Some((0, challenge(id)));
        };
        if path == "/ticket" {
            let ticket = format!("ticket.{session}");
            return Some((thinks, answer(&TicketResponse { ticket, expires_in: 60 })));
        }
        Some((thinks, self.read(id, request)))
    }

    fn exchanged(&mut self, id: HostId, request: &Request) -> Reply {
        let time = self.time;
        let asked = request.body.clone().and_then(|body| serde_json::from_value(body).ok());
        let asked: TokenRequest = asked.expect("a token request");
        let refuse = |denial: Denial| {
            let body = serde_json::to_vec(&TokenError::from(denial)).expect("plain data");
            let content_type = Some("application/json".to_owned());
            let host = Some(id);
            Reply::Answered(HttpAnswer {
                status: 400,
                host,
                content_type,
                body,
                ..HttpAnswer::default()
            })
        };
        let paired = user("someone");
        let known = self.store.given.get(&id).cloned();
        let host = self.host_mut(id);
        host.counts.exchanges += 1;
        if !host.exchanges {
            return problem(&Problem::new(Code::Internal), Some(id));
        }
        let entered = match &asked {
            TokenRequest::Grant { grant, .. } => {
                let sealed = SealedGrant::parse(grant).expect("a grant");
                let read = sealed.read().expect("a grant");
                host.enter(time, &read.subject, Some(grant))
            }
            TokenRequest::Refresh { refresh_token } => {
                let valid = known.as_deref() == Some(refresh_token);
                valid.then(|| host.enter(time, &paired, None)).flatten()
            }
            TokenRequest::Pairing { .. } => None,
        };
        let Some(session) = entered else {
            return refuse(match asked {
                TokenRequest::Grant { .. } => Denial::GrantUsed,
                TokenRequest::Refresh { .. } | TokenRequest::Pairing { .. } => {
                    Denial::SessionRevoked
                }
            });
        };
        let life = host.token_life;
        let given = TokenResponse {
            access_token: Host::token(session),
            token_type: TOKEN_TYPE.to_owned(),
            expires_in: life.as_secs(),
            scope: Scopes::all(),
            refresh_token: None,
            session,
        };
        let ends = u64::try_from(life.as_millis()).expect("a short time");
        self.later(ends, Happening::Expires(id));
        answer(&given)
    }

    fn read(&mut self, id: HostId, request: &Request) -> Reply {
        let host = self.host_mut(id);
        let path = request.path.as_str();
        let seq = host.log.head().seq;
        if path.starts_with("/shell?") {
            let omit = Host::omissions(path);
            if request.etag.as_deref().is_some_and(|etag| host.log.is_unchanged(etag, omit)) {
                host.counts.unchanged += 1;
                return Reply::Answered(HttpAnswer { status: 304, ..HttpAnswer::default() });
            }
            host.counts.lists += 1;
            let Reply::Answered(mut sent) = answer(&host.log.snapshot(omit)) else {
                unreachable!()
            };
            sent.etag = Some(host.log.etag(omit));
            return Reply::Answered(sent);
        }
        if path == "/shell/counts" {
            return answer(&Counts { seq, ..Counts::default() });
        }
        if path.starts_with("/shell/settled") || path.starts_with("/search") {
            return answer(&json!({ "seq": seq, "rows": [], "found": [] }));
        }
        if let Some(thread) = path.strip_prefix("/threads/") {
            let thread: ThreadId = thread[..36].parse().expect("an id");
            if host.log.thread(thread).is_none_or(|thread| thread.deleted) {
                return problem(&Problem::new(Code::NotFound), Some(id));
            }
            return answer(&Rows { seq, ..Rows::default() });
        }
        panic!("the world does not know {path}");
    }
}

fn user(name: &str) -> UserName {
    UserName::new(name).expect("a name")
}
