//! Reading what a newer peer says.

use serde::{Deserialize as _, Deserializer, de::DeserializeOwned};
use serde_json::Value;

/// Reads a field that may hold a value that this release does not know, and then counts as absent.
///
/// # Errors
/// Only what the format itself refuses.
pub(crate) fn known<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}
