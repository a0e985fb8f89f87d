//! Access tokens: had once, shared, renewed in time.
//!
//! # Theory of operation
//!
//! A socket authenticates once, with a ticket, when it is opened; a request over HTTP needs a token
//! that is good at that moment. Both ask [`Authorization`] for it, each time anew, and never keep
//! one (spec client-runtime 4.1). There is one machine for each host, so no host waits for another.
//!
//! A token is had in one of two ways ([`Way`]): for an environment with a grant of its control
//! plane that is exchanged at the host, for a paired host with the refresh token that pairing
//! brought. Whoever asks meanwhile joins the renewal that is under way and shares what becomes of
//! it; nobody's departure ends it, and a failure is answered and forgotten.
//!
//! Nothing here judges by a wall clock: a token's life is counted from the arrival of the answer
//! that brought it, and where the host thinks otherwise its 401 brings another one, once
//! ([`HttpPolicy`]). Tokens are told apart by number, so a late refusal of one never throws away
//! its successor. A sign-out, or another account, ends everything at once: what arrives later
//! belongs to a renewal that no longer exists.
//!
//! Nothing here touches a socket. The host itself moves a socket to the newer session that a
//! renewal makes; where no renewal works, the host closes it and the supervisor sees that.
//!
//! # Calling convention
//!
//! Drain [`Authorization::poll_action`] after every other call, and call
//! [`Authorization::handle_timeout`] at [`Authorization::poll_timeout`]. The shell makes proofs,
//! sends requests without following redirects, and gives back what came as a [`Reply`].
//!
//! # Bounds
//!
//! | what | bound | at it |
//! |---|---|---|
//! | callers that wait | [`CALLERS_MAX`] | the next one is refused as overloaded |
//! | a renewal, all its steps together | [`RENEWAL_LIMIT`] | it fails for everybody who waits |
//! | refusals within a renewal after which another grant or proof is tried | one | it fails |
//! | an answer's body | [`ANSWER_MAX`] | it is not what was asked for |
//! | actions that wait to be done | an answer for each caller, and those of one step | - |

mod access;
mod callers;
mod entry;
mod exchange;
mod identity;
mod live;
mod machine;
mod policy;
mod renewal;
mod reply;
mod secret;
mod steps;
mod tokens;

#[cfg(all(test, not(target_arch = "wasm32")))]
mod properties;
#[cfg(test)]
mod tests;

pub use access::{Access, Action, Asked, CallerId, Credential, Need, RenewalId, TokenId};
pub use callers::CALLERS_MAX;
pub use entry::{Entry, Way};
pub use live::{LAST_MINUTE, RENEWAL_SPACING};
pub use machine::Authorization;
pub use policy::{HttpPolicy, TICKET_LIMIT, Ticket};
pub use renewal::RENEWAL_LIMIT;
pub use reply::{ANSWER_MAX, HttpAnswer, Reply, Side};
pub use secret::Secret;
pub use tokens::{LIFE_LEFT, SILENCES_MAX};
