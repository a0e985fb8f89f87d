//! Templates: the shipped ones, and how configured ones replace or extend them.

use std::collections::{BTreeMap, BTreeSet};

use wakeful_wire::{TemplateName, template::Template};

use super::{
    fault::Faults,
    nearest::suggestion,
    node::{self, Node, Table, Value},
    schema::{self, TEMPLATE},
    walk::{self, Walk},
};

/// The templates that come with the binary: name and TOML.
pub const SHIPPED: &[(&str, &str)] = &[
    ("demo", include_str!("../../templates/demo.toml")),
    ("opencode", include_str!("../../templates/opencode.toml")),
    ("datasette", include_str!("../../templates/datasette.toml")),
];

/// The most templates that a configuration may declare.
pub const TEMPLATES_MAX: usize = 200;

/// Resolves the shipped templates and those of the file.
///
/// `[templates.NAME]` is a template of its own, also where one of that name is shipped, if any of
/// its surfaces has a `command`. Without any command it changes the shipped one of its name, and
/// with `extends` the one that it names.
pub(crate) fn resolve(
    configured: &Table,
    file: &str,
    faults: &mut Faults,
) -> BTreeMap<TemplateName, Template> {
    let mut tables: BTreeMap<String, (String, Table)> = shipped();
    if configured.len() > TEMPLATES_MAX {
        faults.add(file, "templates", format!("declares more than {TEMPLATES_MAX} templates"));
        return BTreeMap::new();
    }
    let mut merge = Merge { configured, file, shipped: shipped(), done: BTreeMap::new() };
    for (name, node) in configured {
        let key = format!("templates.{name}");
        let place = format!("{file}:{}", node.line);
        if let Err(message) = schema::template(name) {
            faults.add(place, key, message);
            continue;
        }
        let Some(table) = node.as_table() else {
            faults.add(place, key, format!("is {}, but must be a table", node.value.kind()));
            continue;
        };
        Walk { file }.table(&key, table, TEMPLATE, faults);
        if let Some(merged) = merge.table(name, &mut BTreeSet::new(), faults) {
            tables.insert(name.clone(), (place, merged));
        }
    }
    let mut templates = BTreeMap::new();
    // A table with a wrong shape would only bring each fault a second time.
    if !faults.is_empty() {
        return templates;
    }
    for (name, (place, table)) in tables {
        let key = format!("templates.{name}");
        walk::whole(&key, &place, &table, faults);
        let json = Node { value: Value::Table(table), line: 0 }.to_json();
        match (TemplateName::new(&name), serde_json::from_value::<Template>(json)) {
            (Ok(name), Ok(template)) => {
                templates.insert(name, template);
            }
            (Err(error), _) => faults.add(place, key, error.to_string()),
            (_, Err(error)) if faults.is_empty() => faults.add(place, key, error.to_string()),
            (_, Err(_)) => {}
        }
    }
    templates
}

/// The shipped templates, each with its place for messages.
fn shipped() -> BTreeMap<String, (String, Table)> {
    SHIPPED
        .iter()
        .map(|(name, text)| {
            let table = node::parse(text).expect("a test reads every shipped template");
            ((*name).to_owned(), ("shipped".to_owned(), table))
        })
        .collect()
}

struct Merge<'a> {
    configured: &'a Table,
    file: &'a str,
    shipped: BTreeMap<String, (String, Table)>,
    done: BTreeMap<String, Table>,
}

impl Merge<'_> {
    /// The table of `name` with what it extends below it; `None` after a fault.
    fn table(
        &mut self,
        name: &str,
        above: &mut BTreeSet<String>,
        faults: &mut Faults,
    ) -> Option<Table> {
        if let Some(table) = self.done.get(name) {
            return Some(table.clone());
        }
        let Some(node) = self.configured.get(name) else {
            return self.shipped.get(name).map(|(_, table)| table.clone());
        };
        let mut own = node.as_table()?.clone();
        let extends = own.remove("extends");
        let base = match extends.as_ref().and_then(Node::as_text) {
            Some(base) if base == name => self.shipped.get(name).map(|(_, table)| table.clone()),
            Some(base) => {
                above.insert(name.to_owned());
                if above.contains(base) {
                    faults.add(
                        format!("{}:{}", self.file, node.line),
                        format!("templates.{name}.extends"),
                        format!("comes back to `{base}`"),
                    );
                    return None;
                }
                self.table(base, above, faults)
            }
            None if has_command(&own) => Some(Table::new()),
            None => Some(self.shipped.get(name).map(|(_, t)| t.clone()).unwrap_or_default()),
        };
        let Some(base) = base else {
            let missing = extends.as_ref().and_then(Node::as_text).unwrap_or_default();
            let known = self.configured.keys().chain(self.shipped.keys()).map(String::as_str);
            faults.add(
                format!("{}:{}", self.file, node.line),
                format!("templates.{name}.extends"),
                format!("is `{missing}`, which is no template{}", suggestion(missing, known)),
            );
            return None;
        };
        let merged = merge(base, own);
        self.done.insert(name.to_owned(), merged.clone());
        Some(merged)
    }
}

fn has_command(template: &Table) -> bool {
    let surfaces = template.get("surfaces").and_then(Node::as_table);
    surfaces.is_some_and(|surfaces| {
        surfaces.values().any(|surface| {
            surface.as_table().is_some_and(|surface| surface.contains_key("command"))
        })
    })
}

/// Lays `above` over `base`. `env`, `agents` and `surfaces` are merged by name.
fn merge(mut base: Table, above: Table) -> Table {
    for (key, node) in above {
        let below = base.get_mut(&key).map(|below| &mut below.value);
        match (key.as_str(), below, node.value) {
            ("env" | "agents", Some(Value::Table(below)), Value::Table(inner)) => {
                below.extend(inner);
            }
            ("surfaces", Some(Value::Table(below)), Value::Table(inner)) => {
                for (name, surface) in inner {
                    lay_surface(below, name, surface);
                }
            }
            (_, _, value) => {
                base.insert(key, Node { value, line: node.line });
            }
        }
    }
    base
}

/// A surface with its own command replaces the one below whole: ready path and background list
/// belong to the program that they were written for.
fn lay_surface(below: &mut Table, name: String, surface: Node) {
    match (below.get_mut(&name).map(|node| &mut node.value), surface.value) {
        (Some(Value::Table(old)), Value::Table(new)) if !new.contains_key("command") => {
            old.extend(new);
        }
        (_, value) => {
            below.insert(name, Node { value, line: surface.line });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve_text(text: &str) -> Result<BTreeMap<TemplateName, Template>, String> {
        let document = node::parse(text).unwrap();
        let none = Table::new();
        let configured = document.get("templates").and_then(Node::as_table).unwrap_or(&none);
        let mut faults = Faults::default();
        let templates = resolve(configured, "wakeful.toml", &mut faults);
        faults.finish().map(|()| templates).map_err(|error| error.to_string())
    }

    #[test]
    fn the_shipped_templates_are_there_without_any_configuration() {
        let templates = resolve_text("").unwrap();
        let names: Vec<_> = templates.keys().map(TemplateName::as_str).collect();
        assert_eq!(names, ["datasette", "demo", "opencode"]);
        for template in templates.values() {
            assert!(template.title.is_some() && template.description.is_some());
            assert!(
                template.home.as_ref().is_some_and(|home| template.surfaces.contains_key(home))
            );
        }
    }

    #[test]
    fn a_template_with_a_command_replaces_the_shipped_one_whole() {
        let templates = resolve_text(
            "[templates.demo.surfaces.web]\ncommand = 'python3 -m http.server $PORT'\n",
        )
        .unwrap();
        let demo = &templates["demo"];
        assert_eq!(demo.title, None);
        assert_eq!(demo.surfaces.keys().map(|name| name.as_str()).collect::<Vec<_>>(), ["web"]);
    }

    #[test]
    fn a_template_without_a_command_changes_the_shipped_one() {
        let templates = resolve_text(
            "[templates.opencode]\ntitle = 'Mine'\n[templates.opencode.env]\nA = '1'\n\
             [templates.opencode.surfaces.agent]\nstart = 'lazy'\n",
        )
        .unwrap();
        let mine = &templates["opencode"];
        let shipped = &resolve_text("").unwrap()["opencode"];
        assert_eq!(mine.title.as_deref(), Some("Mine"));
        assert_eq!(mine.env["A"], "1");
        assert!(shipped.env.iter().all(|(name, value)| mine.env.get(name) == Some(value)));
        let mut expected = shipped.surfaces["agent"].clone();
        expected.start = wakeful_wire::template::Start::Lazy;
        assert_eq!(mine.surfaces["agent"], expected);
    }

    #[test]
    fn extends_takes_another_template_and_adds_a_surface() {
        let templates = resolve_text(
            "[templates.both]\nextends = 'opencode'\n\
             [templates.both.surfaces.app]\ncommand = 'x'\n",
        )
        .unwrap();
        let names: Vec<_> = templates["both"].surfaces.keys().map(|n| n.as_str()).collect();
        assert_eq!(names, ["agent", "app"]);
    }

    #[test]
    fn a_surface_with_its_own_command_keeps_nothing_of_the_one_it_replaces() {
        let templates = resolve_text(
            "[templates.mine]\nextends = 'opencode'\n\
             [templates.mine.surfaces.agent]\ncommand = 'x'\n",
        )
        .unwrap();
        assert!(templates["mine"].surfaces["agent"].background.is_empty());
    }

    #[test]
    fn a_template_adds_agents_to_those_it_extends_and_chooses_one() {
        let templates = resolve_text(
            "[templates.mine]\nextends = 'opencode'\ndefault_agent = 'shell'\n\
             [templates.mine.agents.other]\ncommand = 'other acp'\n",
        )
        .unwrap();
        let mine = &templates["mine"];
        assert_eq!(mine.agents.keys().collect::<Vec<_>>(), ["opencode", "other"]);
        assert_eq!(mine.default_agent(), "shell");
        assert_eq!(templates["opencode"].default_agent(), "opencode");
        assert_eq!(templates["demo"].default_agent(), "shell");
        let longest = "a".repeat(26);
        let text = format!("[templates.demo.agents.{longest}]\ncommand = 'x'\n");
        assert!(resolve_text(&text).unwrap()["demo"].agents.contains_key(&longest));
    }

    #[test]
    fn what_is_wrong_with_a_template_is_said_with_its_path_and_an_example() {
        let surface = "[templates.t.surfaces.app]\ncommand = 'x'\n";
        let table = [
            (
                "[templates.t]\ntitel = 'x'\n".to_owned(),
                "`templates.t.titel` is no known key; did you mean `title`?",
            ),
            (
                format!("{surface}redy = 1\n"),
                "`templates.t.surfaces.app.redy` is no known key; did you mean `ready`?",
            ),
            (
                format!("{surface}ready = {{ htp = '/' }}\n"),
                "`templates.t.surfaces.app.ready.htp` is no known key; did you mean `http`?",
            ),
            (format!("{surface}start = 'lasy'\n"), "did you mean `lazy`?"),
            (
                format!("{surface}start = true\n"),
                "`templates.t.surfaces.app.start` is true or false, but must be a string, for example: start = \"lazy\"",
            ),
            (format!("{surface}ready = 'x'\n"), "is a string, but must be a table"),
            (format!("{surface}ready = {{ http = 'x' }}\n"), "must be a path that begins with `/`"),
            (
                format!("{surface}ready = {{ http = '/', tcp = true }}\n"),
                "must be either { http = \"/path\" } or { tcp = true }",
            ),
            (format!("{surface}ready = {{ tcp = false }}\n"), "but must be true"),
            (
                format!("{surface}ready = {{ http = '/', status = [20] }}\n"),
                "must hold HTTP statuses",
            ),
            (
                format!("{surface}background = ['health']\n"),
                "wakeful.toml:3: `templates.t.surfaces.app.background` holds `health`, but a pattern is a path that begins with `/`",
            ),
            (format!("{surface}wake_paths = ['/a?b']\n"), "without query"),
            (format!("{surface}background = [1]\n"), "holds a whole number"),
            (format!("{surface}host = {{ fixed = 'a b' }}\n"), "must be a host name"),
            (format!("{surface}access = 'public'\n"), "but must be one of `private`"),
            ("[templates.t]\nhome = 'app'\n".to_owned(), "declares no surface"),
            (
                format!("[templates.t]\nhome = 'ap'\n{surface}"),
                "which is no surface of this template; did you mean `app`?",
            ),
            ("[templates.t.surfaces.app]\nstart = 'lazy'\n".to_owned(), "needs a `command`"),
            ("[templates.t.surfaces.host]\ncommand = 'x'\n".to_owned(), "is reserved"),
            (
                format!("[templates.t.agents.a]\ncomand = 'x'\n{surface}"),
                "`templates.t.agents.a.comand` is no known key; did you mean `command`?",
            ),
            (format!("[templates.t.agents.a]\ntitle = 'x'\n{surface}"), "needs a `command`"),
            (
                format!("[templates.t.agents.A]\ncommand = 'x'\n{surface}"),
                "lower-case letters, digits and hyphens",
            ),
            (
                format!("[templates.t.agents.{}]\ncommand = 'x'\n{surface}", "a".repeat(27)),
                "1 to 26",
            ),
            (
                format!("[templates.t.agents.shell]\ncommand = 'x'\n{surface}"),
                "is built in and needs no entry",
            ),
            (
                format!(
                    "[templates.t]\ndefault_agent = 'opencod'\n\
                     [templates.t.agents.opencode]\ncommand = 'x'\n{surface}"
                ),
                "which is no agent of this template; did you mean `opencode`?",
            ),
            ("[templates.t.surfaces.A]\ncommand = 'x'\n".to_owned(), "lower-case"),
            ("[templates.T]\n".to_owned(), "lower-case"),
            (
                "[templates.t]\nextends = 'opencod'\n".to_owned(),
                "which is no template; did you mean `opencode`?",
            ),
            (
                "[templates.a]\nextends = 'b'\n[templates.b]\nextends = 'a'\n".to_owned(),
                "comes back to",
            ),
            (format!("[templates.t.env]\nPORT = '1'\n{surface}"), "is set by Wakeful itself"),
            (
                format!("[templates.t.env]\nA = 1\n{surface}"),
                "is a whole number, but must be a string",
            ),
            (format!("[templates.t.env]\n1A = ''\n{surface}"), "is no variable's name"),
            ("[templates.t.surfaces.app]\ncommand = ' '\n".to_owned(), "must not be empty"),
        ];
        for (text, expected) in table {
            let message = resolve_text(&text).unwrap_err();
            assert!(message.contains(expected), "{text}\n{message}\nlacks: {expected}");
        }
    }
}
