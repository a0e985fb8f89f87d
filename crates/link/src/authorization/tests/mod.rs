//! The machine in virtual time, with a shell that the tests play.

mod environment;
mod identity;
mod live;
mod paired;
mod policy;
mod replies;
mod secrecy;
mod sharing;
mod ticket;

use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;
use wakeful_wire::{
    Code, EnvId, GrantId, HostSessionId, Phase, Problem, Timestamp, UserName,
    host::{Denial, Scopes, SessionMethod, SessionView, TokenError, grant::Grant},
};

use super::*;
use crate::{Chance, Failure, FailureReason, Instant};

pub(super) const HOUR: Duration = Duration::from_secs(3_600);
pub(super) const ADDRESS: &str = "https://wakeful.example/api/host/e";

pub(super) fn environment(account: Option<&str>) -> Entry {
    Entry { key: "key-a".to_owned(), way: Way::Environment { account: account.map(user) } }
}

pub(super) fn pairing(refresh_token: &str) -> Entry {
    let (address, refresh_token) = (ADDRESS.to_owned(), Secret::new(refresh_token));
    Entry { key: "key-a".to_owned(), way: Way::Paired { address, refresh_token, session: None } }
}

pub(super) fn user(name: &str) -> UserName {
    UserName::new(name).unwrap()
}

pub(super) fn session(number: u128) -> HostSessionId {
    HostSessionId::from_uuid(Uuid::from_u128(number))
}

pub(super) fn answered(status: u16, media: &str, body: impl Into<Vec<u8>>) -> Reply {
    Reply::Answered(HttpAnswer {
        status,
        content_type: Some(media.to_owned()),
        body: body.into(),
        ..HttpAnswer::default()
    })
}

pub(super) fn json_of(status: u16, body: &Value) -> Reply {
    answered(status, "application/json", body.to_string())
}

/// A grant of the control plane, with an address that follows from nothing in it.
pub(super) fn grant_for(subject: &str, env: u128) -> Reply {
    let env = EnvId::from_uuid(Uuid::from_u128(env));
    let id = GrantId::from_uuid(Uuid::from_u128(9));
    let grant = Grant::new(id, env, user(subject), Scopes::all(), Timestamp(0));
    json_of(201, &json!({"grant": grant.seal(|_| [7; 32]), "expires_in": 60, "address": ADDRESS}))
}

pub(super) fn grant() -> Reply {
    grant_for("alice", 1)
}

pub(super) fn token_body(token: &str, life: u64) -> Value {
    json!({
        "access_token": token, "token_type": "DPoP", "expires_in": life,
        "scope": "read", "session": session(1),
    })
}

pub(super) fn token(token: &str, life: u64) -> Reply {
    json_of(200, &token_body(token, life))
}

/// A token of a paired host, with a refresh token beside it.
pub(super) fn rotated(token: &str, refresh_token: &str) -> Reply {
    let mut body = token_body(token, 3_600);
    body["refresh_token"] = refresh_token.into();
    json_of(200, &body)
}

pub(super) fn problem(code: Code) -> Reply {
    problem_of(&Problem::new(code))
}

pub(super) fn problem_of(problem: &Problem) -> Reply {
    answered(problem.status, Problem::MEDIA_TYPE, serde_json::to_vec(problem).unwrap())
}

pub(super) fn asleep() -> Reply {
    problem_of(&Problem::new(Code::Asleep).phase(Phase::Suspended))
}

pub(super) fn denied(status: u16, denial: Denial) -> Reply {
    json_of(status, &serde_json::to_value(TokenError::from(denial)).unwrap())
}

pub(super) fn view(subject: &str, id: u128) -> SessionView {
    SessionView {
        id: session(id),
        subject: user(subject),
        scopes: Scopes::all(),
        method: SessionMethod::Grant,
        label: String::new(),
        issued_at: Timestamp(0),
        expires_at: Timestamp(1),
        last_connected_at: None,
        connections: 1,
    }
}

/// The machine, a clock, and what the shell was told.
pub(super) struct Bench {
    pub(super) machine: Authorization,
    pub(super) now: Instant,
}

impl Bench {
    pub(super) fn new(entry: Entry) -> Self {
        let machine = Authorization::new(Some(entry), Chance::seeded(1));
        Self { machine, now: Instant(1_000_000) }
    }

    /// A machine of an environment that holds `one`, with an hour of life.
    pub(super) fn holding() -> (Self, Access) {
        let mut bench = Self::new(environment(Some("alice")));
        let access = bench.obtain("one", 3_600);
        (bench, access)
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now = self.now.after(time);
        self.machine.handle_timeout(self.now);
    }

    pub(super) fn access(&mut self, need: Need) -> Asked {
        self.machine.access(self.now, need)
    }

    pub(super) fn ask(&mut self, wake: bool) -> CallerId {
        let asked = self.access(Need { wake, rejected: None });
        let Asked::Waiting(caller) = asked else { panic!("{asked:?}") };
        caller
    }

    pub(super) fn held(&mut self) -> Access {
        let asked = self.access(Need::default());
        let Asked::Held(access) = asked else { panic!("{asked:?}") };
        access
    }

    pub(super) fn actions(&mut self) -> Vec<Action> {
        std::iter::from_fn(|| self.machine.poll_action()).collect()
    }

    /// The one request or store that the shell was told to do.
    pub(super) fn only(&mut self) -> Action {
        let mut actions = self.actions();
        assert_eq!(actions.len(), 1, "{actions:?}");
        actions.remove(0)
    }

    pub(super) fn granting(&mut self) -> (RenewalId, bool) {
        let action = self.only();
        let Action::Grant { renewal, wake } = action else { panic!("{action:?}") };
        (renewal, wake)
    }

    pub(super) fn exchanging(&mut self) -> (RenewalId, Credential) {
        let action = self.only();
        let Action::Exchange { renewal, credential, address, .. } = action else {
            panic!("{action:?}")
        };
        assert_eq!(address, ADDRESS);
        (renewal, credential)
    }

    pub(super) fn storing(&mut self) -> (RenewalId, Secret) {
        let action = self.only();
        let Action::Store { renewal, refresh_token } = action else { panic!("{action:?}") };
        (renewal, refresh_token)
    }

    pub(super) fn granted(&mut self, renewal: RenewalId, reply: &Reply) {
        self.machine.handle_granted(self.now, renewal, reply);
    }

    pub(super) fn exchanged(&mut self, renewal: RenewalId, reply: &Reply) {
        self.machine.handle_exchanged(self.now, renewal, reply);
    }

    pub(super) fn stored(&mut self, renewal: RenewalId, stored: Result<(), Failure>) {
        self.machine.handle_stored(self.now, renewal, stored);
    }

    /// Plays the shell from the grant, which was asked for, to the given answer of the exchange.
    pub(super) fn renew(&mut self, reply: &Reply) {
        let (renewal, _) = self.granting();
        self.granted(renewal, &grant());
        let (renewal, _) = self.exchanging();
        self.exchanged(renewal, reply);
    }

    /// Asks for a token and has it, by a grant.
    pub(super) fn obtain(&mut self, text: &str, life: u64) -> Access {
        let caller = self.ask(false);
        self.renew(&token(text, life));
        self.answer(caller).unwrap()
    }

    pub(super) fn answers(&mut self) -> Vec<(CallerId, Result<Access, Failure>)> {
        self.actions()
            .into_iter()
            .map(|action| {
                let Action::Answer { caller, answer } = action else { panic!("{action:?}") };
                (caller, answer)
            })
            .collect()
    }

    pub(super) fn answer(&mut self, caller: CallerId) -> Result<Access, Failure> {
        let mut answers = self.answers();
        assert_eq!(answers.len(), 1, "{answers:?}");
        let (answered, answer) = answers.remove(0);
        assert_eq!(answered, caller);
        answer
    }

    pub(super) fn refusal(&mut self, caller: CallerId) -> FailureReason {
        self.answer(caller).unwrap_err().reason
    }
}
