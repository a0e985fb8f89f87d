//! What follows from the present state: reads, the subscription, saves, and what is published.

use wakeful_wire::rpc::Cursor;

use super::{
    Action, CACHE_PATIENCE, CachedShell, FetchId, Life, RESUME_PATIENCE, Shell,
    cached::READER,
    following::Stage,
    load::{Asked, Load},
    provenance::{Guess, Origin},
};
use crate::{DataStatus, Instant};

impl Shell {
    /// Compares what this attempt has read with what its session says.
    pub(super) fn settle(&mut self) {
        let (Some(following), Some(list)) = (&self.following, &self.state.list) else { return };
        if !matches!(self.load, Load::Answered) {
            return;
        }
        let terms = &following.terms;
        if self.provenance.is_confirmed_by(list, terms) {
            self.provenance.origin = Origin::Confirmed;
            self.provenance.build = Some(terms.release.clone());
            self.vouch();
        } else if self.provenance.origin == Origin::Early {
            self.provenance.origin = Origin::Unconfirmed;
        }
    }

    /// From where the present session may go on.
    pub(super) fn base(&self) -> Option<Cursor> {
        let following = self.following.as_ref().filter(|following| !following.distrusts)?;
        let list = self.state.list.as_ref()?;
        self.provenance.is_base(list, &following.terms).then(|| list.cursor())
    }

    /// What the next session is expected to say.
    pub(super) fn expected(&self) -> Guess {
        self.guess.clone().unwrap_or(Guess { build: None, omit: self.wanted })
    }

    /// The present session's part is over.
    pub(super) fn leave(&mut self) {
        if self.following.take().is_some_and(|following| following.is_subscribed()) {
            self.actions.push_back(Action::Unsubscribe);
        }
        self.end_load();
        self.changed |= self.state.error.take().is_some();
        self.changed |= std::mem::take(&mut self.state.verified);
        self.saving.flush();
    }

    /// The present attempt's read is over, and what it brought was not confirmed.
    pub(super) fn end_load(&mut self) {
        self.cancel_load();
        self.load = Load::Unasked;
        if self.provenance.origin == Origin::Early {
            self.provenance.origin = Origin::Unconfirmed;
        }
    }

    pub(super) fn cancel_load(&mut self) {
        if let Load::Asked(Asked { id, .. }) = std::mem::replace(&mut self.load, Load::Ended) {
            self.actions.push_back(Action::CancelFetch { id });
        }
    }

    /// Does what follows from the present state.
    pub(super) fn proceed(&mut self, now: Instant) {
        if self.life == Life::Open {
            self.ask(now);
            self.subscribe(now);
            if let Some(following) = &mut self.following {
                let held = following.held(self.state.list.as_ref());
                following.watch.compare(now, held);
            }
        }
        self.save(now);
        self.publish();
    }

    /// Reads the list over HTTP, if that can bring something.
    fn ask(&mut self, now: Instant) {
        let waiting = match &self.load {
            Load::Unasked => None,
            Load::Cache(until) => Some(*until),
            Load::Asked(_) | Load::Answered | Load::Ended => return,
        };
        let Some((guess, etag)) = self.read_worth_making() else {
            self.load = Load::Unasked;
            return;
        };
        if !self.cache_read {
            let until = waiting.unwrap_or_else(|| now.after(CACHE_PATIENCE));
            if now < until {
                self.load = Load::Cache(until);
                return;
            }
        }
        self.fetches += 1;
        let id = FetchId(self.fetches);
        let Guess { build, omit } = guess;
        self.actions.push_back(Action::Fetch { id, omit, etag: etag.clone() });
        self.load = Load::Asked(Asked { id, omit, build, etag, since: now });
    }

    /// What to read for, and with which tag.
    fn read_worth_making(&self) -> Option<(Guess, Option<String>)> {
        match &self.following {
            Some(following) => {
                let wanted = following.stage == Stage::Loading && self.base().is_none();
                let terms = &following.terms;
                let build = Some(terms.release.clone());
                wanted.then_some((Guess { build, omit: terms.omit }, None))
            }
            None if self.prepared => {
                let guess = self.expected();
                match &self.state.list {
                    Some(list) => {
                        let read = self.provenance.early_read(list, &guess)?;
                        Some((guess, read.etag))
                    }
                    None => Some((guess, None)),
                }
            }
            None => None,
        }
    }

    /// Lets the subscription begin, once no answer over HTTP can land on its rows.
    fn subscribe(&mut self, now: Instant) {
        let Some(following) = &self.following else { return };
        if following.stage != Stage::Loading {
            return;
        }
        let patient = now < following.since.after(RESUME_PATIENCE);
        let ready = match &self.load {
            Load::Cache(_) => false,
            Load::Asked(asked) => {
                asked.is_hopeless(&following.terms) || self.base().is_some() && !patient
            }
            Load::Unasked | Load::Answered | Load::Ended => true,
        };
        if !ready {
            return;
        }
        self.cancel_load();
        if let Some(following) = &mut self.following {
            following.stage = Stage::Awaiting;
        }
        self.actions.push_back(Action::Subscribe);
    }

    /// Stores the list, if that is due. Only what a session has confirmed is stored.
    fn save(&mut self, now: Instant) {
        let worth =
            self.persist && self.provenance.origin == Origin::Confirmed && !self.provenance.stored;
        if worth {
            self.saving.handle_changed(now);
        } else {
            self.saving.clear();
        }
        if self.life == Life::Finished {
            self.saving.flush();
        }
        if !self.saving.handle_timeout(now) {
            return;
        }
        if let (Some(list), Some(build)) = (&self.state.list, &self.provenance.build) {
            let cached = CachedShell {
                snapshot: list.to_snapshot(),
                build: build.clone(),
                reader: READER.to_owned(),
                etag: self.provenance.etag.clone(),
                partial: self.provenance.partial,
            };
            self.provenance.stored = true;
            self.actions.push_back(Action::Save(Box::new(cached)));
        }
    }

    fn publish(&mut self) {
        let resting = match self.state.list {
            Some(_) => DataStatus::Cached,
            None => DataStatus::Empty,
        };
        let status = match &self.following {
            Some(following) if following.live => DataStatus::Live,
            Some(_) if self.state.error.is_none() => DataStatus::Synchronizing,
            None if self.prepared => DataStatus::Synchronizing,
            Some(_) | None => resting,
        };
        self.changed |= std::mem::replace(&mut self.state.status, status) != status;
        if std::mem::take(&mut self.changed) {
            self.actions.push_back(Action::Changed);
        }
    }
}
