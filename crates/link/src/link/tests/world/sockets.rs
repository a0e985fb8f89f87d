//! Sockets: the wire between the client's end and the host's.

use wakeful_wire::{HostId, Phase, Problem, rpc::ServerFrame};

use super::{Happening, Host, Manner, Out, Reach, World};
use crate::{
    AttemptId, Instant,
    effect::{At, Enter},
    http::{HttpAnswer, Reply},
};

/// What a shell that opens a socket waits for it, in milliseconds.
const OPEN_LIMIT: u64 = 15_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Dialling,
    Open,
    /// The client wants nothing more of it.
    GivenUp,
    /// The client was told that it is gone.
    Over,
}

/// One socket, as the client and the wire have it.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) at: At,
    pub(super) attempt: AttemptId,
    host: HostId,
    wake: bool,
    enter: Enter,
    /// By what the client knows the host.
    known: Option<String>,
    end: End,
    /// Nothing gets through any more, in neither direction.
    pub(super) dead: bool,
    /// Frames keep their order.
    up_at: u64,
    down_at: u64,
}

impl Line {
    pub(super) fn dialling(
        at: At,
        attempt: AttemptId,
        host: HostId,
        wake: bool,
        (enter, known): (Enter, Option<String>),
    ) -> Self {
        let end = End::Dialling;
        Self { at, attempt, host, wake, enter, known, end, dead: false, up_at: 0, down_at: 0 }
    }

    /// Whether the client has no business with it any more.
    pub(super) fn is_given_up(&self) -> bool {
        matches!(self.end, End::GivenUp | End::Over)
    }
}

/// What reaches the client's end.
#[derive(Debug)]
pub(super) enum Down {
    Opened,
    NotOpened(Reply),
    Text(String),
    /// The host's end closed it, or the wire was cut.
    Closed(Option<u16>, &'static str),
}

pub(super) fn problem(problem: &Problem, host: Option<HostId>) -> Reply {
    Reply::Answered(HttpAnswer {
        status: problem.status,
        host,
        content_type: Some(Problem::MEDIA_TYPE.to_owned()),
        body: serde_json::to_vec(problem).expect("plain data"),
        ..HttpAnswer::default()
    })
}

/// A host's refusal of a token.
pub(super) fn challenge(host: HostId) -> Reply {
    Reply::Answered(HttpAnswer {
        status: 401,
        host: Some(host),
        challenge: Some(r#"DPoP error="invalid_token", algs="ES256 EdDSA""#.to_owned()),
        ..HttpAnswer::default()
    })
}

pub(super) fn busy(after: std::time::Duration) -> Reply {
    let body = Problem::new(wakeful_wire::Code::Overloaded);
    Reply::Answered(HttpAnswer {
        status: 503,
        retry_after: Some(after),
        content_type: Some(Problem::MEDIA_TYPE.to_owned()),
        body: serde_json::to_vec(&body).expect("plain data"),
        ..HttpAnswer::default()
    })
}

impl World {
    /// The host at an address.
    pub(super) fn host_at(&self, address: &str) -> HostId {
        let found = self.hosts.values().find(|host| host.address == address);
        found.expect("a known address").id
    }

    /// A socket's request reaches its host.
    pub(super) fn dialled(&mut self, id: u64) {
        let Some(line) = self.lines.get(&id) else { return };
        if line.is_given_up() {
            return;
        }
        let (host, wake, enter) = (line.host, line.wake, line.enter.clone());
        let known = line.known.clone();
        let time = self.time;
        let served = self.host_mut(host);
        served.counts.dials += 1;
        match served.reach {
            Reach::Silent => {
                let unanswered = Down::NotOpened(Reply::TimedOut);
                return self.later(OPEN_LIMIT, Happening::Down(id, unanswered));
            }
            Reach::Refuses => {
                let refused = Reply::Unreachable("The connection was refused.".to_owned());
                return self.say(id, Down::NotOpened(refused));
            }
            Reach::Busy(after) => return self.say(id, Down::NotOpened(busy(after))),
            Reach::Up => {}
        }
        if let Some(phase) = self.phase_of(host).filter(|phase| *phase != Phase::Ready) {
            if wake && self.wake(host) {
                return self.later(100, Happening::Dial(id));
            }
            return self.say(id, Down::NotOpened(problem(&Host::asleep(phase), None)));
        }
        let token = match &enter {
            Enter::Access(access) => access.token.reveal().to_owned(),
            Enter::Ticket(ticket) => ticket.reveal().replacen("ticket", "token", 1),
        };
        let served = self.host_mut(host);
        let Some(session) = served.session_of(time, &token) else {
            served.counts.refused += 1;
            return self.say(id, Down::NotOpened(challenge(host)));
        };
        let manner = served.manner;
        if let Manner::Forbids(status) = manner {
            let answer = HttpAnswer { status, host: Some(host), ..HttpAnswer::default() };
            return self.say(id, Down::NotOpened(Reply::Answered(answer)));
        }
        let held = super::host::Served { session, topics: Default::default() };
        served.sockets.insert(id, held);
        let greets = matches!(manner, Manner::Serves | Manner::Closes(..));
        served.counts.greeted += usize::from(greets);
        let hello = greets.then(|| served.greeting(session, known.as_deref()));
        self.say(id, Down::Opened);
        if let Some(hello) = hello {
            self.say(id, Down::Text(serde_json::to_string(&hello).expect("plain data")));
        }
        match manner {
            Manner::ClosesUngreeted(after, code) | Manner::Closes(after, code) => {
                let after = u64::try_from(after.as_millis()).expect("a short time");
                self.later(after, Happening::Ends(id, code));
            }
            Manner::SpeaksNonsense => self.say(id, Down::Text("\"nonsense\"".to_owned())),
            Manner::Serves | Manner::SaysNothing | Manner::Forbids(_) => {}
        }
    }

    /// Puts something on the wire to the client, behind what is on it.
    pub(super) fn say(&mut self, id: u64, down: Down) {
        let after = self.way();
        let time = self.time;
        let Some(line) = self.lines.get_mut(&id).filter(|line| !line.dead) else { return };
        line.down_at = line.down_at.max(time + after);
        let after = line.down_at - time;
        self.later(after, Happening::Down(id, down));
    }

    /// Carries out what a host does.
    pub(super) fn send_out(&mut self, host: HostId, out: Vec<Out>) {
        for out in out {
            match out {
                Out::Frame(line, frame) => {
                    let text = serde_json::to_string(&frame).expect("plain data");
                    self.say(line, Down::Text(text));
                }
                Out::Close(line, code, reason) => {
                    self.host_mut(host).sockets.remove(&line);
                    self.say(line, Down::Closed(Some(code), reason));
                }
            }
        }
    }

    /// Something comes to the client's end.
    pub(super) fn down(&mut self, now: Instant, id: u64, down: Down) {
        let Some(line) = self.lines.get_mut(&id) else { return };
        let silent = self.hosts[&line.host].reach == Reach::Silent;
        let arrives = !line.dead && (!silent || matches!(down, Down::NotOpened(_)));
        if line.is_given_up() || !arrives {
            // What a wire lets fall is not what follows it: nothing more comes by this one.
            line.dead |= !line.is_given_up();
            return;
        }
        let (at, attempt) = (line.at, line.attempt);
        let name = self.hosts[&at.host].name;
        match down {
            Down::Opened => {
                line.end = End::Open;
                self.link.handle_opened(now, at, attempt);
            }
            Down::NotOpened(reply) => {
                // The same attempt may open another one.
                self.lines.remove(&id);
                self.trace.not_opened(self.time, name, attempt, &reply);
                self.link.handle_not_opened(now, at, attempt, &reply);
            }
            Down::Text(text) => {
                self.trace.hears(self.time, name, attempt, &text);
                self.link.handle_text(now, at, attempt, &text);
            }
            Down::Closed(code, reason) => {
                line.end = End::Over;
                self.trace.closed(self.time, name, attempt, code, reason);
                self.link.handle_closed(now, at, attempt, code, reason);
            }
        }
    }

    /// The client sends a frame.
    pub(super) fn send(&mut self, at: At, attempt: AttemptId, text: String) {
        let after = self.way();
        let time = self.time;
        let found =
            self.lines.iter_mut().find(|(_, line)| line.at == at && line.attempt == attempt);
        let (id, line) = found.expect("a socket that was opened");
        assert!(
            line.end == End::Open || line.end == End::Over,
            "a frame on a socket that is not open"
        );
        line.up_at = line.up_at.max(time + after);
        let (id, after) = (*id, line.up_at - time);
        self.later(after, Happening::Up(id, text));
    }

    /// A frame comes to the host.
    pub(super) fn heard(&mut self, id: u64, text: &str) {
        let Some(line) = self.lines.get(&id).filter(|line| !line.dead) else { return };
        let host = line.host;
        if self.hosts[&host].reach == Reach::Silent {
            self.lines.get_mut(&id).expect("held").dead = true;
            return;
        }
        let out = self.host_mut(host).heard(id, text);
        self.send_out(host, out);
    }

    /// The client gives a socket up.
    pub(super) fn give_up(&mut self, at: At, attempt: AttemptId) {
        let after = self.way();
        let found =
            self.lines.iter_mut().find(|(_, line)| line.at == at && line.attempt == attempt);
        if let Some((id, line)) = found {
            line.end = End::GivenUp;
            let id = *id;
            self.later(after, Happening::UpClosed(id));
        }
    }

    /// The host hears that the client is gone.
    pub(super) fn left(&mut self, id: u64) {
        if let Some(line) = self.lines.remove(&id) {
            self.host_mut(line.host).sockets.remove(&id);
        }
    }

    /// The host ends a socket of its own accord.
    pub(super) fn ends(&mut self, id: u64, code: u16) {
        let Some(host) = self.lines.get(&id).map(|line| line.host) else { return };
        if self.host_mut(host).sockets.remove(&id).is_some() {
            self.say(id, Down::Closed(Some(code), ""));
        }
    }

    /// The wires of all open sockets of a host are cut: both ends notice.
    pub(in crate::link::tests) fn cut(&mut self, host: HostId) {
        for id in std::mem::take(&mut self.host_mut(host).sockets).into_keys() {
            self.say(id, Down::Closed(None, ""));
        }
    }

    /// Nothing gets through on the open sockets of a host any more, and nobody is told.
    pub(in crate::link::tests) fn kill(&mut self, host: HostId) {
        for line in self.lines.values_mut().filter(|line| line.host == host) {
            line.dead = true;
        }
    }

    /// A session ends before its time.
    pub(in crate::link::tests) fn revoke_all(&mut self, host: HostId) {
        let time = self.time;
        let served = self.host_mut(host);
        served.sessions.values_mut().for_each(|session| session.revoked = true);
        let out = served.expire(time);
        self.send_out(host, out);
    }

    pub(super) fn expires(&mut self, host: HostId) {
        let time = self.time;
        let out = self.host_mut(host).expire(time);
        self.send_out(host, out);
    }

    /// Every fifteen seconds hosts and the platform say that they live.
    pub(super) fn beats(&mut self) {
        self.later(15_000, Happening::Beats);
        let hosts: Vec<HostId> = self.hosts.keys().copied().collect();
        for host in hosts {
            let served = self.host(host);
            let head = served.log.head();
            let speaks = matches!(served.manner, Manner::Serves | Manner::Closes(..));
            let sockets: Vec<u64> = served.sockets.keys().filter(|_| speaks).copied().collect();
            for socket in sockets {
                let frame = ServerFrame::Heartbeat { head };
                self.say(socket, Down::Text(serde_json::to_string(&frame).expect("plain data")));
            }
        }
        self.platform_beats();
    }
}
