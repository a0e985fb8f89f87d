//! What the shell brings back.

use crate::{
    AttemptId, Failure, Instant, Link,
    authorization::RenewalId,
    effect::At,
    http::Reply,
    registry::Token,
    shell::CachedShell,
    threads::{Held, StreamId, WriteId},
};

impl Link {
    /// A socket is open.
    pub fn handle_opened(&mut self, now: Instant, at: At, attempt: AttemptId) {
        self.with_scope(now, at, |link| link.handle_opened(now, attempt));
    }

    /// A socket was not opened: what the upgrade was answered with, or that it was not.
    pub fn handle_not_opened(&mut self, now: Instant, at: At, attempt: AttemptId, reply: &Reply) {
        self.with_scope(now, at, |link| link.handle_not_opened(now, attempt, reply));
    }

    /// A text frame came.
    pub fn handle_text(&mut self, now: Instant, at: At, attempt: AttemptId, text: &str) {
        self.with_scope(now, at, |link| link.handle_text(now, attempt, text));
    }

    /// A frame without content came, such as a ping.
    pub fn handle_life(&mut self, now: Instant, at: At, attempt: AttemptId) {
        self.with_scope(now, at, |link| link.handle_life(now, attempt));
    }

    /// A socket is gone: with a code if it was closed properly.
    pub fn handle_closed(
        &mut self,
        now: Instant,
        at: At,
        attempt: AttemptId,
        code: Option<u16>,
        reason: &str,
    ) {
        self.with_scope(now, at, |link| link.handle_closed(now, attempt, code, reason));
    }

    /// The cached list was read; nothing if there is none.
    pub fn handle_cached_shell(&mut self, now: Instant, at: At, cached: Option<CachedShell>) {
        self.with_scope(now, at, |link| link.handle_cached_shell(now, cached));
    }

    /// The list was stored, or could not be.
    pub fn handle_saved_shell(&mut self, now: Instant, at: At) {
        self.with_scope(now, at, |link| link.handle_saved_shell(now));
    }

    /// The cached copy of a thread was read; nothing if there is none.
    pub fn handle_cached_thread(
        &mut self,
        now: Instant,
        at: At,
        stream: StreamId,
        cached: Option<Held>,
    ) {
        self.with_scope(now, at, |link| link.handle_cached_thread(now, stream, cached));
    }

    /// A change of the cached threads was made, or could not be.
    pub fn handle_written_thread(&mut self, now: Instant, at: At, write: WriteId) {
        self.with_scope(now, at, |link| link.handle_written_thread(now, write));
    }

    /// A refresh token was stored, or could not be.
    pub fn handle_stored_refresh(
        &mut self,
        now: Instant,
        at: At,
        renewal: RenewalId,
        stored: Result<(), Failure>,
    ) {
        self.with_scope(now, at, |link| link.handle_stored_refresh(now, renewal, stored));
    }

    /// An entry was kept, or could not be.
    pub fn handle_persisted(&mut self, now: Instant, token: Token, kept: Result<(), String>) {
        self.registry.handle_persisted(token, kept);
        self.settle(now);
    }

    /// An entry was deleted with its credentials, or could not be.
    pub fn handle_unpersisted(&mut self, now: Instant, token: Token, gone: Result<(), String>) {
        self.registry.handle_unpersisted(token, gone);
        self.settle(now);
    }

    /// What is kept of a host was deleted, or could not be.
    pub fn handle_cleared(&mut self, now: Instant, token: Token, gone: Result<(), String>) {
        self.registry.handle_cleared(token, gone);
        self.settle(now);
    }
}
