//! The committed JSON Schema is the source's, and it is right.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};
use wakeful_wire::{rpc::Call, schema};

use super::{
    messages::{self, root},
    validator::{ABSENT, Used, Validator},
};

#[test]
fn the_committed_schema_is_what_the_source_says() {
    let committed = fs::read_to_string(root().join("docs/protocol/rpc.schema.json"));
    let current = committed.is_ok_and(|text| text == schema::text());
    assert!(current, "docs/protocol/rpc.schema.json is stale: run `cargo xtask docs`");
}

#[test]
fn what_is_really_sent_fits_and_makes_use_of_every_field_and_variant() {
    let document = schema::document();
    let validator = Validator(&document);
    let mut used = Used::new();
    for (name, value) in messages::first_release() {
        used.append(&mut validator.check(&name, &value).unwrap());
        let written = messages::read(&name, &value).unwrap();
        validator.check(&name, &written).unwrap();
    }
    for newer in messages::newer() {
        // What a newer peer leaves out does not show what the first release left out.
        let more = validator.check(&newer.name, &newer.sent).unwrap();
        used.extend(more.into_iter().filter(|place| !place.ends_with(ABSENT)));
        validator.check(&newer.name, &newer.read).unwrap();
    }
    let missing: Vec<_> = places(&document).difference(&used).cloned().collect();
    assert!(
        missing.is_empty(),
        "no message in `tests/compat` makes use of these; add to a directory of your release, and \
         for a set that is open to `newer`: {missing:#?}"
    );
}

/// Every property and every variant of the definitions, and every property that may be absent once
/// more as such: only a message without it shows it when a later release comes to require it.
fn places(document: &Value) -> BTreeSet<String> {
    fn collect(value: &Value, at: &str, places: &mut BTreeSet<String>) {
        let required = value["required"].as_array().map_or(&[][..], Vec::as_slice);
        for (keyword, rule) in value.as_object().into_iter().flatten() {
            let below = format!("{at}/{keyword}");
            match (keyword.as_str(), rule) {
                ("properties", Value::Object(fields)) => {
                    for (name, field) in fields {
                        places.insert(format!("{below}/{name}"));
                        if !required.contains(&Value::from(name.as_str())) {
                            places.insert(format!("{below}/{name}{ABSENT}"));
                        }
                        collect(field, &format!("{below}/{name}"), places);
                    }
                }
                ("oneOf" | "anyOf", Value::Array(variants)) => {
                    for (n, variant) in variants.iter().enumerate() {
                        if variant["type"] != "null" {
                            places.insert(format!("{below}/{n}"));
                        }
                        collect(variant, &format!("{below}/{n}"), places);
                    }
                }
                ("items" | "additionalProperties", _) => collect(rule, &below, places),
                _ => {}
            }
        }
    }
    let mut places = BTreeSet::new();
    for (name, definition) in document["$defs"].as_object().unwrap() {
        collect(definition, &format!("/$defs/{name}"), &mut places);
    }
    assert!(places.len() > 400);
    places
}

#[test]
fn what_is_broken_does_not_fit() {
    let document = schema::document();
    let validator = Validator(&document);
    let thread = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f";
    let table = [
        ("Event", json!({ "seq": 1, "at": 2 })),
        ("Event", json!({ "seq": -1, "at": 2, "body": { "kind": "pinned" } })),
        ("Event", json!({ "seq": 1.5, "at": 2, "body": { "kind": "pinned" } })),
        ("Event", json!({ "seq": 1_u64 << 53, "at": 2, "body": { "kind": "pinned" } })),
        ("Event", json!({ "seq": 1, "at": "noon", "body": { "kind": "pinned" } })),
        ("Event", json!({ "seq": 1, "at": 2, "thread": "x", "body": { "kind": "pinned" } })),
        ("Event", json!({ "seq": 1, "at": 2, "body": { "kind": "titled" } })),
        ("Event", json!({ "seq": 1, "at": 2, "body": { "kind": "titled", "title": 4 } })),
        ("Event", json!({ "seq": 1, "at": 2, "body": { "title": "x" } })),
        ("Event", json!({ "seq": 1, "at": 2, "body": { "kind": "" } })),
        ("Call", json!({ "method": "thread.pin", "params": { "thread": thread } })),
        ("Call", json!({ "method": "thread.dance", "params": {} })),
        ("Call", json!({ "method": "thread.forget", "params": { "place": "sea", "key": "x" } })),
        ("ClientFrame", json!({ "type": "probe" })),
        ("ClientFrame", json!({ "type": "probe", "id": -1 })),
        ("ClientFrame", json!({ "id": 1 })),
        ("ServerFrame", json!({ "type": "heartbeat" })),
        ("ServerFrame", json!({ "type": "heartbeat", "head": { "epoch": 1 } })),
        ("ShellItem", json!({ "type": "changes" })),
        ("TokenRequest", json!({ "grant_type": "password", "password": "x" })),
        ("TokenResponse", json!({ "access_token": "x" })),
        ("GrantRequest", json!({ "scope": "read" })),
        ("GrantRequest", json!({ "scopes": "Read" })),
        ("KeepPrompt", json!({ "client": thread, "text": "x", "loud": true })),
        (
            "Problem",
            json!({ "code": "asleep", "title": "Asleep", "status": 70_000, "retry": true }),
        ),
        ("Descriptor", json!([])),
    ];
    for (name, broken) in table {
        assert!(validator.check(name, &broken).is_err(), "{name}: {broken}");
        assert!(
            messages::read(name, &broken).is_err() || broken["seq"] == 1_u64 << 53,
            "the schema is stricter than the source: {name} {broken}"
        );
    }
}

#[test]
fn methods_have_their_parameters_and_answers() {
    let document = schema::document();
    let methods = document["x-methods"].as_object().unwrap();
    assert_eq!(methods.len(), Call::METHODS.len());
    assert_eq!(
        methods["thread.prompt"],
        json!({
            "scope": "write",
            "params": { "$ref": "#/$defs/ThreadPrompt" },
            "result": { "$ref": "#/$defs/Taken" },
        })
    );
    assert_eq!(methods["shell.subscribe"]["item"], json!({ "$ref": "#/$defs/ShellItem" }));
    // A reference beside a description is still one; each leads somewhere.
    let defs = document["$defs"].as_object().unwrap();
    let mut all = vec![&document];
    while let Some(value) = all.pop() {
        if let Some(target) = value.get("$ref").and_then(Value::as_str) {
            let name = target.strip_prefix("#/$defs/").unwrap();
            assert!(defs.contains_key(name), "{target} leads nowhere");
        }
        match value {
            Value::Object(fields) => all.extend(fields.values()),
            Value::Array(values) => all.extend(values),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}
