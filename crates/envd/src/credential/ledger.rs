//! Which sessions there are, and which sockets stand on them: the decisions, without IO.
//!
//! What is persisted and what is live meet here. A change of the persisted half is planned first
//! ([`Ledger::plan_issue`] and its like return [`Write`]s and change nothing), then written to the
//! file, and only then applied ([`Ledger::apply`]), so a failed write changes nothing at all. The
//! caller lets one such change run at a time. The live half (sockets opening, closing, the clock)
//! may change between plan and apply; `apply` therefore looks at the sockets that there are when it
//! runs, and one call of it is one step for everybody who looks: a socket never stands on two
//! sessions or on none while it moves.

use std::{collections::BTreeMap, time::Duration};

use wakeful_wire::{
    GrantId, HostSessionId, Timestamp, UserName,
    host::{Denial, Scopes, SessionEvent, SessionMethod, SessionView},
};

use super::{
    key::Thumbprint,
    session::Session,
    watch::{Outcome, Watch},
};

mod plan;

/// One live socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SocketId(u64);

/// A session to be issued.
#[derive(Debug, Clone)]
pub(super) struct Issue {
    pub(super) id: HostSessionId,
    pub(super) subject: UserName,
    pub(super) scopes: Scopes,
    pub(super) method: SessionMethod,
    pub(super) key: Thumbprint,
    pub(super) label: String,
    pub(super) lifetime: Duration,
    /// Whether every other session of the same subject and method is revoked in the same step.
    pub(super) replaces: bool,
}

/// A change of the persisted half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Write {
    /// A new session.
    Insert(Session),
    /// A session is revoked.
    Revoke { id: HostSessionId, at: Timestamp },
    /// A session lives longer.
    Extend { id: HostSessionId, expires_at: Timestamp },
    /// A session went from no socket to one.
    Connected { id: HostSessionId, at: Timestamp },
    /// A session is dropped to make room.
    Forget { id: HostSessionId },
    /// A grant is used up; only its being new lets the other writes happen.
    UseGrant { id: GrantId, remembered_until: Timestamp },
}

/// What follows from a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// A socket is told something.
    Socket(SocketId, Outcome),
    /// The list of sessions changed.
    Listing(SessionEvent),
    /// To be written, at leisure.
    Record(Write),
}

/// Sessions and sockets.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    sessions: BTreeMap<HostSessionId, Session>,
    sockets: BTreeMap<SocketId, Watch>,
    /// How many sockets stand on each session; only sessions that have some are in it.
    connections: BTreeMap<HostSessionId, u32>,
    last_sequence: u64,
    last_socket: u64,
    sessions_max: usize,
}

impl Ledger {
    /// A ledger of the sessions that the file holds.
    pub(super) fn new(sessions: impl IntoIterator<Item = Session>, sessions_max: usize) -> Self {
        let sessions: BTreeMap<_, _> = sessions.into_iter().map(|s| (s.id, s)).collect();
        let last_sequence = sessions.values().map(|s| s.sequence).max().unwrap_or_default();
        Self { sessions, last_sequence, sessions_max, ..Self::default() }
    }

    /// A session whose credentials are good.
    ///
    /// # Errors
    /// [`Denial::SessionUnknown`], [`Denial::SessionRevoked`] or [`Denial::SessionExpired`].
    pub(super) fn holding(&self, id: HostSessionId, now: Timestamp) -> Result<&Session, Denial> {
        let session = self.sessions.get(&id).ok_or(Denial::SessionUnknown)?;
        session.holds(now)?;
        Ok(session)
    }

    /// How many sockets stand on a session.
    pub(super) fn connections(&self, id: HostSessionId) -> u32 {
        self.connections.get(&id).copied().unwrap_or_default()
    }

    /// The sessions that are listed: not revoked, and not expired or still connected. In the order
    /// of their issue.
    pub(super) fn list(&self, now: Timestamp) -> Vec<SessionView> {
        let mut listed: Vec<_> = self
            .sessions
            .values()
            .map(|session| (session, self.connections(session.id)))
            .filter(|(session, sockets)| is_listed(session, *sockets, now))
            .collect();
        listed.sort_by_key(|(session, _)| session.sequence);
        listed.into_iter().map(|(session, sockets)| session.view(sockets)).collect()
    }

    /// A socket, while it is open.
    pub(super) fn socket(&self, id: SocketId) -> Option<&Watch> {
        self.sockets.get(&id)
    }

    /// The next moment at which [`Self::tick`] has work. Sessions that are kept only until their
    /// sockets have closed have none.
    pub(super) fn poll_deadline(&self) -> Option<Timestamp> {
        let sockets = self.sockets.values().filter_map(Watch::poll_deadline);
        let unconnected = self.sessions.values().filter(|s| self.connections(s.id) == 0);
        sockets.chain(unconnected.map(|session| session.expires_at)).min()
    }

    /// Applies what was written.
    pub(super) fn apply(&mut self, writes: &[Write], now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        for write in writes {
            match write {
                Write::Insert(session) => self.insert(session, now, &mut effects),
                Write::Revoke { id, at } => self.revoke(*id, *at, now, &mut effects),
                Write::Extend { id, expires_at } => self.extend(*id, *expires_at, &mut effects),
                Write::Forget { id } => {
                    self.revoke(*id, now, now, &mut effects);
                    self.sessions.remove(id);
                }
                Write::Connected { .. } | Write::UseGrant { .. } => {}
            }
        }
        effects
    }

    fn insert(&mut self, session: &Session, now: Timestamp, effects: &mut Vec<Effect>) {
        self.last_sequence = self.last_sequence.max(session.sequence);
        self.sessions.insert(session.id, session.clone());
        let mut left = Vec::new();
        for (socket, watch) in &mut self.sockets {
            if let Some(outcome) = watch.handle_issued(session, now) {
                if let Outcome::Moved { from, to } = outcome {
                    left.push(from);
                    count_up(&mut self.connections, to);
                    count_down(&mut self.connections, from);
                }
                effects.push(Effect::Socket(*socket, outcome));
            }
        }
        if !left.is_empty() {
            self.connected(session.id, now, effects);
        }
        self.tell(session.id, effects);
        left.sort_unstable();
        left.dedup();
        for from in left {
            self.settle(from, now, effects);
        }
    }

    fn revoke(
        &mut self,
        id: HostSessionId,
        at: Timestamp,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        let sockets = self.connections(id);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let was_listed = is_listed(session, sockets, now);
        session.revoked_at = Some(session.revoked_at.map_or(at, |earlier| earlier.min(at)));
        for (socket, watch) in &mut self.sockets {
            if let Some(outcome) = watch.handle_revoked(id) {
                effects.push(Effect::Socket(*socket, outcome));
            }
        }
        if was_listed {
            effects.push(Effect::Listing(SessionEvent::Removed { id }));
        }
    }

    fn extend(&mut self, id: HostSessionId, expires_at: Timestamp, effects: &mut Vec<Effect>) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.expires_at = session.expires_at.max(expires_at);
        let expires_at = session.expires_at;
        for watch in self.sockets.values_mut() {
            watch.handle_extended(id, expires_at);
        }
        self.tell(id, effects);
    }

    /// Opens a socket on a session. It stands at once on the newest session of the same client.
    ///
    /// # Errors
    /// When the session's credentials are not good any more.
    pub(super) fn connect(
        &mut self,
        id: HostSessionId,
        now: Timestamp,
    ) -> Result<(SocketId, Vec<Effect>), Denial> {
        let mut watch = Watch::new(self.holding(id, now)?.clone());
        let newest = self
            .sessions
            .values()
            .filter(|other| other.is_same_client(watch.current()) && other.holds(now).is_ok())
            .max_by_key(|other| other.sequence);
        if let Some(newest) = newest {
            watch.handle_issued(newest, now);
        }
        let current = watch.current().id;
        let mut effects = Vec::new();
        if self.connections(current) == 0 {
            self.connected(current, now, &mut effects);
        }
        self.last_socket += 1;
        let socket = SocketId(self.last_socket);
        self.sockets.insert(socket, watch);
        count_up(&mut self.connections, current);
        self.tell(current, &mut effects);
        Ok((socket, effects))
    }

    /// A socket is gone. Being told twice changes nothing.
    pub(super) fn disconnect(&mut self, socket: SocketId, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        if let Some(watch) = self.sockets.remove(&socket) {
            count_down(&mut self.connections, watch.current().id);
            self.settle(watch.current().id, now, &mut effects);
        }
        effects
    }

    /// It is this late: sockets whose session has run out must close, and sessions that have run out
    /// and are not connected are dropped.
    pub(super) fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        for (socket, watch) in &mut self.sockets {
            if let Some(outcome) = watch.handle_tick(now) {
                effects.push(Effect::Socket(*socket, outcome));
            }
        }
        let over = self.sessions.values().filter(|session| session.expires_at <= now);
        let over: Vec<_> =
            over.map(|session| session.id).filter(|id| self.connections(*id) == 0).collect();
        for id in over {
            self.drop_expired(id, &mut effects);
        }
        effects
    }

    /// A session lost a socket.
    fn settle(&mut self, id: HostSessionId, now: Timestamp, effects: &mut Vec<Effect>) {
        let sockets = self.connections(id);
        let Some(session) = self.sessions.get(&id) else { return };
        if session.expires_at <= now && sockets == 0 {
            self.drop_expired(id, effects);
        } else if session.revoked_at.is_none() {
            self.tell(id, effects);
        }
    }

    fn drop_expired(&mut self, id: HostSessionId, effects: &mut Vec<Effect>) {
        let dropped = self.sessions.remove(&id);
        if dropped.is_some_and(|session| session.revoked_at.is_none()) {
            effects.push(Effect::Listing(SessionEvent::Removed { id }));
        }
    }

    fn connected(&mut self, id: HostSessionId, now: Timestamp, effects: &mut Vec<Effect>) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.last_connected_at = Some(now);
            effects.push(Effect::Record(Write::Connected { id, at: now }));
        }
    }

    fn tell(&self, id: HostSessionId, effects: &mut Vec<Effect>) {
        if let Some(session) = self.sessions.get(&id) {
            let session = session.view(self.connections(id));
            effects.push(Effect::Listing(SessionEvent::Updated { session }));
        }
    }
}

fn count_up(connections: &mut BTreeMap<HostSessionId, u32>, id: HostSessionId) {
    *connections.entry(id).or_default() += 1;
}

fn count_down(connections: &mut BTreeMap<HostSessionId, u32>, id: HostSessionId) {
    if let Some(count) = connections.get_mut(&id) {
        *count -= 1;
        if *count == 0 {
            connections.remove(&id);
        }
    }
}

fn is_listed(session: &Session, sockets: u32, now: Timestamp) -> bool {
    session.revoked_at.is_none() && (session.expires_at > now || sockets > 0)
}

#[cfg(test)]
impl Ledger {
    /// The counts are those of the sockets, and every socket that is not closing stands on a
    /// session that holds or is about to be looked at.
    pub(super) fn check_counts(&self) {
        let mut counted: BTreeMap<HostSessionId, u32> = BTreeMap::new();
        for watch in self.sockets.values() {
            *counted.entry(watch.current().id).or_default() += 1;
        }
        assert_eq!(counted, self.connections);
    }
}
