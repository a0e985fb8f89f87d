//! One socket's hold on its session.

use std::{fmt, sync::Arc};

use tokio::sync::watch;

use super::Inner;
use crate::credential::{ledger::SocketId, session::Session, watch::CloseCause};

/// A socket that counts as connected until this is dropped.
pub struct LiveSocket {
    pub(super) id: SocketId,
    pub(super) inner: Arc<Inner>,
    pub(super) signal: watch::Receiver<Option<CloseCause>>,
}

impl fmt::Debug for LiveSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveSocket").field("id", &self.id).finish_non_exhaustive()
    }
}

impl LiveSocket {
    /// The session that the socket stands on now. It changes when a newer session of the same client
    /// takes the socket over; key, subject and scopes never change.
    #[must_use]
    pub fn session(&self) -> Session {
        let live = self.inner.live.lock();
        let watch = live.ledger.socket(self.id);
        watch.expect("a socket is in the ledger until it is dropped").current().clone()
    }

    /// Why the socket must close, if it must.
    #[must_use]
    pub fn closing(&self) -> Option<CloseCause> {
        *self.signal.borrow()
    }

    /// Waits until the session behind the socket has ended and says why. The socket is then closed
    /// with [`CloseCause::code`]; nothing more is taken from it or sent on it. Can be dropped and
    /// called again.
    pub async fn ended(&mut self) -> CloseCause {
        loop {
            if let Some(cause) = *self.signal.borrow_and_update() {
                return cause;
            }
            let deadline = self.session().expires_at;
            tokio::select! {
                changed = self.signal.changed() => {
                    changed.expect("a socket's signal lives until it is dropped");
                }
                () = self.inner.wait_for(Some(deadline)) => self.inner.tick(),
            }
        }
    }
}

impl Drop for LiveSocket {
    fn drop(&mut self) {
        self.inner.disconnect(self.id);
    }
}
