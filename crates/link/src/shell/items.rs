//! What the subscription's items do to the list.

use std::sync::Arc;

use wakeful_wire::rpc::{Cursor, Seq, ShellItem, ShellRow, ShellSnapshot, ThreadId};

use super::{
    Action, Shell, ShellList,
    following::Stage,
    list::Applied,
    provenance::{Origin, Provenance},
};
use crate::{Failure, FailureReason, Instant};

impl Shell {
    /// Takes in one item. What comes before the first item of a subscription is of an older one.
    pub(super) fn take(&mut self, now: Instant, item: ShellItem) {
        let Some(following) = self.following.as_mut().filter(|following| following.is_subscribed())
        else {
            return;
        };
        let begun = matches!(following.stage, Stage::Following { .. });
        match item {
            ShellItem::Snapshot { snapshot } => self.take_snapshot(snapshot),
            ShellItem::Resumed { cursor } => self.take_resumed(now, cursor),
            ShellItem::Changes { seq, rows, removed } if begun => {
                self.take_changes(seq, rows, &removed);
            }
            ShellItem::Synchronized { cursor } if begun => self.take_marker(now, cursor),
            ShellItem::Changes { .. } | ShellItem::Synchronized { .. } | ShellItem::Unknown => {}
        }
    }

    fn take_snapshot(&mut self, snapshot: ShellSnapshot) {
        let Some(following) = &mut self.following else { return };
        following.handle_snapshot();
        following.watch.handle_progress();
        let marks = following.marks;
        let build = following.terms.release.clone();
        self.replace(snapshot, Origin::Confirmed, Some(build), None);
        self.vouch();
        self.state.error = None;
        if !marks {
            self.live();
        }
    }

    fn take_resumed(&mut self, now: Instant, cursor: Cursor) {
        let base = self.base();
        let (Some(following), Some(list)) = (&mut self.following, &mut self.state.list) else {
            return;
        };
        if base.is_none_or(|base| cursor.seq > base.seq) {
            let detail = "the host went on from another place in its list than it was asked to";
            self.defect(now, Failure::new(FailureReason::Remote, detail));
            return;
        }
        self.changed |= list.confirm(cursor.epoch);
        following.stage = Stage::Following { owed: true };
        self.provenance.origin = Origin::Confirmed;
        self.changed |= self.state.error.take().is_some();
        if !following.marks {
            self.live();
        }
    }

    fn take_changes(&mut self, seq: Seq, rows: Vec<Arc<ShellRow>>, removed: &[ThreadId]) {
        let (Some(following), Some(list)) = (&mut self.following, &mut self.state.list) else {
            return;
        };
        match list.apply(seq, rows, removed) {
            Applied::Nothing => return,
            Applied::Place => {}
            Applied::Rows => {
                self.provenance.stored = false;
                self.provenance.etag = None;
                following.handle_behind();
            }
        }
        self.provenance.partial = following.is_replaying();
        following.handle_changes();
        self.changed = true;
    }

    fn take_marker(&mut self, now: Instant, cursor: Cursor) {
        let (Some(following), Some(list)) = (&mut self.following, &mut self.state.list) else {
            return;
        };
        if cursor.epoch != list.cursor().epoch {
            let detail = "the host's list is of another start than its changes";
            self.defect(now, Failure::new(FailureReason::Remote, detail));
            return;
        }
        self.changed |= list.advance(cursor.seq) == Applied::Place;
        following.watch.handle_progress();
        self.live();
    }

    /// The rows are what the host has.
    fn live(&mut self) {
        if std::mem::take(&mut self.provenance.partial) {
            self.provenance.stored = false;
        }
        if let Some(following) = &mut self.following {
            following.handle_live();
        }
        if !self.state.verified {
            self.vouch();
        }
        self.changed |= self.state.error.take().is_some();
    }

    /// The present session has sent or confirmed the rows.
    pub(super) const fn vouch(&mut self) {
        self.state.verified = true;
        self.state.generation += 1;
        self.changed = true;
    }

    pub(super) fn defect(&mut self, now: Instant, failure: Failure) {
        let Some(following) = self.following.as_mut().filter(|following| following.is_subscribed())
        else {
            return;
        };
        following.handle_ended(now);
        following.distrusts = true;
        self.state.error = Some(failure);
        self.changed = true;
        self.actions.push_back(Action::Unsubscribe);
    }

    /// Puts a whole list in the place of what is held.
    pub(super) fn replace(
        &mut self,
        snapshot: ShellSnapshot,
        origin: Origin,
        build: Option<String>,
        etag: Option<String>,
    ) {
        let list = ShellList::of(snapshot);
        let Provenance { build: old_build, etag: old_etag, stored, .. } = &self.provenance;
        let same = self.state.list.as_ref() == Some(&list);
        let stored = *stored && same && *old_build == build && *old_etag == etag;
        self.provenance = Provenance { origin, build, etag, stored, partial: false };
        self.state.list = Some(list);
        self.changed = true;
    }
}
