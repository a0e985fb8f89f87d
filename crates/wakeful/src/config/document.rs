//! The configuration file: its settings by key, its templates apart, what is neither refused.

use std::collections::BTreeMap;

use super::{
    fault::Faults,
    layers::Layers,
    nearest::suggestion,
    node::{self, Node, Table},
    setting::{SETTINGS, declaration},
};

/// The file, taken apart.
#[derive(Debug)]
pub(crate) struct Document {
    /// Its name, for messages.
    pub(crate) name: String,
    /// Each setting that it holds, by key.
    pub(crate) written: BTreeMap<String, Node>,
    /// The table `templates`.
    pub(crate) templates: Table,
}

impl Document {
    /// Takes the file of the layers apart; an empty one where there is none.
    pub(crate) fn read(layers: &Layers, faults: &mut Faults) -> Self {
        let (name, document) = parse(layers, faults);
        let mut read = Self { name, written: BTreeMap::new(), templates: Table::new() };
        for (key, node) in document {
            if key != "templates" {
                flatten(&read.name, key, node, &mut read.written, faults);
            } else if let Some(table) = node.as_table() {
                read.templates.clone_from(table);
            } else {
                let place = format!("{}:{}", read.name, node.line);
                faults.add(place, key, format!("is {}, but must be a table", node.value.kind()));
            }
        }
        read
    }
}

fn parse(layers: &Layers, faults: &mut Faults) -> (String, Table) {
    let Some((name, text)) = &layers.file else {
        return ("wakeful.toml".to_owned(), Table::new());
    };
    match node::parse(text) {
        Ok(document) => (name.clone(), document),
        Err((line, message)) => {
            faults.add(format!("{name}:{line}"), "", message);
            (name.clone(), Table::new())
        }
    }
}

/// Brings `[idle] agent = …` to `idle.agent`, refusing what is no setting.
fn flatten(
    file: &str,
    key: String,
    node: Node,
    written: &mut BTreeMap<String, Node>,
    faults: &mut Faults,
) {
    if declaration(&key).is_some() {
        written.insert(key, node);
        return;
    }
    let place = format!("{file}:{}", node.line);
    let below: Vec<_> = children(&key);
    match (below.is_empty(), node.value) {
        (false, node::Value::Table(table)) => {
            for (name, inner) in table {
                flatten(file, format!("{key}.{name}"), inner, written, faults);
            }
        }
        (false, other) => {
            faults.add(place, key, format!("is {}, but must be a table", other.kind()));
        }
        (true, _) => {
            let (parent, name) = key.rsplit_once('.').unwrap_or(("", &key));
            let mut known = children(parent);
            if parent.is_empty() {
                known.push("templates");
            }
            let mut message = format!("is no known key{}", suggestion(name, known.clone()));
            if !message.ends_with('?') {
                message = match elsewhere(name) {
                    Some(other) => format!("{message}; `{other}` is one"),
                    None => format!("{message}; known here: {}", known.join(", ")),
                };
            }
            faults.add(place, key, message);
        }
    }
}

/// The names directly below a table of settings; of the top where `parent` is empty.
fn children(parent: &str) -> Vec<&'static str> {
    let mut names: Vec<_> = SETTINGS
        .iter()
        .filter_map(|setting| {
            let rest = if parent.is_empty() {
                setting.key
            } else {
                setting.key.strip_prefix(parent)?.strip_prefix('.')?
            };
            Some(rest.split('.').next().unwrap_or(rest))
        })
        .collect();
    names.dedup();
    names
}

/// A setting of that name in another table.
fn elsewhere(name: &str) -> Option<&'static str> {
    SETTINGS.iter().map(|s| s.key).find(|key| key.rsplit('.').next() == Some(name))
}
