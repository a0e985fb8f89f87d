//! Credentials of the environment server: who may use it, and for how long.
//!
//! The way of a client: it makes a key pair and keeps the private half. With a one-time credential,
//! which is a [grant](wakeful_wire::host::grant) of the control plane or a [pairing code](PairingCode)
//! that a person carries over, and a [proof](verify) of its key it gets an access token of one hour
//! ([`Authority::token`]). Each request then carries the token and a fresh proof
//! ([`Authority::authorize`]). For a socket it asks for a one-use ticket ([`Authority::ticket`]) and
//! opens with that ([`Authority::open_socket`]); the socket lives as long as the session behind it,
//! or behind the newer session of the same client that takes it over ([`Watch`]).
//!
//! A client of an environment renews by asking its control plane for another grant. A paired client
//! has nobody to ask: it gets a refresh token, good for as long as its session, whose life each
//! renewal prolongs.
//!
//! What decides is told the time and draws nothing: proofs, replays, grants, codes, tickets, tokens,
//! the watch of a socket, the ledger of all. Two parts act: the session file, and the store that
//! ties ledger, file and sockets together. [`Authority`] composes them; the HTTP and WebSocket side
//! calls only that and [`SessionStore`].
//!
//! Who can write the workspace can read and write the session file. The key that signs tokens
//! therefore also depends on a pepper, which whoever opens the authority takes from a place that the
//! sandbox's programs cannot read (an environment's host: the sandbox's secret), and a session
//! counts only as long as it says what was signed. Then a program that rewrites the file can end
//! sessions, and neither begin nor widen one.

mod address;
mod authority;
mod file;
mod grant;
mod key;
mod ledger;
mod options;
mod pairing;
mod policy;
mod proof;
mod refusal;
mod replay;
mod session;
mod sources;
mod store;
mod ticket;
mod token;
mod watch;

#[cfg(test)]
mod attempts;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod model;
#[cfg(test)]
mod proof_tests;
#[cfg(test)]
mod store_tests;
#[cfg(test)]
mod testing;

pub use address::{ADDRESS_MAX, AddressError, HttpAddress};
pub use authority::{Authority, PairingOffered, Presented};
pub use file::SessionFileError;
pub use grant::GrantGate;
pub use key::{Thumbprint, ThumbprintError};
pub use options::{AuthorityOptions, OpenError};
pub use pairing::{CODE_LEN, CODE_LIFETIME, PairingCode, PairingOffer, TRIES, is_near};
pub use policy::{PolicyError, SessionPolicy};
pub use proof::{PROOF_MAX, Proof, ProofPolicy, ProofTarget, verify};
pub use refusal::{CredentialError, challenge};
pub use replay::{ReplayBounds, ReplayCache};
pub use session::{LABEL_MAX, Session};
pub use sources::Sources;
pub use store::{LiveSocket, SessionStore};
pub use ticket::TICKET_LIFETIME;
pub use token::TOKEN_MAX;
pub use watch::{CloseCause, Outcome, Watch};
