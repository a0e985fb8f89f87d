//! Many whole clients of one host, in virtual time: how they come back when it was away.
//!
//! Every client is a real [`Link`](wakeful_link::Link) that is paired with the host; the host
//! (`host`) answers by the types of the wire, and the ways between them take their time. What the
//! clients do is counted (`figures`): attempts by second and by number, when each of them was back,
//! lists that were loaded, and the bytes that a return costs.

mod client;
mod figures;
mod host;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use wakeful_link::{
    AttemptId, Network,
    effect::AskId,
    http::{Reply, Request},
    supervisor::Foreground,
};

use self::client::Client;
pub use self::{
    figures::{Attempt, Figures},
    host::{Door, Host},
};
use crate::seed::Seed;

/// Something on its way, or due.
#[derive(Debug)]
enum Event {
    /// A client's own clock.
    Due,
    /// A request reaches the host.
    Arrives(AskId, Box<Request>),
    /// A socket's request reaches the host.
    Dials(AttemptId, Dial),
    /// A frame reaches the host.
    Up(AttemptId, String),
    /// The host hears that a socket is gone.
    Left(AttemptId),
    /// An answer reaches the client.
    Answer(AskId, Reply),
    /// The client's end of a socket hears something.
    Down(AttemptId, Down),
    /// The host ends a socket of its own accord.
    Ends(AttemptId, u16),
}

#[derive(Debug)]
struct Dial {
    token: String,
    known: Option<String>,
}

#[derive(Debug)]
enum Down {
    Opened,
    NotOpened(Reply),
    Text(String),
    Closed(Option<u16>),
}

/// A place in time: the millisecond, and a number so that what comes first stays first.
type Moment = (u64, u64);

/// Many clients, and their host.
#[derive(Debug)]
pub struct Crowd {
    time: u64,
    drawn: u64,
    seed: Seed,
    /// The host.
    pub host: Host,
    clients: Vec<Client>,
    queue: BinaryHeap<Reverse<Moment>>,
    events: BTreeMap<u64, (usize, Event)>,
    /// What has been counted since [`Self::count_anew`].
    pub figures: Figures,
}

impl Crowd {
    /// So many clients, none of them started. `seed_of` gives the seed of each client's link.
    #[must_use]
    pub fn new(seed: u64, size: usize, seed_of: impl Fn(usize) -> u64) -> Self {
        let seed = Seed::new(seed);
        let host = Host::new();
        let clients =
            (0..size).map(|place| Client::new(place, seed_of(place), 5 + seed.below(96))).collect();
        Self {
            time: 0,
            drawn: 0,
            seed,
            host,
            clients,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            figures: Figures::new(size, 0),
        }
    }

    /// Starts all clients, spread over a minute, and waits until all of them are live.
    ///
    /// # Panics
    /// If one of them never is.
    pub fn start(&mut self) {
        for place in 0..self.clients.len() {
            let at = self.seed.below(60_000);
            self.put(place, at, Event::Due);
        }
        self.pass(120_000);
        let live = self.clients.iter().filter(|client| client.is_live()).count();
        assert_eq!(live, self.clients.len(), "not all came up");
    }

    /// Milliseconds since the beginning.
    #[must_use]
    pub const fn time(&self) -> u64 {
        self.time
    }

    /// How many clients are connected at this moment.
    #[must_use]
    pub fn connected(&self) -> usize {
        self.clients.iter().filter(|client| client.is_connected()).count()
    }

    /// How many clients show what the host has at this moment.
    #[must_use]
    pub fn live(&self) -> usize {
        self.clients.iter().filter(|client| client.is_live()).count()
    }

    /// How many clients wait for something to change, and make no attempts.
    #[must_use]
    pub fn blocked(&self) -> usize {
        self.clients.iter().filter(|client| client.is_blocked()).count()
    }

    /// Forgets what has been counted.
    pub fn count_anew(&mut self) {
        self.figures = Figures::new(self.clients.len(), self.time);
        self.host.forget_counts();
    }

    /// Lets time pass, in milliseconds.
    pub fn pass(&mut self, milliseconds: u64) {
        let until = self.time + milliseconds;
        while let Some(Reverse((at, number))) = self.queue.peek().copied() {
            if at > until {
                break;
            }
            self.queue.pop();
            self.time = at;
            if let Some((place, event)) = self.events.remove(&number) {
                self.happen(place, event);
            }
        }
        self.time = until;
    }

    /// Ends every socket: with a close code, or by cutting its wire.
    pub fn drop_all(&mut self, code: Option<u16>) {
        for place in 0..self.clients.len() {
            for attempt in self.clients[place].served() {
                self.down(place, attempt, Down::Closed(code));
            }
            self.clients[place].forget_served();
        }
    }

    /// So many of the clients come back from a suspension at this very moment; their sockets were
    /// cut meanwhile.
    pub fn resume_at_once(&mut self, many: usize) {
        for place in 0..many.min(self.clients.len()) {
            let client = &mut self.clients[place];
            let sockets = client.served();
            client.forget_served();
            let now = client.now(self.time);
            client.link.handle_foreground(now, Foreground::Long);
            for attempt in sockets {
                client.closed(now, attempt, None);
            }
            self.carry(place);
        }
    }

    /// All clients are told that there is a network, or none.
    pub fn network(&mut self, network: Network) {
        for place in 0..self.clients.len() {
            let now = self.clients[place].now(self.time);
            self.clients[place].link.handle_network(now, network);
            self.carry(place);
        }
    }

    fn put(&mut self, place: usize, at: u64, event: Event) {
        self.drawn += 1;
        self.queue.push(Reverse((at, self.drawn)));
        self.events.insert(self.drawn, (place, event));
    }

    /// Puts something on the wire to a client, behind what is on it.
    fn down(&mut self, place: usize, attempt: AttemptId, down: Down) {
        let at = self.clients[place].arrival(self.time);
        if let Down::Text(text) = &down {
            self.figures.bytes(text.len());
        }
        self.put(place, at, Event::Down(attempt, down));
    }

    fn happen(&mut self, place: usize, event: Event) {
        let now = self.clients[place].now(self.time);
        match event {
            Event::Due => self.clients[place].due(self.time),
            Event::Arrives(ask, request) => {
                let latency = self.clients[place].latency;
                let reply = self.host.answer(self.time, place, &request);
                self.put(place, self.time + latency, Event::Answer(ask, reply));
                return;
            }
            Event::Dials(attempt, dial) => {
                self.dialled(place, attempt, &dial);
                return;
            }
            Event::Up(attempt, text) => {
                if self.clients[place].served().contains(&attempt) {
                    for frame in self.host.heard(&text) {
                        self.down(place, attempt, Down::Text(frame));
                    }
                }
                return;
            }
            Event::Left(attempt) => {
                self.clients[place].left(attempt);
                return;
            }
            Event::Ends(attempt, code) => {
                if self.clients[place].served().contains(&attempt) {
                    self.clients[place].left(attempt);
                    self.down(place, attempt, Down::Closed(Some(code)));
                }
                return;
            }
            Event::Answer(ask, reply) => {
                let client = &mut self.clients[place];
                client.answered(&reply);
                client.link.handle_reply(now, ask, reply);
            }
            Event::Down(attempt, Down::Opened) => self.clients[place].opened(now, attempt),
            Event::Down(attempt, Down::NotOpened(reply)) => {
                self.clients[place].not_opened(now, attempt, &reply);
            }
            Event::Down(attempt, Down::Text(text)) => {
                self.clients[place].heard(now, attempt, &text);
            }
            Event::Down(attempt, Down::Closed(code)) => {
                self.clients[place].closed(now, attempt, code);
            }
        }
        self.carry(place);
    }

    fn dialled(&mut self, place: usize, attempt: AttemptId, dial: &Dial) {
        match self.host.admit(self.time, place, &dial.token, dial.known.as_deref()) {
            Err(reply) => self.down(place, attempt, Down::NotOpened(*reply)),
            Ok(greeting) => {
                self.clients[place].serve(attempt);
                self.down(place, attempt, Down::Opened);
                if let Some(greeting) = greeting {
                    self.down(place, attempt, Down::Text(greeting));
                }
                if let Door::Ends { after, code, .. } = self.host.door {
                    self.put(place, self.time + after, Event::Ends(attempt, code));
                }
            }
        }
    }

    /// Carries out what a client wants, and notes when its clock is due.
    fn carry(&mut self, place: usize) {
        let time = self.time;
        while let Some(wanted) = self.clients[place].poll(time, &mut self.figures) {
            let at = time + self.clients[place].latency;
            self.put(place, at, wanted);
        }
        if let Some(due) = self.clients[place].take_due(time) {
            self.put(place, due, Event::Due);
        }
    }
}
