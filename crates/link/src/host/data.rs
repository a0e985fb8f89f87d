//! Lists and threads: what comes by the socket, and who else must hear of it.

use std::time::Duration;

use serde_json::Value;
use wakeful_wire::rpc::{Call, Cursor, ShellItem, ThreadItem};

use super::{
    Followed, HostLink,
    errands::{self, Purpose},
};
use crate::{
    AttemptId, Failure, FailureReason, Instant,
    boundary::{self, OnFailure, Over, SubscriptionId},
    effect::{Change, Effect},
    families::{self, Basis, ChangedRows},
    session::SessionEvent,
    settled, shell,
    supervisor::Input,
    threads,
};

/// A subscription that a healthy host refuses begins anew after this at first, and this at most.
const AGAIN_LEAST: Duration = Duration::from_secs(1);
const AGAIN_MOST: Duration = Duration::from_secs(60);

/// What was last told to those who read on demand.
#[derive(Debug, Default)]
pub(super) struct Gate {
    generation: u64,
    /// Whether the list was replaced since.
    replaced: bool,
    /// What the newest snapshot of the host says that it is at.
    pub(super) snapshot: Option<Cursor>,
}

impl HostLink {
    pub(super) fn take_event(&mut self, now: Instant, attempt: AttemptId, event: SessionEvent) {
        match event {
            SessionEvent::Ready(hello) => self.greeted(now, attempt, hello),
            SessionEvent::Config(config) => {
                if self.supervisor.session() == Some(attempt) {
                    self.config = Some(config);
                    self.tell(Change::Configuration(self.host()));
                } else {
                    self.configured(attempt, config);
                }
            }
            SessionEvent::Call(event) => self.boundary.handle_event(now, attempt, event),
            SessionEvent::Alive { check, .. } => {
                self.supervisor.handle(now, Input::Alive { attempt, check: u64::from(check) });
            }
            SessionEvent::Head(head) => {
                if self.supervisor.session() == Some(attempt) {
                    self.shell.handle_head(now, head);
                    self.threads.handle_head(now, head);
                }
            }
            SessionEvent::Silent => self.supervisor.handle(now, Input::Silent { attempt }),
        }
    }

    /// A session is current from now on.
    pub(super) fn publish(&mut self, now: Instant, attempt: AttemptId) {
        let Some(hello) = self.hello_of(attempt).cloned() else { return };
        let until = self.access_of(attempt).map(|access| access.until);
        self.authorization.handle_live(now, until);
        self.config = Some(hello.config);
        self.boundary.handle_published(attempt);
        self.shell.handle_connected(now, &hello.capabilities, &hello.host.release, hello.head);
        self.threads.handle_connected(now);
        self.tell(Change::Configuration(self.host()));
    }

    pub(super) fn unpublish(&mut self, now: Instant) {
        self.asked = None;
        self.authorization.handle_live(now, None);
        self.boundary.handle_unpublished();
        self.shell.handle_disconnected(now);
        self.threads.handle_disconnected(now);
        self.note_generation(now);
        // A subscription that is to end with its session must not begin on a replacement, which may
        // be published in the same step.
        while let Some(action) = self.shell.poll_action() {
            self.keep_list(now, action);
        }
        while let Some(action) = self.threads.poll_action() {
            self.keep_threads(now, action);
        }
    }

    /// Does what requests and subscriptions need.
    pub(super) fn follow(&mut self, now: Instant, action: boundary::Action) {
        match action {
            boundary::Action::Send { attempt, sending, call } => {
                let Some(session) = self.session_mut(attempt) else { return };
                let sent = session.call(&call);
                self.boundary.handle_sent(now, sending, sent);
            }
            boundary::Action::Cancel { attempt, id } => {
                if let Some(session) = self.session_mut(attempt) {
                    session.cancel(id);
                }
            }
            boundary::Action::Finished { token, outcome } => {
                self.firsts.remove(&token);
                let host = self.host();
                self.effects.push_back(Effect::Tell(Change::Answered { host, token, outcome }));
            }
            boundary::Action::StreamItem { token, item } => {
                if self.firsts.remove(&token) {
                    self.boundary.give_up(token);
                    let (host, outcome) = (self.host(), Ok(item));
                    self.effects.push_back(Effect::Tell(Change::Answered { host, token, outcome }));
                }
            }
            boundary::Action::Build { subscription } => self.build(now, subscription),
            boundary::Action::Started { subscription } => {
                if self.followed.get(&subscription) == Some(&Followed::Shell) {
                    self.shell.handle_started(now);
                }
            }
            boundary::Action::Item { subscription, item } => {
                self.take_item(now, subscription, item);
            }
            // What is held stays; the next session begins it anew.
            boundary::Action::Lost { .. } => {}
            boundary::Action::Failed { subscription, failure, .. } => {
                self.subscription_failed(now, subscription, failure);
            }
            boundary::Action::Over { subscription, over } => self.over(now, subscription, over),
        }
    }

    fn build(&mut self, now: Instant, subscription: SubscriptionId) {
        let call = match self.followed.get(&subscription) {
            Some(Followed::Shell) => Some(Call::ShellSubscribe(self.shell.subscription_input())),
            Some(Followed::Thread(stream)) => {
                self.threads.subscription_input(now, *stream).map(Call::ThreadSubscribe)
            }
            None => None,
        };
        match call {
            Some(call) => self.boundary.handle_input(subscription, call),
            None => self.unfollow(subscription),
        }
    }

    fn unfollow(&mut self, subscription: SubscriptionId) {
        self.followed.remove(&subscription);
        self.boundary.unsubscribe(subscription);
    }

    fn subscription_failed(&mut self, now: Instant, subscription: SubscriptionId, why: Failure) {
        match self.followed.get(&subscription) {
            Some(Followed::Shell) => self.shell.handle_subscription_failed(now, why),
            Some(Followed::Thread(stream)) => self.threads.handle_failed(now, *stream, why),
            None => {}
        }
    }

    fn over(&mut self, now: Instant, subscription: SubscriptionId, over: Over) {
        let Some(followed) = self.followed.remove(&subscription) else { return };
        match (followed, over) {
            (Followed::Thread(stream), Over::Gone(_)) => self.threads.handle_gone(now, stream),
            (Followed::Thread(stream), Over::Failed(failure)) => {
                self.threads.handle_failed(now, stream, failure);
            }
            (Followed::Shell, Over::Gone(problem)) => {
                self.shell.handle_subscription_ended(now, crate::session::failure_of(&problem));
            }
            (Followed::Shell, Over::Failed(failure)) => {
                self.shell.handle_subscription_ended(now, failure);
            }
        }
    }

    fn take_item(&mut self, now: Instant, subscription: SubscriptionId, item: Value) {
        match self.followed.get(&subscription).copied() {
            Some(Followed::Shell) => match serde_json::from_value(item) {
                Ok(item) => self.take_list(now, item),
                Err(_) => {
                    let detail = "The host's list cannot be read.";
                    self.shell.handle_defect(now, Failure::new(FailureReason::Remote, detail));
                }
            },
            Some(Followed::Thread(stream)) => match serde_json::from_value::<ThreadItem>(item) {
                Ok(item) => self.threads.handle_item(now, stream, item),
                Err(_) => self.threads.handle_unreadable(now, stream),
            },
            None => {}
        }
    }

    /// Takes an item of the list in, and tells those who complete the list.
    fn take_list(&mut self, now: Instant, item: ShellItem) {
        if let (ShellItem::Changes { seq, rows, removed }, Some(list)) =
            (&item, &self.shell.state().list)
        {
            let from = list.cursor().seq;
            let changes = ChangedRows { from, seq: *seq, rows, removed };
            self.settled.handle_changes(now, list.map(), changes);
            self.families.handle_changes(changes);
            for row in rows {
                self.threads.handle_shell_row(now, row);
            }
            for thread in removed {
                self.threads.handle_shell_removed(now, *thread);
            }
        }
        let snapshot = match &item {
            ShellItem::Snapshot { snapshot } => Some(snapshot.cursor),
            ShellItem::Resumed { .. }
            | ShellItem::Changes { .. }
            | ShellItem::Synchronized { .. }
            | ShellItem::Unknown => None,
        };
        self.shell.handle_item(now, item);
        if let Some(cursor) = snapshot {
            self.handle_replaced(now, cursor);
        }
        self.note_generation(now);
    }

    /// The host has sent a whole list.
    pub(super) fn handle_replaced(&mut self, now: Instant, cursor: Cursor) {
        self.gate.replaced = true;
        self.gate.snapshot = Some(cursor);
        self.handle_rows(now);
    }

    /// The rows are others, all at once.
    pub(super) fn handle_rows(&mut self, now: Instant) {
        if let Some(list) = &self.shell.state().list {
            let rows: Vec<_> = list.rows().cloned().collect();
            self.threads.handle_shell(now, &rows);
        }
    }

    /// Tells those who read on demand which list they complete; none while no session has confirmed
    /// it.
    pub(super) fn note_generation(&mut self, now: Instant) {
        let state = self.shell.state();
        let generation = if state.verified { state.generation } else { 0 };
        if generation == self.gate.generation {
            return;
        }
        self.gate.generation = generation;
        let basis = if generation > 0 && std::mem::take(&mut self.gate.replaced) {
            Basis::Snapshot
        } else {
            Basis::Resumed
        };
        let seq = state.cursor().unwrap_or_default().seq;
        let older = state.list.as_ref().and_then(|list| list.older_settled().cloned());
        self.families.handle_generation(now, generation, basis);
        self.settled.handle_generation(now, generation, basis, seq, older.as_ref());
    }

    /// Does what the list needs.
    pub(super) fn keep_list(&mut self, now: Instant, action: shell::Action) {
        match action {
            shell::Action::Fetch { id, omit, etag } => {
                let path = format!(
                    "/shell?families={}&older_settled={}",
                    omit.families, omit.older_settled
                );
                self.read(now, path, etag, Purpose::Shell(id));
            }
            shell::Action::CancelFetch { id } => {
                self.withdraw(|purpose| *purpose == Purpose::Shell(id));
            }
            shell::Action::Subscribe => self.subscribe(now, Followed::Shell),
            shell::Action::Unsubscribe => {
                if let Some(subscription) = self.subscription_of(Followed::Shell) {
                    self.unfollow(subscription);
                }
            }
            shell::Action::Resubscribe => {
                if let Some(subscription) = self.subscription_of(Followed::Shell) {
                    self.boundary.resubscribe(subscription);
                }
            }
            shell::Action::Save(shell) => {
                self.effects.push_back(Effect::SaveShell { at: self.at, shell });
            }
            shell::Action::Changed => {
                self.note_generation(now);
                self.tell(Change::Shell(self.host()));
            }
        }
    }

    fn subscription_of(&self, what: Followed) -> Option<SubscriptionId> {
        self.followed.iter().find(|(_, held)| **held == what).map(|(id, _)| *id)
    }

    fn subscribe(&mut self, now: Instant, what: Followed) {
        match self.boundary.subscribe(OnFailure::After { least: AGAIN_LEAST, most: AGAIN_MOST }) {
            Ok(subscription) => {
                self.followed.insert(subscription, what);
            }
            Err(failure) => match what {
                Followed::Shell => self.shell.handle_subscription_ended(now, failure),
                Followed::Thread(stream) => self.threads.handle_failed(now, stream, failure),
            },
        }
    }

    /// Does what the threads need.
    pub(super) fn keep_threads(&mut self, now: Instant, action: threads::Action) {
        let at = self.at;
        match action {
            threads::Action::LoadCache { stream } => {
                self.effects.push_back(Effect::LoadThread { at, stream });
            }
            threads::Action::Subscribe { stream } => {
                self.subscribe(now, Followed::Thread(stream));
            }
            threads::Action::Unsubscribe { stream } => {
                if let Some(subscription) = self.subscription_of(Followed::Thread(stream)) {
                    self.unfollow(subscription);
                }
            }
            threads::Action::Resubscribe { stream } => {
                if let Some(subscription) = self.subscription_of(Followed::Thread(stream)) {
                    self.boundary.resubscribe(subscription);
                }
            }
            threads::Action::Save { write, thread, held } => {
                self.effects.push_back(Effect::SaveThread { at, write, thread, held });
            }
            threads::Action::Forget { write, thread } => {
                self.effects.push_back(Effect::ForgetThread { at, write, thread });
            }
            threads::Action::FetchPage { fetch, thread, before } => {
                let path = errands::page_path(thread, before);
                self.read(now, path, None, Purpose::Page(fetch));
            }
            threads::Action::CancelFetch { fetch } => {
                self.withdraw(|purpose| *purpose == Purpose::Page(fetch));
            }
            threads::Action::Changed { thread } => {
                self.tell(Change::Thread { host: self.host(), thread });
            }
        }
    }

    /// Does what the on-demand rows need.
    pub(super) fn keep_families(&mut self, now: Instant, action: families::Action) {
        match action {
            families::Action::Read(read) => {
                let path = errands::path_of(&read.what);
                self.read(now, path, None, Purpose::Families(read));
            }
            families::Action::Cancel(id) => {
                self.withdraw(|purpose| matches!(purpose, Purpose::Families(read) if read.id == id))
            }
            families::Action::Changed => self.tell(Change::Rows(self.host())),
            families::Action::Answered { thread, absence } => {
                let host = self.host();
                self.effects.push_back(Effect::Tell(Change::Absence { host, thread, absence }));
            }
        }
    }

    /// Does what the older settled threads need.
    pub(super) fn keep_settled(&mut self, now: Instant, action: settled::Action) {
        match action {
            settled::Action::Read(read) => {
                let path = errands::path_of(&read.what);
                self.read(now, path, None, Purpose::Settled(read));
            }
            settled::Action::Cancel(id) => {
                self.withdraw(|purpose| matches!(purpose, Purpose::Settled(read) if read.id == id));
            }
            settled::Action::Changed => self.tell(Change::Rows(self.host())),
        }
    }
}
