//! What the messages of an environment server are, and stay.
//!
//! | module | shows |
//! |---|---|
//! | `schema` | the committed JSON Schema is the source's, and right |
//! | `compat` | messages of the first release and of a newer one are read |
//! | `document` | the examples of `docs/protocol.md` are messages |

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compat;
mod document;
mod messages;
mod schema;
mod validator;
