//! The token that is held, and what is known of it.

use std::time::Duration;

use crate::Instant;

use super::{Access, Secret, TokenId};

/// A token with this much life or less is not used any more: the request that it is for may take
/// as long.
pub const LIFE_LEFT: Duration = Duration::from_secs(60);
/// So many ticket requests in a row without an answer, and the token is replaced: it may be of a
/// host that is no longer where it was.
pub const SILENCES_MAX: u8 = 3;

#[derive(Debug, Default)]
pub(super) struct Tokens {
    /// The next token's number.
    next: u64,
    /// Tokens below it were had before the last sign-out.
    floor: u64,
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    access: Access,
    /// Ticket requests in a row that had no answer.
    silences: u8,
}

impl Tokens {
    /// The token that is held, if it is good for a while.
    pub(super) fn usable(&self, now: Instant) -> Option<Access> {
        let access = &self.held.as_ref()?.access;
        (now.until(access.until) > LIFE_LEFT).then(|| Access { cached: true, ..access.clone() })
    }

    /// Holds a token from now on, and none but it.
    pub(super) fn hold(&mut self, address: String, token: Secret, until: Instant) -> Access {
        let access = Access { id: TokenId(self.next), address, token, until, cached: false };
        self.next += 1;
        self.held = Some(Held { access: access.clone(), silences: 0 });
        access
    }

    /// Throws a token away, and none but it.
    pub(super) fn evict(&mut self, token: TokenId) {
        if self.held(token).is_some() {
            self.held = None;
        }
    }

    /// Throws away whatever is held.
    pub(super) fn evict_held(&mut self) {
        self.held = None;
    }

    /// A ticket request with a token had no answer. Whether that was one too many.
    pub(super) fn silent(&mut self, token: TokenId) -> bool {
        self.held(token).is_some_and(|held| {
            held.silences = held.silences.saturating_add(1);
            held.silences >= SILENCES_MAX
        })
    }

    /// A ticket request with a token was answered with a ticket.
    pub(super) fn answered(&mut self, token: TokenId) {
        if let Some(held) = self.held(token) {
            held.silences = 0;
        }
    }

    /// Whether a token was had before the last sign-out.
    pub(super) const fn is_of_the_past(&self, token: TokenId) -> bool {
        token.0 < self.floor
    }

    /// Throws away what is held, and knows all tokens so far as those of the past.
    pub(super) fn begin_anew(&mut self) {
        self.held = None;
        self.floor = self.next;
    }

    fn held(&mut self, token: TokenId) -> Option<&mut Held> {
        self.held.as_mut().filter(|held| held.access.id == token)
    }
}
