//! Secrets that somebody else holds: tokens, cookies, tickets. Only their hash is kept here.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::Sources;

/// The longest text that is looked at as a secret, in bytes. The platform's own have 43 to 46.
pub const SECRET_MAX: usize = 128;

/// A freshly drawn secret with 256 bits.
pub(super) struct Fresh {
    /// What its holder gets, once.
    pub(super) text: String,
    /// What is kept.
    pub(super) trace: Trace,
}

/// What is kept of a secret.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Trace {
    /// Finds the row: the beginning of the hash, in hexadecimal.
    pub(super) id: String,
    /// The SHA-256 of the whole text.
    pub(super) hash: [u8; 32],
}

/// Draws a secret of 256 bits behind `prefix`.
pub(super) fn draw(prefix: &str, sources: &Sources) -> Fresh {
    let mut bytes = [0; 32];
    sources.fill(&mut bytes);
    let text = format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes));
    let trace = trace(&text);
    Fresh { text, trace }
}

/// Sixteen random bytes as text: a password that the platform makes.
pub(crate) fn draw_password(sources: &Sources) -> String {
    let mut bytes = [0; 24];
    sources.fill(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// What would be kept of this text.
pub(super) fn trace(text: &str) -> Trace {
    let hash = hash(text);
    let id = hash[..8].iter().fold(String::with_capacity(16), |mut id, byte| {
        use std::fmt::Write as _;
        // Writing to a string cannot fail.
        let _ = write!(id, "{byte:02x}");
        id
    });
    Trace { id, hash }
}

/// The SHA-256 of a text.
pub(super) fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Whether a stored hash is this one, in a time that does not depend on where they differ.
pub(super) fn matches(stored: &[u8], hash: &[u8; 32]) -> bool {
    stored.ct_eq(hash).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::testing::counting_sources;

    #[test]
    fn a_secret_has_256_bits_and_its_trace_does_not_hold_it() {
        let sources = counting_sources();
        let first = draw("wk_", &sources);
        let second = draw("wk_", &sources);
        assert_eq!(first.text.len(), 3 + 43);
        assert_ne!(first.text, second.text);
        assert_ne!(first.trace.id, second.trace.id);
        assert_eq!(first.trace.id.len(), 16);
        assert!(trace(&first.text) == first.trace);
    }

    #[test]
    fn only_the_whole_hash_matches() {
        let right = hash("a");
        assert!(matches(&right, &hash("a")));
        assert!(!matches(&right, &hash("b")));
        assert!(!matches(&right[..31], &hash("a")));
        assert!(!matches(&[], &hash("a")));
    }
}
