//! What answers change, and what is asked because a thread is missing.

use wakeful_wire::rpc::{Rows, ThreadId};

use super::{
    Absence, Action, Families, ReadAnswer, ReadId, SearchState, ShellRows,
    action::Purpose,
    family::{Family, Load},
};
use crate::{Failure, FailureReason, Instant};

impl Families {
    /// The answer of a read, with the generation that it was made in.
    pub fn handle_read(
        &mut self,
        now: Instant,
        id: ReadId,
        generation: u64,
        answer: Result<ReadAnswer, Failure>,
    ) {
        if generation != self.generation {
            return;
        }
        let Some(purpose) = self.reads.remove(&id) else { return };
        let unusable = |seq| !self.removals.can_judge(seq);
        let too_old = answer.as_ref().is_ok_and(|answer| answer.seq().is_some_and(unusable));
        match purpose {
            Purpose::Family(key) if too_old => {
                if let Some(family) = self.families.get_mut(&key) {
                    family.handle_dropped();
                }
            }
            Purpose::Absence(thread) if too_old => {
                self.absences.want(thread, 0);
            }
            Purpose::Search if too_old => self.search.reading = None,
            Purpose::Family(key) => self.handle_family(now, key, answer),
            Purpose::Absence(thread) => self.handle_absence(thread, answer),
            Purpose::Search => self.handle_found(answer),
        }
        if self.reads.is_empty() {
            self.removals.clear();
        }
        self.changed();
        self.advance(now);
    }

    fn handle_family(&mut self, now: Instant, key: ThreadId, answer: Result<ReadAnswer, Failure>) {
        let (rows, absence) = match answer {
            Ok(ReadAnswer::Rows(rows)) => {
                let absence = self.verdict(key, &rows);
                (rows, absence)
            }
            Ok(ReadAnswer::Gone) => (Rows::default(), Some(Absence::Gone)),
            Ok(ReadAnswer::Counts(_) | ReadAnswer::Found(_)) => {
                return self.fail_family(now, key, mismatch());
            }
            Err(failure) => return self.fail_family(now, key, failure),
        };
        if let Some(absence) = absence {
            self.decide(key, absence);
        }
        let root = rows.rows.first().map_or(key, |row| row.root);
        let Some(mut family) = self.families.remove(&key) else { return };
        if root != key {
            for mounted in self.mounts.values_mut().filter(|mounted| **mounted == key) {
                *mounted = root;
            }
            if let Some(mut other) = self.families.remove(&root) {
                if let Load::Reading(read) = other.load {
                    self.reads.remove(&read);
                    self.actions.push_back(Action::Cancel(read));
                }
                other.absorb(family);
                family = other;
            }
        }
        family.handle_rows(&rows, &self.removals);
        self.families.insert(root, family);
    }

    fn fail_family(&mut self, now: Instant, key: ThreadId, failure: Failure) {
        if let Some(family) = self.families.get_mut(&key) {
            family.retry.handle_failed(now, &failure);
            family.load = Load::Failed(failure);
        }
    }

    fn handle_absence(&mut self, thread: ThreadId, answer: Result<ReadAnswer, Failure>) {
        let verdict = match answer {
            Ok(ReadAnswer::Rows(rows)) => self.verdict(thread, &rows),
            Ok(ReadAnswer::Gone) => Some(Absence::Gone),
            Ok(ReadAnswer::Counts(_) | ReadAnswer::Found(_)) | Err(_) => {
                let absence = Absence::Unknown;
                self.actions.push_back(Action::Answered { thread, absence });
                return;
            }
        };
        match verdict {
            Some(absence) => self.decide(thread, absence),
            None => {
                self.absences.want(thread, 0);
            }
        }
    }

    /// What an answer says of a thread; nothing if the thread left after the answer was made, since
    /// it may be deleted by now.
    fn verdict(&self, thread: ThreadId, rows: &Rows) -> Option<Absence> {
        if self.removals.since(thread, rows.seq) {
            return None;
        }
        let there = rows.rows.iter().any(|row| row.id == thread);
        Some(if there { Absence::Known } else { Absence::Archived })
    }

    fn decide(&mut self, thread: ThreadId, absence: Absence) {
        self.absences.decide(thread, absence);
        self.actions.push_back(Action::Answered { thread, absence });
    }

    fn handle_found(&mut self, answer: Result<ReadAnswer, Failure>) {
        self.search.reading = None;
        match answer {
            Ok(ReadAnswer::Found(found)) => self.search.handle_found(found, &self.removals),
            Ok(ReadAnswer::Rows(_) | ReadAnswer::Counts(_) | ReadAnswer::Gone) => {
                self.search.state = SearchState::Failed(mismatch());
            }
            Err(failure) => self.search.state = SearchState::Failed(failure),
        }
    }

    /// Whether a thread is there, by the list, the families and what the host said. Asks the host
    /// where nobody knows; the answer comes as [`Action::Answered`].
    pub fn absence(&mut self, now: Instant, shell: &ShellRows, thread: ThreadId) -> Absence {
        let is_member = |family: &Family| family.member(thread).is_some();
        if shell.contains_key(&thread) || self.families.values().any(is_member) {
            return Absence::Known;
        }
        if let Some(verdict) = self.absences.verdict(thread) {
            return verdict;
        }
        let asks = |purpose: &&Purpose| match purpose {
            Purpose::Family(asked) | Purpose::Absence(asked) => *asked == thread,
            Purpose::Search => false,
        };
        if !self.reads.values().any(|purpose| asks(&purpose)) {
            let asked = self.reads.len();
            self.absences.want(thread, asked);
            self.advance(now);
        }
        Absence::Unknown
    }
}

/// An answer of another kind than what was asked for.
pub(crate) fn mismatch() -> Failure {
    Failure::new(FailureReason::Remote, "The host answered something else than what was asked for.")
}
