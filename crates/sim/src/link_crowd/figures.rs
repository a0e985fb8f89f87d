//! What is counted of a crowd.

use std::collections::BTreeMap;

/// One attempt of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Whose.
    pub client: usize,
    /// The how manieth of this client, from 1.
    pub number: u32,
    /// When, in milliseconds since the count began.
    pub at: u64,
}

/// What has been counted since a moment.
#[derive(Debug, Clone)]
pub struct Figures {
    since: u64,
    clients: usize,
    /// Every attempt, in order.
    pub attempts: Vec<Attempt>,
    made: BTreeMap<usize, u32>,
    /// When each client last became connected, in milliseconds since the count began.
    connected: BTreeMap<usize, u64>,
    /// When each client's list last became live.
    live: BTreeMap<usize, u64>,
    bytes: u64,
}

impl Figures {
    pub(super) const fn new(clients: usize, since: u64) -> Self {
        Self {
            since,
            clients,
            attempts: Vec::new(),
            made: BTreeMap::new(),
            connected: BTreeMap::new(),
            live: BTreeMap::new(),
            bytes: 0,
        }
    }

    pub(super) fn attempt(&mut self, client: usize, time: u64) {
        let made = self.made.entry(client).or_default();
        *made += 1;
        self.attempts.push(Attempt { client, number: *made, at: time - self.since });
    }

    pub(super) fn connected(&mut self, client: usize, time: u64) {
        self.connected.insert(client, time - self.since);
    }

    pub(super) fn live(&mut self, client: usize, time: u64) {
        self.live.insert(client, time - self.since);
    }

    pub(super) fn bytes(&mut self, many: usize) {
        self.bytes += u64::try_from(many).unwrap_or(u64::MAX);
    }

    /// Bytes of all frames, both ways.
    #[must_use]
    pub const fn frame_bytes(&self) -> u64 {
        self.bytes
    }

    /// The most attempts within one second, of those from this number on.
    #[must_use]
    pub fn fullest_second(&self, from: u32) -> usize {
        let mut seconds: BTreeMap<u64, usize> = BTreeMap::new();
        for attempt in self.attempts.iter().filter(|attempt| attempt.number >= from) {
            *seconds.entry(attempt.at / 1_000).or_default() += 1;
        }
        seconds.into_values().max().unwrap_or(0)
    }

    /// The most attempts of one client.
    #[must_use]
    pub fn most_attempts(&self) -> u32 {
        self.made.values().copied().max().unwrap_or(0)
    }

    /// How many attempts a client made on average.
    #[must_use]
    pub fn mean_attempts(&self) -> f64 {
        let made: u32 = self.made.values().sum();
        f64::from(made) / f64::from(u32::try_from(self.clients.max(1)).unwrap_or(u32::MAX))
    }

    /// The earliest attempt with this number, in milliseconds since the count began.
    #[must_use]
    pub fn earliest(&self, number: u32) -> Option<u64> {
        let with = self.attempts.iter().filter(|attempt| attempt.number == number);
        with.map(|attempt| attempt.at).min()
    }

    /// By when this share of the clients, in percent, was connected again, in milliseconds since
    /// the count began; nothing if that many never were.
    #[must_use]
    pub fn connected_by(&self, percent: usize) -> Option<u64> {
        self.by(&self.connected, percent)
    }

    /// The same for lists that are live.
    #[must_use]
    pub fn live_by(&self, percent: usize) -> Option<u64> {
        self.by(&self.live, percent)
    }

    fn by(&self, moments: &BTreeMap<usize, u64>, percent: usize) -> Option<u64> {
        let mut moments: Vec<u64> = moments.values().copied().collect();
        moments.sort_unstable();
        let needed = (self.clients * percent).div_ceil(100);
        moments.get(needed.checked_sub(1)?).copied()
    }
}
