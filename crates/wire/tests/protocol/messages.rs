//! The messages by name, and those that are committed beside the tests.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use wakeful_wire::{Problem, api, host, rpc};

/// Reads a message and writes it again.
fn again<T: DeserializeOwned + Serialize>(value: &Value) -> Result<Value, String> {
    let read: T = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(read).unwrap())
}

macro_rules! messages {
    ($($module:ident: $($name:ident)*;)*) => {
        /// Reads a message of this type as today's release does and writes it again.
        pub(crate) fn read(name: &str, value: &Value) -> Result<Value, String> {
            match name {
                $($(stringify!($name) => again::<$module::$name>(value),)*)*
                "Problem" => again::<Problem>(value),
                _ => panic!("no test knows how to read `{name}`"),
            }
        }
    };
}

messages! {
    rpc: ClientFrame ServerFrame Call Empty Taken Event ShellItem ThreadItem SessionItem
        ShellSnapshot Counts Rows SearchAnswer ThreadAnswer Page SessionList;
    host: Descriptor TokenRequest TokenResponse TokenError TicketResponse PairingRequest
        PairingAnswer;
    api: GrantRequest GrantAnswer KeepPrompt KeptPrompt KeptPrompts;
}

/// Types that refuse fields that they do not know: requests whose sender must learn that nothing
/// came of what it asked for.
pub(crate) const STRICT: &[&str] = &["GrantRequest", "KeepPrompt"];

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The messages of the first release: their types, and each.
pub(crate) fn first_release() -> Vec<(String, Value)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compat/release-1");
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let types: BTreeMap<String, Vec<Value>> = serde_json::from_str(&text).unwrap();
        for (name, values) in types {
            all.extend(values.into_iter().map(|value| (name.clone(), value)));
        }
    }
    assert!(all.len() > 200);
    all
}

/// A message that a newer peer sends, and what today's release makes of it.
#[derive(serde::Deserialize)]
pub(crate) struct Newer {
    /// Its type.
    #[serde(rename = "type")]
    pub(crate) name: String,
    /// As it is sent.
    pub(crate) sent: Value,
    /// As it is written again after it was read.
    pub(crate) read: Value,
}

/// The messages of a newer peer.
pub(crate) fn newer() -> Vec<Newer> {
    serde_json::from_str(include_str!("../compat/newer/messages.json")).unwrap()
}
