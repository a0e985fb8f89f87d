//! What the control plane said about routes and credentials, remembered for a while.
//!
//! Answers are shared by all cores and carry a mark of their own that says whether they still
//! hold, so a core keeps those it uses in a map of its own and asks nobody.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::OnceCell;
use wakeful_wire::time::millis;

use crate::control::Unavailable;

/// An answer, once it is there.
pub(crate) struct Slot<V> {
    value: OnceCell<Option<V>>,
    /// In milliseconds since the gateway's start; 0 while there is no answer.
    until: AtomicU64,
    dead: AtomicBool,
}

impl<V> Slot<V> {
    fn new() -> Self {
        Self { value: OnceCell::new(), until: AtomicU64::new(0), dead: AtomicBool::new(false) }
    }

    /// The answer, while it holds.
    pub(crate) fn get(&self, now: Duration) -> Option<&Option<V>> {
        self.is_live(now).then(|| self.value.get()).flatten()
    }

    pub(crate) fn is_live(&self, now: Duration) -> bool {
        !self.dead.load(Ordering::Acquire) && millis(now) < self.until.load(Ordering::Acquire)
    }

    fn kill(&self) {
        self.dead.store(true, Ordering::Release);
    }
}

/// How long answers are remembered, and how many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) found: Duration,
    pub(crate) absent: Duration,
    pub(crate) max: usize,
}

/// The answers to one kind of question. Those who ask the same at once share one question.
pub(crate) struct Remembered<K, V> {
    terms: Terms,
    slots: Mutex<HashMap<K, Arc<Slot<V>>>>,
}

impl<K: Eq + Hash + Clone, V> Remembered<K, V> {
    pub(crate) fn new(terms: Terms) -> Self {
        Self { terms, slots: Mutex::default() }
    }

    /// The answer to `key`, from memory or by `load`. The result's [`Slot::get`] is the answer.
    ///
    /// # Errors
    /// The control plane cannot be asked; that is not remembered.
    pub(crate) async fn get<F>(
        &self,
        key: &K,
        now: Duration,
        load: impl FnOnce() -> F,
    ) -> Result<Arc<Slot<V>>, Unavailable>
    where
        F: Future<Output = Result<Option<V>, Unavailable>>,
    {
        let slot = self.slot(key, now);
        slot.value
            .get_or_try_init(|| async {
                let value = load().await?;
                let ttl = if value.is_some() { self.terms.found } else { self.terms.absent };
                slot.until.store(millis(now.saturating_add(ttl)).max(1), Ordering::Release);
                Ok(value)
            })
            .await?;
        Ok(slot)
    }

    fn slot(&self, key: &K, now: Duration) -> Arc<Slot<V>> {
        let mut slots = self.slots.lock();
        let usable = |slot: &Slot<V>| {
            !slot.dead.load(Ordering::Acquire) && (!slot.value.initialized() || slot.is_live(now))
        };
        if let Some(slot) = slots.get(key).filter(|slot| usable(slot)) {
            return Arc::clone(slot);
        }
        if slots.len() >= self.terms.max {
            slots.retain(|_, slot| usable(slot));
        }
        if slots.len() >= self.terms.max {
            // Forgetting costs one more question each, remembering without a bound costs memory.
            slots.drain().for_each(|(_, slot)| slot.kill());
        }
        let slot = Arc::new(Slot::new());
        slots.insert(key.clone(), Arc::clone(&slot));
        slot
    }

    /// Forgets an answer, on every core.
    pub(crate) fn forget(&self, key: &K) {
        if let Some(slot) = self.slots.lock().remove(key) {
            slot.kill();
        }
    }

    /// Forgets the answers that fit, and every question that is still open.
    pub(crate) fn forget_where(&self, fits: impl Fn(&V) -> bool) {
        self.slots.lock().retain(|_, slot| {
            let goes = slot.value.get().is_none_or(|value| value.as_ref().is_some_and(&fits));
            if goes {
                slot.kill();
            }
            !goes
        });
    }

    /// Forgets everything.
    pub(crate) fn forget_all(&self) {
        self.slots.lock().drain().for_each(|(_, slot)| slot.kill());
    }
}

impl<K, V> std::fmt::Debug for Remembered<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remembered").field("terms", &self.terms).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    const TERMS: Terms =
        Terms { found: Duration::from_secs(30), absent: Duration::from_secs(1), max: 4 };

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(100 + seconds)
    }

    #[tokio::test]
    async fn those_who_ask_at_once_share_one_question_and_the_answer_is_remembered() {
        let remembered = Arc::new(Remembered::new(TERMS));
        let asked = Arc::<AtomicUsize>::default();
        let ask = |now| {
            let (remembered, asked) = (Arc::clone(&remembered), Arc::clone(&asked));
            async move {
                let load = || async {
                    tokio::task::yield_now().await;
                    Ok(Some(asked.fetch_add(1, Ordering::SeqCst)))
                };
                let slot = remembered.get(&"k", now, load).await.unwrap();
                *slot.get(now).unwrap()
            }
        };
        let all = futures::future::join_all((0..10).map(|_| ask(at(0)))).await;
        assert!(all.iter().all(|value| *value == Some(0)));
        assert_eq!(ask(at(29)).await, Some(0));
        assert_eq!(ask(at(30)).await, Some(1));
        remembered.forget(&"k");
        assert_eq!(ask(at(30)).await, Some(2));
        remembered.forget_where(|value| *value == 7);
        assert_eq!(ask(at(30)).await, Some(2));
        remembered.forget_where(|value| *value == 2);
        assert_eq!(ask(at(30)).await, Some(3));
    }

    #[tokio::test]
    async fn absence_is_remembered_briefly_and_failure_not_at_all() {
        let remembered = Remembered::<u8, u8>::new(TERMS);
        let down = || async { Err(Unavailable("down".to_owned())) };
        assert!(remembered.get(&1, at(0), down).await.is_err());
        let slot = remembered.get(&1, at(0), || async { Ok(None) }).await.unwrap();
        assert_eq!(slot.get(at(0)), Some(&None));
        assert_eq!(slot.get(at(1)), None);
    }

    #[tokio::test]
    async fn an_answer_to_a_question_that_was_open_when_it_was_forgotten_is_not_kept() {
        let remembered = Remembered::<u8, u8>::new(TERMS);
        let slot = remembered
            .get(&1, at(0), || async {
                remembered.forget_all();
                Ok(Some(1))
            })
            .await
            .unwrap();
        assert_eq!(slot.get(at(0)), None);
    }

    #[tokio::test]
    async fn it_is_bounded() {
        let remembered = Remembered::<usize, usize>::new(TERMS);
        for key in 0..100 {
            remembered.get(&key, at(0), || async { Ok(Some(key)) }).await.unwrap();
            assert!(remembered.slots.lock().len() <= TERMS.max);
        }
    }
}
