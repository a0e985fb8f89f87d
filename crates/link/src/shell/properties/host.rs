//! A host that keeps a list: its log in memory, its starts, and what a subscriber is sent.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use wakeful_wire::rpc::{Cursor, Epoch, Omissions, Seq, ShellItem, ShellRow, ShellSnapshot};

use super::super::{Fetched, bench};

/// What an event does to a thread's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// It changes it, or makes it.
    Put(u128),
    /// It takes it off the list.
    Remove(u128),
    /// Nothing.
    Content,
}

/// The newest change of each thread: its sequence, and whether it is on the list since.
pub(super) type Newest = BTreeMap<u128, (u64, bool)>;

/// The log that one start of the host has seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Log(Vec<Event>);

impl Log {
    pub(super) fn newest(&self) -> Newest {
        let mut newest = Newest::new();
        for (seq, event) in (1..).zip(&self.0) {
            match event {
                Event::Put(id) => newest.insert(*id, (seq, true)),
                Event::Remove(id) => newest.insert(*id, (seq, false)),
                Event::Content => None,
            };
        }
        newest
    }

    pub(super) fn has(&self, id: u128, seq: u64) -> bool {
        (1..).zip(&self.0).any(|(at, event)| at == seq && *event == Event::Put(id))
    }
}

/// The host.
#[derive(Debug)]
pub(super) struct Host {
    /// Its release.
    pub(super) release: u8,
    /// Every start that ever was, with what it has seen, lost ones included.
    pub(super) logs: BTreeMap<u64, Log>,
    /// The starts that the present log knows, each with the first sequence it could write.
    starts: Vec<(u64, u64)>,
    log: Log,
}

impl Host {
    pub(super) fn new() -> Self {
        let log = Log(vec![Event::Put(0), Event::Put(1), Event::Content, Event::Put(2)]);
        let mut host = Self { release: 1, logs: BTreeMap::new(), starts: Vec::new(), log };
        host.restart(1, 0);
        host
    }

    pub(super) const fn release_text(release: u8) -> &'static str {
        if release == 1 { "1" } else { "2" }
    }

    /// Starts anew, maybe as another release, maybe from a copy that lacks the newest events.
    pub(super) fn restart(&mut self, release: u8, lost: usize) {
        self.log.0.truncate(self.log.0.len().saturating_sub(lost));
        let head = self.head();
        self.starts.retain(|(_, first)| *first <= head);
        let epoch = self.logs.keys().last().map_or(1, |last| last + 1);
        self.starts.push((epoch, head + 1));
        self.release = release;
        self.log.0.push(Event::Content);
        self.logs.insert(epoch, self.log.clone());
    }

    pub(super) fn write(&mut self, event: Event) {
        self.log.0.push(event);
        *self.logs.entry(self.epoch()).or_default() = self.log.clone();
    }

    fn head(&self) -> u64 {
        u64::try_from(self.log.0.len()).expect("a short log")
    }

    pub(super) fn epoch(&self) -> u64 {
        self.starts.last().map_or(0, |(epoch, _)| *epoch)
    }

    pub(super) fn cursor(&self) -> Cursor {
        bench::cursor(self.epoch(), self.head())
    }

    pub(super) fn newest(&self) -> Newest {
        self.log.newest()
    }

    fn confirms(&self, cursor: Cursor) -> bool {
        let Some(place) = self.starts.iter().position(|(epoch, _)| Epoch(*epoch) == cursor.epoch)
        else {
            return false;
        };
        match self.starts.get(place + 1) {
            Some((_, first)) => cursor.seq.0 < *first,
            None => cursor.seq.0 <= self.head(),
        }
    }

    /// A row as this release makes it.
    fn row(&self, id: u128, seq: u64) -> Arc<ShellRow> {
        let agent = Self::release_text(self.release).to_owned();
        Arc::new(ShellRow { agent, ..ShellRow::clone(&bench::row(id, seq)) })
    }

    pub(super) fn snapshot(&self, omit: Omissions) -> ShellSnapshot {
        let rows = self.newest().into_iter().filter(|(id, (_, listed))| {
            // Odd threads stand for idle subagents.
            *listed && !(omit.families && id % 2 == 1)
        });
        ShellSnapshot {
            cursor: self.cursor(),
            omitted: omit,
            rows: rows.map(|(id, (seq, _))| self.row(id, seq)).collect(),
            older_settled: None,
        }
    }

    /// Answers a read.
    pub(super) fn read(&self, omit: Omissions, etag: Option<&str>) -> Fetched {
        let held = etag.and_then(|etag| {
            let mut parts = etag.split('.').map(|part| part.parse::<u64>().ok());
            Some((bench::cursor(parts.next()??, parts.next()??), parts.next()??))
        });
        let newest = self.newest().into_values().map(|(seq, _)| seq).max().unwrap_or(0);
        if let Some((held, left_out)) = held
            && left_out == u64::from(omit.families)
            && self.confirms(held)
            && newest <= held.seq.0
        {
            return Fetched::NotModified;
        }
        let Cursor { epoch, seq } = self.cursor();
        let etag = format!("{}.{}.{}", epoch.0, seq.0, u8::from(omit.families));
        Fetched::Snapshot { snapshot: Box::new(self.snapshot(omit)), etag: Some(etag) }
    }
}

#[derive(Debug, Clone, Copy)]
enum Marker {
    First(u64),
    Second(u64),
    Sent,
}

/// One subscriber.
#[derive(Debug)]
pub(super) struct Feed {
    omit: Omissions,
    asked: Option<Option<Cursor>>,
    at: u64,
    marker: Marker,
}

impl Feed {
    pub(super) const fn new(omit: Omissions, cursor: Option<Cursor>) -> Self {
        Self { omit, asked: Some(cursor), at: 0, marker: Marker::Sent }
    }

    /// The next item, with at most this many rows; a gap of more than twelve is too large.
    pub(super) fn poll(&mut self, host: &Host, most: usize) -> Option<ShellItem> {
        if let Some(asked) = self.asked.take() {
            let known =
                asked.filter(|cursor| host.confirms(*cursor) && !self.is_far(host, cursor.seq));
            return Some(match known {
                Some(cursor) => {
                    self.settle(cursor.seq.0, host.head());
                    ShellItem::Resumed { cursor: bench::cursor(host.epoch(), cursor.seq.0) }
                }
                None => self.snapshot(host),
            });
        }
        if self.is_far(host, Seq(self.at)) {
            return Some(self.snapshot(host));
        }
        let after = self.after(host);
        let reached = |until: u64| after.first().is_none_or(|(seq, ..)| *seq > until);
        if let Marker::First(until) = self.marker
            && reached(until)
        {
            self.marker = Marker::Second(host.head());
        }
        if let Marker::Second(until) = self.marker
            && reached(until)
        {
            self.marker = Marker::Sent;
            self.at = self.at.max(until);
            return Some(bench::marker(host.epoch(), self.at));
        }
        // Once the marker was sent, what there is goes in one item.
        let most = if matches!(self.marker, Marker::Sent) { usize::MAX } else { most };
        let part: Vec<_> = after.into_iter().take(most).collect();
        self.at = part.last()?.0;
        let listed = |wanted: bool| part.iter().filter(move |(_, _, listed)| *listed == wanted);
        Some(ShellItem::Changes {
            seq: Seq(self.at),
            rows: listed(true).map(|(seq, id, _)| host.row(*id, *seq)).collect(),
            removed: listed(false).map(|(_, id, _)| bench::thread(*id)).collect(),
        })
    }

    /// Whether it has nothing to send.
    pub(super) fn is_idle(&self, host: &Host) -> bool {
        let told = self.asked.is_none() && matches!(self.marker, Marker::Sent);
        told && self.after(host).is_empty()
    }

    /// Forgets to send what it would send next. Returns whether there was anything.
    pub(super) fn lose(&mut self, host: &Host) -> bool {
        let loses = !self.is_idle(host);
        self.at = host.head();
        loses
    }

    fn after(&self, host: &Host) -> BTreeSet<(u64, u128, bool)> {
        let newest = host.newest().into_iter().map(|(id, (seq, listed))| (seq, id, listed));
        newest.filter(|(seq, ..)| *seq > self.at).collect()
    }

    fn is_far(&self, host: &Host, at: Seq) -> bool {
        host.newest().values().filter(|(seq, _)| *seq > at.0).count() > 12
    }

    fn snapshot(&mut self, host: &Host) -> ShellItem {
        self.settle(host.head(), host.head());
        ShellItem::Snapshot { snapshot: host.snapshot(self.omit) }
    }

    const fn settle(&mut self, at: u64, head: u64) {
        self.at = at;
        self.marker = Marker::First(head);
    }
}
