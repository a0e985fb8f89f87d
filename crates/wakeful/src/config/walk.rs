//! Checking a template's table against the schema, with the key's whole path in each message.

use std::collections::BTreeMap;

use wakeful_wire::template::SHELL_AGENT;

use super::{
    fault::Faults,
    nearest::suggestion,
    node::{Node, Table, Value},
    schema::{ENTRIES_MAX, Field, Shape, pattern, program},
};

/// Where a template is checked: the file's name, for messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk<'a> {
    /// The file's name.
    pub(crate) file: &'a str,
}

impl Walk<'_> {
    fn place(self, node: &Node) -> String {
        format!("{}:{}", self.file, node.line)
    }

    /// Checks a table's keys and values against its fields.
    pub(crate) fn table(self, key: &str, table: &Table, fields: &[Field], faults: &mut Faults) {
        for (name, node) in table {
            let path = format!("{key}.{name}");
            let Some(field) = fields.iter().find(|field| field.key == name) else {
                let known: Vec<_> = fields.iter().map(|field| field.key).collect();
                let mut message = format!("is no known key{}", suggestion(name, known.clone()));
                if !message.ends_with('?') {
                    message = format!("{message}; known here: {}", known.join(", "));
                }
                faults.add(self.place(node), path, message);
                continue;
            };
            self.value(&path, node, field.shape, field.example, faults);
        }
    }

    fn value(self, key: &str, node: &Node, shape: Shape, example: &str, faults: &mut Faults) {
        let mut wrong = |node: &Node, key: &str, message: String| {
            faults.add(self.place(node), key, format!("{message}, for example: {example}"));
        };
        match (shape, &node.value) {
            (Shape::Text(check), Value::Text(text)) => {
                if let Err(message) = check(text) {
                    wrong(node, key, message);
                }
            }
            (Shape::Choice(words) | Shape::ChoiceOrTable(words, _), Value::Text(text)) => {
                if !words.contains(&text.as_str()) {
                    let hint = suggestion(text, words.iter().copied());
                    let words = words.join("`, `");
                    wrong(node, key, format!("is `{text}`, but must be one of `{words}`{hint}"));
                }
            }
            (Shape::Patterns | Shape::Programs, Value::List(items)) => {
                if items.len() > ENTRIES_MAX {
                    wrong(node, key, format!("lists more than {ENTRIES_MAX} entries"));
                }
                let check = if matches!(shape, Shape::Patterns) { pattern } else { program };
                for item in items {
                    match item.as_text() {
                        Some(text) => {
                            if let Err(message) = check(text) {
                                wrong(item, key, message);
                            }
                        }
                        None => wrong(item, key, format!("holds {}", item.value.kind())),
                    }
                }
            }
            (Shape::Statuses, Value::List(items)) => {
                for item in items {
                    if !matches!(item.value, Value::Integer(100..=599)) {
                        wrong(item, key, "must hold HTTP statuses".to_owned());
                    }
                }
            }
            (Shape::True, Value::Flag(true)) => {}
            (Shape::Table(fields) | Shape::ChoiceOrTable(_, fields), Value::Table(inner)) => {
                self.table(key, inner, fields, faults);
            }
            (Shape::Map(check, shape, most), Value::Table(inner)) => {
                if inner.len() > most {
                    wrong(node, key, format!("holds more than {most} entries"));
                }
                for (name, node) in inner {
                    let path = format!("{key}.{name}");
                    match check(name) {
                        Ok(()) => self.value(&path, node, *shape, example, faults),
                        Err(message) => faults.add(self.place(node), path, message),
                    }
                }
            }
            (shape, value) => {
                wrong(node, key, format!("is {}, but must be {}", value.kind(), shape.name()));
            }
        }
    }
}

/// What a template must be beside its keys: surfaces and agents that can be started, a home and
/// a default agent that exist, a readiness that is one thing. `table` is the template after merging.
pub(crate) fn whole(key: &str, place: &str, table: &Table, faults: &mut Faults) {
    let none = BTreeMap::new();
    let surfaces = table.get("surfaces").and_then(Node::as_table).unwrap_or(&none);
    if surfaces.is_empty() {
        faults.add(
            place,
            key,
            "declares no surface, for example: \
             surfaces.app = { command = \"python3 -m http.server $PORT\" }",
        );
    }
    if let Some(home) = table.get("home").and_then(Node::as_text)
        && !surfaces.contains_key(home)
    {
        let hint = suggestion(home, surfaces.keys().map(String::as_str));
        faults.add(
            place,
            format!("{key}.home"),
            format!("is `{home}`, which is no surface of this template{hint}"),
        );
    }
    let agents = table.get("agents").and_then(Node::as_table).unwrap_or(&none);
    for (name, node) in agents {
        if node.as_table().is_some_and(|agent| !agent.contains_key("command")) {
            faults.add(place, format!("{key}.agents.{name}"), "needs a `command`");
        }
    }
    if let Some(agent) = table.get("default_agent").and_then(Node::as_text)
        && agent != SHELL_AGENT
        && !agents.contains_key(agent)
    {
        let known = agents.keys().map(String::as_str).chain([SHELL_AGENT]);
        faults.add(
            place,
            format!("{key}.default_agent"),
            format!("is `{agent}`, which is no agent of this template{}", suggestion(agent, known)),
        );
    }
    for (name, node) in surfaces {
        let Some(surface) = node.as_table() else { continue };
        let key = format!("{key}.surfaces.{name}");
        if !surface.contains_key("command") {
            faults.add(place, &key, "needs a `command`");
        }
        let ready = surface.get("ready").and_then(Node::as_table);
        if let Some(ready) = ready
            && ready.contains_key("http") == ready.contains_key("tcp")
        {
            faults.add(
                place,
                format!("{key}.ready"),
                "must be either { http = \"/path\" } or { tcp = true }",
            );
        }
    }
}
