//! JSON Schema (draft 2020-12) of what an environment server and its clients send each other.
//!
//! [`document`] is one schema: of a frame, with every other message below `$defs`. It is made from
//! the types themselves, as *readers* take them: what has a default may be absent, a field that is
//! not listed may be there, and where a set is open the schema has a place for "something newer".
//! So a message of a newer peer that keeps the compatibility rule fits the schema of an older
//! release.

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::{
    Problem,
    api::{GrantAnswer, GrantRequest, KeepPrompt, KeptPrompt, KeptPrompts},
    host::{
        Descriptor, PairingAnswer, PairingRequest, TicketResponse, TokenError, TokenRequest,
        TokenResponse,
    },
    rpc::{
        Call, ClientFrame, Counts, Empty, Event, PROTOCOL, Page, Rows, SearchAnswer, ServerFrame,
        SessionItem, SessionList, ShellItem, ShellSnapshot, Taken, ThreadAnswer, ThreadItem,
    },
};

/// The requests over HTTP: method, path below the host's address (or, where it begins with
/// `/api/`, below the platform's), type of the body, type of the answer. Absent: there is none.
pub const HTTP: &[(&str, &str, Option<&str>, Option<&str>)] = &[
    ("GET", "/descriptor", None, Some("Descriptor")),
    ("POST", "/oauth/token", Some("TokenRequest"), Some("TokenResponse")),
    ("POST", "/ticket", None, Some("TicketResponse")),
    ("GET", "/shell", None, Some("ShellSnapshot")),
    ("GET", "/shell/counts", None, Some("Counts")),
    ("GET", "/shell/settled", None, Some("Rows")),
    ("GET", "/shell/archived", None, Some("Rows")),
    ("GET", "/search", None, Some("SearchAnswer")),
    ("GET", "/threads/{id}", None, Some("ThreadAnswer")),
    ("GET", "/threads/{id}/page", None, Some("Page")),
    ("GET", "/threads/{id}/family", None, Some("Rows")),
    ("GET", "/sessions", None, Some("SessionList")),
    ("DELETE", "/sessions/{id}", None, None),
    ("POST", "/sessions/revoke-others", None, None),
    ("POST", "/pairing", Some("PairingRequest"), Some("PairingAnswer")),
    ("POST", "/api/environments/{id}/grant", Some("GrantRequest"), Some("GrantAnswer")),
    ("POST", "/api/environments/{id}/prompts", Some("KeepPrompt"), Some("KeptPrompt")),
    ("GET", "/api/environments/{id}/prompts", None, Some("KeptPrompts")),
];

/// Names that no message says: they stand where one has a name that its reader does not know.
const PLACEHOLDERS: [&str; 2] = ["other", "unknown"];

/// The schema of every message, as JSON. Its keys are in alphabetical order.
///
/// `x-methods` says the parameters and the answer of each method of the socket, `x-http` the bodies
/// and answers of requests.
///
/// # Panics
/// If a method's answer has no schema: whoever adds a type adds it here.
#[must_use]
pub fn document() -> Value {
    let mut generator = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let call = Call::json_schema(&mut SchemaSettings::draft2020_12().for_deserialize().into());
    let frame = [add::<ClientFrame>(&mut generator), add::<ServerFrame>(&mut generator)];
    add::<Call>(&mut generator);
    add::<Empty>(&mut generator);
    add::<Taken>(&mut generator);
    add::<ShellItem>(&mut generator);
    add::<ThreadItem>(&mut generator);
    add::<SessionItem>(&mut generator);
    add::<Event>(&mut generator);
    add::<Descriptor>(&mut generator);
    add::<TokenRequest>(&mut generator);
    add::<TokenResponse>(&mut generator);
    add::<TokenError>(&mut generator);
    add::<TicketResponse>(&mut generator);
    add::<PairingRequest>(&mut generator);
    add::<PairingAnswer>(&mut generator);
    add::<ShellSnapshot>(&mut generator);
    add::<Counts>(&mut generator);
    add::<Rows>(&mut generator);
    add::<SearchAnswer>(&mut generator);
    add::<ThreadAnswer>(&mut generator);
    add::<Page>(&mut generator);
    add::<SessionList>(&mut generator);
    add::<GrantRequest>(&mut generator);
    add::<GrantAnswer>(&mut generator);
    add::<KeepPrompt>(&mut generator);
    add::<KeptPrompt>(&mut generator);
    add::<KeptPrompts>(&mut generator);
    add::<Problem>(&mut generator);

    let mut document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("urn:wakeful:rpc:{PROTOCOL}"),
        "title": format!("Messages of a Wakeful environment server, protocol {PROTOCOL}"),
        "description": "A frame of the socket, of either side. Every other message is below `$defs`; \
            `x-methods` and `x-http` say which belong together. What may be absent has a default, \
            and fields that are not listed are ignored.",
        "anyOf": frame.map(Schema::to_value),
        "x-methods": methods(&call),
        "x-http": http(),
        "$defs": generator.take_definitions(true),
    });
    tidy(&mut document);
    for (method, _, answer) in Call::METHODS {
        let name = answer.strip_prefix("stream ").unwrap_or(answer);
        assert!(document["$defs"].get(name).is_some(), "`{method}` answers `{name}`");
    }
    document.sort_all_objects();
    document
}

/// The text of the file that the repository holds.
///
/// # Panics
/// As [`document`].
#[must_use]
pub fn text() -> String {
    format!("{:#}\n", document())
}

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// What each method takes and answers; `call` is the schema of a call, which has one variant each.
fn methods(call: &Schema) -> Value {
    let variants = call.get("oneOf").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let params = |method: &str| {
        let variant = variants
            .iter()
            .find(|variant| variant["properties"]["method"]["const"] == method)
            .expect("a call has a variant for each of its methods");
        variant["properties"]["params"].clone()
    };
    let each = Call::METHODS.iter().map(|(method, scope, answer)| {
        let (kind, name) =
            answer.strip_prefix("stream ").map_or(("result", *answer), |name| ("item", name));
        let about = json!({
            "scope": scope.as_str(), "params": params(method), kind: reference(name),
        });
        ((*method).to_owned(), about)
    });
    Value::Object(each.collect())
}

fn http() -> Value {
    let each = HTTP.iter().map(|(method, path, body, answer)| {
        let mut about = Map::new();
        let named = [("body", body), ("answer", answer)];
        about.extend(
            named
                .into_iter()
                .filter_map(|(key, name)| name.map(|name| (key.to_owned(), reference(name)))),
        );
        (format!("{method} {path}"), Value::Object(about))
    });
    Value::Object(each.collect())
}

/// Makes the schema of a set of names, or of kinds that are told by a name, accept names that it
/// does not list: a newer peer may have them.
pub(crate) fn open(schema: &mut Schema) {
    let Some(Value::Array(variants)) = schema.get_mut("oneOf") else { return };
    let mut known = Vec::new();
    let mut tag = None;
    variants.retain(|variant| {
        let (name, tagged_by) = name_of(variant);
        tag = tag.take().or(tagged_by);
        let keep = !PLACEHOLDERS.contains(&name.as_str());
        if keep {
            known.push(name);
        }
        keep
    });
    let newer = json!({ "type": "string", "not": { "enum": known } });
    let description = "Something that a newer peer knows.";
    variants.push(tag.map_or_else(
        || {
            let mut newer = newer.clone();
            newer["description"] = description.into();
            newer
        },
        |tag| {
            let (required, mut properties) = (json!([tag]), Map::new());
            properties.insert(tag, newer.clone());
            json!({
                "description": description,
                "type": "object",
                "properties": properties,
                "required": required,
            })
        },
    ));
}

/// The name of a variant, and the field that says it where it is not the value itself.
fn name_of(variant: &Value) -> (String, Option<String>) {
    let text = |value: &Value| value["const"].as_str().map(str::to_owned);
    if let Some(name) = text(variant) {
        return (name, None);
    }
    let fields = variant["properties"].as_object();
    fields
        .into_iter()
        .flatten()
        .find_map(|(field, value)| Some((text(value)?, Some(field.clone()))))
        .expect("a variant says its name")
}

/// Makes descriptions plain text: without links into the source, one paragraph to a line.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if key == "description"
                    && let Value::String(text) = value
                {
                    *text = plain(text);
                } else {
                    tidy(value);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find('[') {
        let (before, link) = rest.split_at(begin);
        plain.push_str(before);
        let Some(end) = link.find(']') else {
            rest = link;
            break;
        };
        plain.push_str(&link[1..end]);
        rest = &link[end + 1..];
        if rest.starts_with('(')
            && let Some(end) = rest.find(')')
        {
            rest = &rest[end + 1..];
        }
    }
    plain.push_str(rest);
    let paragraphs = plain.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
    paragraphs.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_lose_their_links_and_line_breaks() {
        let text = "Below [`SETTLED_KEPT`],\nas [the module](super::x) says.\n\nMore [here";
        assert_eq!(plain(text), "Below `SETTLED_KEPT`, as the module says.\nMore [here");
    }

    #[test]
    fn no_placeholder_is_left_and_every_open_set_has_a_place_for_more() {
        fn look(value: &Value, path: &str, places: &mut usize) {
            match value {
                Value::Object(fields) => {
                    let name = value["const"].as_str().unwrap_or_default();
                    assert!(!PLACEHOLDERS.contains(&name), "{path} is not open");
                    *places += usize::from(value["not"]["enum"].is_array());
                    for (key, value) in fields {
                        look(value, &format!("{path}/{key}"), places);
                    }
                }
                Value::Array(values) => {
                    for (place, value) in values.iter().enumerate() {
                        look(value, &format!("{path}/{place}"), places);
                    }
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        let mut places = 0;
        look(&document(), "", &mut places);
        assert_eq!(places, 28, "a set was opened or closed: `docs/protocol.md` lists them");
    }
}
