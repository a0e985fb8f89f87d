//! Carrying effects out, in their order.

use std::sync::{Arc, Weak, atomic::Ordering};

use tokio::sync::oneshot;
use wakeful_link::{Change, DataStatus, Effect, effect::AskId};

use super::{Shared, Storing, UnderWay, events, socket, store::Job};
use crate::{clock, http::Sender};

/// The task that carries effects out.
#[derive(Debug)]
pub(super) struct Carrier {
    shared: Weak<Shared>,
    sender: Sender,
    storing: Storing,
    under_way: UnderWay,
}

impl Carrier {
    pub(super) fn new(shared: Weak<Shared>, sender: Sender, storing: Storing) -> Self {
        Self { shared, sender, storing, under_way: UnderWay::default() }
    }

    /// Runs until the link is closed or nobody holds it any more.
    pub(super) async fn run(mut self) {
        loop {
            let Some(shared) = self.shared.upgrade() else { return };
            loop {
                let effect = shared.link.lock().poll_effect();
                let Some(effect) = effect else { break };
                self.carry(&shared, effect);
            }
            let (due, closed) = {
                let link = shared.link.lock();
                (link.poll_timeout(), link.is_closed())
            };
            if closed {
                let (done, stored) = oneshot::channel();
                self.store(Job::Flush(done));
                // The store ends with this task.
                let _ended = stored.await;
                shared.closed.store(true, Ordering::Release);
                shared.ended.notify_waiters();
                return;
            }
            let until = due.map(|at| shared.now().until(at));
            let stirred = shared.stirred.notified();
            match until {
                None => stirred.await,
                Some(until) => {
                    tokio::select! {
                        () = stirred => {}
                        () = tokio::time::sleep(until) => {
                            shared.put(|link, now| link.handle_timeout(now));
                        }
                    }
                }
            }
        }
    }

    fn carry(&mut self, shared: &Arc<Shared>, effect: Effect) {
        let weak = Arc::downgrade(shared);
        match effect {
            Effect::Open { at, attempt, way, wake, enter, known } => {
                let door = socket::Door { way, wake, enter, known };
                let dialing = socket::dial(weak, self.sender.clone(), at, attempt, door);
                let task = tokio::spawn(dialing).abort_handle();
                self.forget_answered();
                self.under_way.sockets.insert((at, attempt), task);
            }
            Effect::Send { at, attempt, text } => {
                let taken = shared.outboxes.lock().get(&(at, attempt)).map(|box_| box_.send(text));
                if taken == Some(false) {
                    self.close(shared, at, attempt);
                    shared.put(|link, now| link.handle_closed(now, at, attempt, None, ""));
                }
            }
            Effect::Close { at, attempt } => self.close(shared, at, attempt),
            Effect::Ask { ask, way, request } => {
                let sender = self.sender.clone();
                let task = tokio::spawn(async move {
                    let reply = sender.send(&way, &request).await;
                    if let Some(shared) = weak.upgrade() {
                        shared.put(|link, now| link.handle_reply(now, ask, reply));
                    }
                });
                self.forget_answered();
                self.under_way.asks.insert(ask, task.abort_handle());
            }
            Effect::Withdraw { ask } => self.withdraw(ask),
            Effect::Follow { platform, stream } => {
                let following = events::follow(weak, self.sender.clone(), platform.clone(), stream);
                let task = tokio::spawn(following).abort_handle();
                self.under_way.events.insert((platform, stream), task);
            }
            Effect::Unfollow { platform, stream } => {
                if let Some(task) = self.under_way.events.remove(&(platform, stream)) {
                    task.abort();
                }
            }
            Effect::Tell(change) => {
                self.note_freshness(shared, &change);
                // Nobody may be looking.
                let _unseen = shared.changes.send(change);
            }
            Effect::LoadShell { at } => self.store(Job::LoadShell { at }),
            Effect::SaveShell { at, shell } => self.store(Job::SaveShell { at, shell }),
            Effect::LoadThread { at, stream } => self.store(Job::LoadThread { at, stream }),
            Effect::SaveThread { at, write, thread, held } => {
                self.store(Job::SaveThread { at, write, thread, held });
            }
            Effect::ForgetThread { at, write, thread } => {
                self.store(Job::ForgetThread { at, write, thread });
            }
            Effect::StoreRefresh { at, renewal, refresh_token } => {
                self.store(Job::StoreRefresh { at, renewal, refresh_token });
            }
            Effect::ForgetRefresh { at } => self.store(Job::ForgetRefresh { at }),
            Effect::Persist { token, entry, drop_credentials } => {
                self.store(Job::Persist { token, entry, drop_credentials });
            }
            Effect::Unpersist { token } => self.store(Job::Unpersist { token }),
            Effect::Clear { token } => self.store(Job::Clear { token }),
        }
    }

    fn close(
        &mut self,
        shared: &Arc<Shared>,
        at: wakeful_link::At,
        attempt: wakeful_link::AttemptId,
    ) {
        // The writing half says goodbye once its outbox is gone.
        shared.outboxes.lock().remove(&(at, attempt));
        if let Some(task) = self.under_way.sockets.remove(&(at, attempt)) {
            task.abort();
        }
    }

    fn withdraw(&mut self, ask: AskId) {
        if let Some(task) = self.under_way.asks.remove(&ask) {
            task.abort();
        }
    }

    /// Notes until when a list was live.
    fn note_freshness(&self, shared: &Shared, change: &Change) {
        let (Change::Connection(host) | Change::Shell(host)) = *change else { return };
        let is_live =
            shared.link.lock().shell(host).is_some_and(|shell| shell.status == DataStatus::Live);
        let now = clock::now();
        if shared.freshness.lock().see(host, is_live, now) {
            self.store(Job::ConfirmShell { host, at: now });
        }
    }

    /// Keeps the lists of tasks about as short as what is under way.
    fn forget_answered(&mut self) {
        if self.under_way.asks.len() > 64 {
            self.under_way.asks.retain(|_, task| !task.is_finished());
        }
        if self.under_way.sockets.len() > 64 {
            self.under_way.sockets.retain(|_, task| !task.is_finished());
        }
        if self.under_way.events.len() > 8 {
            self.under_way.events.retain(|_, task| !task.is_finished());
        }
    }

    fn store(&self, job: Job) {
        // It ends with this task, not before it.
        let _unended = self.storing.send(job);
    }
}
