//! Whose turn it is to be asked for an item.
//!
//! A subscription is in one place at a time: due to be asked, being asked, or waiting for its item
//! to be written. Those that have delivered nothing yet are asked a few at a time, since a first
//! item may be a whole snapshot.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
};

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use tokio::sync::oneshot;
use wakeful_wire::rpc::CallId;

use super::{
    calls::Key,
    subscription::{Pulled, Source, Subscription},
};

/// How many subscriptions are asked for their first item at once.
pub(super) const LOADS_MAX: usize = 4;

/// The subscriptions of a socket.
#[derive(Default)]
pub(super) struct Pulls {
    /// To be asked for the first time.
    fresh: VecDeque<Box<Subscription>>,
    /// To be asked again.
    due: VecDeque<Box<Subscription>>,
    asked: FuturesUnordered<BoxFuture<'static, (Box<Subscription>, Pulled)>>,
    /// How many of those are asked for the first time.
    loads: usize,
    /// Whose item waits or is being written.
    waiting: HashMap<Key, Box<Subscription>>,
    /// Cancels one when dropped.
    cancels: HashMap<Key, oneshot::Sender<()>>,
}

impl fmt::Debug for Pulls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pulls").field("open", &self.cancels.len()).finish_non_exhaustive()
    }
}

impl Pulls {
    /// Adds one.
    pub(super) fn add(&mut self, key: Key, id: CallId, source: Source) {
        let (subscription, cancel) = Subscription::new(key, id, source);
        self.cancels.insert(key, cancel);
        self.fresh.push_back(Box::new(subscription));
    }

    /// Takes one away, wherever it is.
    pub(super) fn cancel(&mut self, key: Key) {
        self.cancels.remove(&key);
        self.waiting.remove(&key);
        self.fresh.retain(|subscription| subscription.key != key);
        self.due.retain(|subscription| subscription.key != key);
    }

    /// The item of one was written: it is due.
    pub(super) fn handle_written(&mut self, key: Key) {
        self.due.extend(self.waiting.remove(&key));
    }

    /// Asks the next that is due, if there is one. Returns what was there at once; `Some(None)`
    /// says that it was asked and [`Self::next`] will tell.
    pub(super) fn ask(&mut self) -> Option<Option<(Key, Pulled)>> {
        let mut subscription = match self.due.pop_front() {
            Some(subscription) => subscription,
            None if self.loads < LOADS_MAX => self.fresh.pop_front()?,
            None => return None,
        };
        self.loads += usize::from(subscription.fresh);
        let asked = async move {
            let pulled = subscription.next().await;
            (subscription, pulled)
        };
        self.asked.push(asked.boxed());
        // What is in memory is there at once: whoever asks looks at its room before asking another.
        Some(self.asked.next().now_or_never().flatten().and_then(|told| self.told(told)))
    }

    /// Whether any is being asked.
    pub(super) fn is_waiting(&self) -> bool {
        !self.asked.is_empty()
    }

    /// What one says that is being asked; nothing if it was cancelled meanwhile. For ever pending
    /// if none is being asked. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<(Key, Pulled)> {
        match self.asked.next().await {
            Some(told) => self.told(told),
            None => std::future::pending().await,
        }
    }

    fn told(&mut self, told: (Box<Subscription>, Pulled)) -> Option<(Key, Pulled)> {
        let (mut subscription, pulled) = told;
        let key = subscription.key;
        self.loads -= usize::from(subscription.fresh);
        subscription.fresh = false;
        if !self.cancels.contains_key(&key) {
            return None;
        }
        match &pulled {
            Pulled::Item(_) => {
                self.waiting.insert(key, subscription);
            }
            Pulled::End | Pulled::Failed(_) | Pulled::Cancelled => {
                self.cancels.remove(&key);
            }
        }
        Some((key, pulled))
    }
}
