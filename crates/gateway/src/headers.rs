//! Headers: what the program sees of a request, and what the visitor sees of its answer.
//!
//! Both maps are changed in place. [`prepare_request`] strips first and adds afterwards, so that
//! nothing a visitor names in `Connection` can take away what the gateway states
//! (`cases.md`, C04), and no spelling of an identity header gets through (C31).
//!
//! The target passes byte for byte, also a query field `auth_token` by which some programs take a
//! basic-auth pair: the gateway never puts a credential there, and never takes one away.

mod hop;
mod location;
mod request;
mod response;
mod set_cookie;

use http::{HeaderMap, HeaderName, HeaderValue};

pub use request::{RequestContext, basic, prepare_request, seen_host};
pub use response::{Place, ResponseContext, prepare_response};

/// Sets a header to a text that the gateway itself has checked; what cannot stand in a header
/// removes it, so that a visitor's value never stands in for the gateway's.
fn set(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    match HeaderValue::from_str(text) {
        Ok(value) => {
            headers.insert(name, value);
        }
        Err(_) => {
            headers.remove(name);
        }
    }
}

#[cfg(test)]
mod tests;
