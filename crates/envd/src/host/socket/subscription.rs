//! One subscription, which is asked for its next item.

use futures::FutureExt as _;
use tokio::sync::{
    broadcast::{self, error::RecvError},
    oneshot,
};
use wakeful_wire::{
    Code, Problem,
    host::SessionEvent,
    rpc::{Call, CallId, SessionItem},
};

use super::{calls::Key, encode};
use crate::{
    credential::SessionStore,
    host::{HostParts, problem},
    thread::{ShellSubscription, ThreadSubscription, ThreadsError},
};

/// What a subscription says when it is asked.
#[derive(Debug)]
pub(super) enum Pulled {
    /// The frame of its next item.
    Item(String),
    /// There will be no more.
    End,
    /// It has failed.
    Failed(Problem),
    /// It was cancelled: nobody waits for it.
    Cancelled,
}

/// A subscription. Holds a position in what it follows; not asking costs nothing.
#[derive(Debug)]
pub(super) struct Subscription {
    /// Names it.
    pub(super) key: Key,
    id: CallId,
    source: Source,
    /// Resolves when the call is cancelled.
    cancelled: oneshot::Receiver<()>,
    /// Whether it has not delivered anything yet.
    pub(super) fresh: bool,
}

/// What it follows.
#[derive(Debug)]
pub(super) enum Source {
    /// The list.
    Shell(ShellSubscription),
    /// A thread.
    Thread(Box<ThreadSubscription>),
    /// The sessions.
    Sessions(Sessions),
}

impl Source {
    /// What a call subscribes to; nothing if the call is a command.
    ///
    /// # Errors
    /// If there is nothing to follow.
    pub(super) fn of(call: &Call, parts: &HostParts) -> Option<Result<Self, Problem>> {
        match call {
            Call::ShellSubscribe(call) => {
                Some(Ok(Self::Shell(parts.threads.subscribe_shell(call.cursor, call.omit))))
            }
            Call::ThreadSubscribe(call) => {
                let subscribed = parts.threads.subscribe_thread(call.thread, call.cursor);
                Some(match subscribed {
                    Ok(thread) => Ok(Self::Thread(Box::new(thread))),
                    Err(refused) => Err(problem(&ThreadsError::Refused(refused))),
                })
            }
            Call::SessionSubscribe(_) => {
                Some(Ok(Self::Sessions(Sessions::new(parts.authority.sessions().clone()))))
            }
            Call::ThreadCreate(_)
            | Call::ThreadRename(_)
            | Call::ThreadPin(_)
            | Call::ThreadSnooze(_)
            | Call::ThreadSettle(_)
            | Call::ThreadArchive(_)
            | Call::ThreadRestore(_)
            | Call::ThreadDelete(_)
            | Call::ThreadPrompt(_)
            | Call::ThreadUnqueue(_)
            | Call::ThreadRelease(_)
            | Call::ThreadCancel(_)
            | Call::ThreadAnswer(_)
            | Call::ThreadForget(_)
            | Call::ThreadMode(_)
            | Call::Activity(_)
            | Call::SessionRevoke(_)
            | Call::SessionRevokeOthers(_) => None,
        }
    }
}

impl Subscription {
    /// A subscription, and what cancels it when dropped.
    pub(super) fn new(key: Key, id: CallId, source: Source) -> (Self, oneshot::Sender<()>) {
        let (cancel, cancelled) = oneshot::channel();
        (Self { key, id, source, cancelled, fresh: true }, cancel)
    }

    /// Waits for the next item.
    pub(super) async fn next(&mut self) -> Pulled {
        let Self { id, source, cancelled, .. } = self;
        if cancelled.now_or_never().is_some() {
            return Pulled::Cancelled;
        }
        tokio::select! {
            biased;
            pulled = source.next(*id) => pulled,
            _ = cancelled => Pulled::Cancelled,
        }
    }
}

impl Source {
    async fn next(&mut self, id: CallId) -> Pulled {
        match self {
            Self::Shell(shell) => match shell.next().await {
                Some(delivery) => Pulled::Item(encode::item(id, &delivery.into_item())),
                None => Pulled::End,
            },
            Self::Thread(thread) => match thread.next().await {
                Ok(Some(delivery)) => Pulled::Item(encode::thread_item(id, delivery)),
                Ok(None) => Pulled::End,
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "a thread could not be read"
                    );
                    Pulled::Failed(
                        Problem::new(Code::Internal)
                            .detail("The host could not read the thread. Subscribe again."),
                    )
                }
            },
            Self::Sessions(sessions) => match sessions.next().await {
                Some(item) => Pulled::Item(encode::item(id, &item)),
                None => Pulled::End,
            },
        }
    }
}

/// Follows the sessions. Who falls too far behind gets the list anew.
#[derive(Debug)]
pub(super) struct Sessions {
    store: SessionStore,
    changes: broadcast::Receiver<SessionEvent>,
    listed: bool,
}

impl Sessions {
    fn new(store: SessionStore) -> Self {
        // Followed before it is listed: a change in between comes twice rather than never, and each
        // says the whole of what it is about.
        let changes = store.follow();
        Self { store, changes, listed: false }
    }

    async fn next(&mut self) -> Option<SessionItem> {
        if self.listed {
            match self.changes.recv().await {
                Ok(change) => return Some(SessionItem::Change { change }),
                Err(RecvError::Closed) => return None,
                Err(RecvError::Lagged(_)) => self.changes = self.store.follow(),
            }
        }
        self.listed = true;
        Some(SessionItem::Snapshot { sessions: self.store.list() })
    }
}
