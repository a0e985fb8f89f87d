//! Messages of the first release, and of a newer one, are read.
//!
//! The files below `tests/compat/release-1` are never changed: they are what clients and logs of
//! that release hold. What is added later has files of its own.

use serde_json::{Value, json};

use super::messages::{self, STRICT};

/// Whether everything that was sent is still there. What has a default may have come in.
fn holds(written: &Value, sent: &Value) -> Result<(), String> {
    match (written, sent) {
        (Value::Object(written), Value::Object(sent)) => {
            for (name, value) in sent {
                let kept = written.get(name).ok_or_else(|| format!("`{name}` is lost"))?;
                holds(kept, value).map_err(|error| format!("{name}: {error}"))?;
            }
            Ok(())
        }
        (Value::Array(written), Value::Array(sent)) if written.len() == sent.len() => {
            written.iter().zip(sent).try_for_each(|(written, sent)| holds(written, sent))
        }
        _ if written == sent => Ok(()),
        _ => Err(format!("{sent} was read as {written}")),
    }
}

#[test]
fn messages_of_the_first_release_are_read_without_loss() {
    for (name, sent) in messages::first_release() {
        let written = messages::read(&name, &sent)
            .unwrap_or_else(|error| panic!("{name} {sent} is not read: {error}"));
        holds(&written, &sent).unwrap_or_else(|error| panic!("{name} {sent}: {error}"));
    }
}

#[test]
fn messages_of_a_newer_peer_are_read_with_the_documented_loss() {
    for newer in messages::newer() {
        let read = messages::read(&newer.name, &newer.sent)
            .unwrap_or_else(|error| panic!("{} {} is not read: {error}", newer.name, newer.sent));
        assert_eq!(read, newer.read, "{}", newer.name);
    }
}

/// Objects whose keys are names of ours: each value is a number.
const COUNTS: &str = "counts";

/// Puts a field that nobody knows into every object.
fn grow(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if name != COUNTS {
                    grow(field);
                }
            }
            fields.insert("from_the_future".to_owned(), json!({ "x": [1, null] }));
        }
        Value::Array(values) => values.iter_mut().for_each(grow),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn a_field_that_is_not_known_changes_nothing_anywhere() {
    for (name, sent) in messages::first_release() {
        let plain = messages::read(&name, &sent).unwrap();
        let mut grown = sent.clone();
        grow(&mut grown);
        let read = messages::read(&name, &grown);
        if STRICT.contains(&name.as_str()) {
            assert!(read.is_err(), "{name} says that it refuses unknown fields");
            continue;
        }
        let mut read = read.unwrap_or_else(|error| panic!("{name} {grown}: {error}"));
        // Free content is passed on as it is.
        shrink(&mut read);
        assert_eq!(read, plain, "{name}");
    }
}

fn shrink(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("from_the_future");
            fields.values_mut().for_each(shrink);
        }
        Value::Array(values) => values.iter_mut().for_each(shrink),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
