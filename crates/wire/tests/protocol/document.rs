//! The examples of `docs/protocol.md` are messages, and it speaks of everything there is.

use std::fs;

use serde_json::Value;
use wakeful_wire::{
    host::capability,
    rpc::{Call, ClientFrame},
    schema,
};

use super::{
    messages::{self, root},
    validator::Validator,
};

fn text() -> String {
    fs::read_to_string(root().join("docs/protocol.md")).unwrap()
}

/// The blocks of JSON: what they are said to be, and what stands in them.
fn examples(text: &str) -> Vec<(Vec<&str>, Value)> {
    let mut examples = Vec::new();
    let mut rest = text;
    while let Some(begin) = rest.find("```json") {
        let (head, body) = rest[begin + "```json".len()..].split_once('\n').unwrap();
        let (body, after) = body.split_once("\n```").unwrap();
        let value = serde_json::from_str(body)
            .unwrap_or_else(|error| panic!("an example is no JSON: {error}\n{body}"));
        examples.push((head.split_whitespace().collect(), value));
        rest = after;
    }
    examples
}

#[test]
fn examples_are_what_they_are_said_to_be() {
    let (text, document) = (text(), schema::document());
    let validator = Validator(&document);
    let examples = examples(&text);
    assert!(examples.len() >= 20, "{}", examples.len());
    let check = |name: &str, value: &Value| {
        validator.check(name, value).unwrap();
        let read = messages::read(name, value).unwrap_or_else(|e| panic!("{name} {value}: {e}"));
        for field in value.as_object().unwrap().keys() {
            assert!(read.get(field).is_some(), "`{field}` of {value} means nothing in {name}");
        }
    };
    for (names, value) in examples {
        let [name, inner @ ..] = names.as_slice() else { panic!("an example of nothing: {value}") };
        check(name, &value);
        if *name == "ClientFrame" && value["type"] == "request" {
            let frame: ClientFrame = serde_json::from_value(value.clone()).unwrap();
            let ClientFrame::Request { method, params, .. } = frame else { panic!("{value}") };
            let call = Call::read(&method, params).unwrap();
            assert_eq!(call.method(), method);
        }
        for name in inner {
            let body = value.get("item").or_else(|| value.get("result"));
            check(name, body.unwrap_or_else(|| panic!("nothing in {value}")));
        }
    }
}

#[test]
fn it_speaks_of_every_method_capability_path_and_close_code() {
    let text = text();
    let methods = Call::METHODS.iter().map(|(method, _, _)| *method);
    let paths = schema::HTTP.iter().map(|(_, path, _, _)| *path);
    let codes = ["1001", "1002", "1003", "1007", "1008", "1009", "4401", "4411", "4412", "4503"];
    let own = [capability::GRANTS, capability::PAIRING];
    let all =
        methods.chain(paths).chain(codes).chain(own).chain(capability::ALWAYS.iter().copied());
    for name in all {
        assert!(text.contains(&format!("`{name}`")), "docs/protocol.md does not speak of `{name}`");
    }
}
