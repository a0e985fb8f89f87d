//! What a link makes of each signal.

use uuid::Uuid;
use wakeful_link::{
    ConnectionPhase, Effect, Options,
    authorization::Secret,
    http::{HttpAnswer, Reply},
    registry::{Entry, Persisted},
    route::{Address, Route, Routes},
};
use wakeful_wire::{
    HostId, HostSessionId,
    host::{Scopes, TOKEN_TYPE, TokenResponse},
    rpc::Omissions,
};

use super::*;

/// What happened to the sockets that were being opened.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sockets {
    opened: usize,
    closed: usize,
}

struct Bench {
    link: Link,
    host: HostId,
    now: Instant,
}

impl Bench {
    /// A link that is just opening a socket to a host far away.
    fn opening() -> Self {
        let host = HostId::from_uuid(Uuid::from_u64_pair(1, 1));
        let options = Options {
            key: "key".to_owned(),
            label: "test".to_owned(),
            tickets: false,
            page: None,
            keep_alive: false,
            persist: false,
            omit: Omissions::default(),
        };
        let routes = Routes::of(Route::new(Address::new("https://host.example").unwrap()));
        let persisted = Persisted {
            entries: vec![Entry::paired(host, "host".to_owned(), routes)],
            uncleared: vec![],
            accounts: vec![],
        };
        let mut link = Link::new(Instant(0), 1, options);
        link.start(Instant(0), persisted, [(host, Secret::new("refresh"))]);
        let mut bench = Self { link, host, now: Instant(0) };
        assert_eq!(bench.sockets(), Sockets { opened: 1, closed: 0 });
        bench
    }

    /// Answers every request for a token, and counts sockets.
    fn sockets(&mut self) -> Sockets {
        let mut sockets = Sockets::default();
        while let Some(effect) = self.link.poll_effect() {
            if matches!(effect, Effect::Open { .. }) {
                sockets.opened += 1;
            } else if matches!(effect, Effect::Close { .. }) {
                sockets.closed += 1;
            } else if let Effect::Ask { ask, .. } = effect {
                self.link.handle_reply(self.now, ask, token());
            }
        }
        sockets
    }

    fn tell(&mut self, signal: Signal) -> Sockets {
        self.now = self.now.after(Duration::from_millis(10));
        tell(&mut self.link, self.now, signal);
        self.sockets()
    }

    fn phase(&self) -> ConnectionPhase {
        self.link.connection(self.host).unwrap().phase
    }
}

fn token() -> Reply {
    let given = TokenResponse {
        access_token: "access".to_owned(),
        token_type: TOKEN_TYPE.to_owned(),
        expires_in: 3_600,
        scope: Scopes::all(),
        refresh_token: None,
        session: HostSessionId::from_uuid(Uuid::from_u64_pair(2, 1)),
    };
    Reply::Answered(HttpAnswer {
        status: 200,
        content_type: Some("application/json".to_owned()),
        body: serde_json::to_vec(&given).unwrap(),
        ..HttpAnswer::default()
    })
}

const ANEW: Sockets = Sockets { opened: 1, closed: 1 };
const NOTHING: Sockets = Sockets { opened: 0, closed: 0 };

#[test]
fn another_way_begins_an_attempt_anew() {
    assert_eq!(Bench::opening().tell(Signal::PathChanged), ANEW);
}

#[test]
fn only_a_long_suspension_begins_an_attempt_anew() {
    let mut bench = Bench::opening();
    assert_eq!(bench.tell(Signal::Suspended(Duration::from_secs(29))), NOTHING);
    assert_eq!(bench.tell(Signal::Suspended(Duration::from_secs(30))), ANEW);
}

#[test]
fn without_a_network_an_attempt_is_given_up_and_begins_again_with_one() {
    let mut bench = Bench::opening();
    bench.tell(Signal::Network(Network::Online));
    assert_eq!(bench.tell(Signal::Network(Network::Offline)), Sockets { opened: 0, closed: 1 });
    assert_eq!(bench.phase(), ConnectionPhase::Offline);
    assert_eq!(bench.tell(Signal::Network(Network::Online)), Sockets { opened: 1, closed: 0 });
    assert_eq!(bench.phase(), ConnectionPhase::Connecting);
}
