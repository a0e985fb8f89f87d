//! The reference pages, made from the registries: `docs/configuration.md` and
//! `docs/environment.md`. One sentence stands on each line.

use std::fmt::Write as _;

use super::{
    kind::Kind,
    schema::{AGENT, SURFACE, TEMPLATE},
    setting::{Declaration, SETTINGS},
};
use crate::env::{COMMANDS, SANDBOX, Variable};

/// The line at the top of a page that is made from the source.
pub const GENERATED: &str =
    "<!-- Made from the source by `cargo xtask docs`; edits here are lost. -->\n";

/// The page of settings and templates.
#[must_use]
pub fn configuration() -> String {
    let mut page = format!("# Configuration\n\n{GENERATED}\n{INTRODUCTION}");
    let mut tables: Vec<&str> = Vec::new();
    for setting in SETTINGS {
        let table = setting.key.rsplit_once('.').map_or("", |(table, _)| table);
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    for table in tables {
        let heading =
            if table.is_empty() { "Top level".to_owned() } else { format!("`[{table}]`") };
        let _ = write!(page, "\n## {heading}\n");
        for setting in SETTINGS {
            if setting.key.rsplit_once('.').map_or("", |(table, _)| table) == table {
                describe(&mut page, setting);
            }
        }
    }
    page.push_str(TEMPLATES);
    for (heading, fields) in [
        ("`[templates.NAME]`", TEMPLATE),
        ("`[templates.NAME.agents.NAME]`", AGENT),
        ("`[templates.NAME.surfaces.NAME]`", SURFACE),
    ] {
        let _ = write!(page, "\n### {heading}\n\n");
        for field in fields {
            let _ = writeln!(page, "- `{}`: {}", field.key, one_line_each(field.about, "  "));
            let _ = writeln!(page, "  Example: `{}`.", field.example);
        }
    }
    page
}

fn describe(page: &mut String, setting: &Declaration) {
    let name = setting.key.rsplit('.').next().unwrap_or(setting.key);
    let _ = write!(page, "\n### `{name}`\n\n{}\n\n", one_line_each(setting.about, ""));
    let default = match setting.kind {
        Kind::List(_) if setting.default.is_empty() => "an empty list".to_owned(),
        Kind::Text(_) if setting.default.is_empty() => "nothing".to_owned(),
        Kind::Duration { .. }
        | Kind::Count { .. }
        | Kind::Flag
        | Kind::Choice(_)
        | Kind::Text(_)
        | Kind::List(_) => setting
            .kind
            .read_text(setting.default)
            .map_or_else(|_| setting.default.to_owned(), |value| format!("`{}`", value.to_toml())),
    };
    let _ = writeln!(page, "- Default: {default}.");
    if let Some(bounds) = bounds(setting.kind) {
        let _ = writeln!(page, "- {bounds}.");
    }
    let _ = writeln!(page, "- Variable: `{}`.", setting.variable());
    let _ = writeln!(page, "- Example: `{}`.", setting.example);
}

fn bounds(kind: Kind) -> Option<String> {
    match kind {
        Kind::Duration { min, max } => Some(format!(
            "Between {} and {}",
            super::duration::text(min),
            super::duration::text(max)
        )),
        Kind::Count { min, max } => Some(format!("Between {min} and {max}")),
        Kind::Choice(words) => Some(format!("One of `{}`", words.join("`, `"))),
        Kind::Flag | Kind::Text(_) | Kind::List(_) => None,
    }
}

/// The page of variables.
#[must_use]
pub fn environment() -> String {
    let mut page = format!("# Environment variables\n\n{GENERATED}");
    page.push_str(
        "\nA variable that is set to nothing counts as not set.\n\
         A variable that begins with `WAKEFUL_` and is not listed here is named in a warning, \
         with the listed one that is nearest.\n",
    );
    page.push_str("\n## Settings\n\nEach overrides a key of [`wakeful.toml`](configuration.md), ");
    page.push_str("and is overridden by a flag.\nLists are separated by commas.\n\n");
    for setting in SETTINGS {
        let _ = writeln!(page, "- `{}`: `{}`", setting.variable(), setting.key);
    }
    let mut list = |heading: &str, variables: &[Variable]| {
        let _ = write!(page, "\n## {heading}\n\n");
        for variable in variables {
            let _ =
                writeln!(page, "- `{}`: {}", variable.name, one_line_each(variable.about, "  "));
        }
    };
    list("Read by commands", COMMANDS);
    list("Set for the programs in a sandbox", SANDBOX);
    page
}

/// One sentence on each line; lines after the first are indented.
fn one_line_each(text: &str, indent: &str) -> String {
    let mut lines = String::new();
    let mut rest = text;
    while let Some(end) = rest.find(". ") {
        let (sentence, behind) = rest.split_at(end + 1);
        let _ = write!(lines, "{sentence}\n{indent}");
        rest = behind.trim_start();
    }
    lines.push_str(rest);
    lines
}

const INTRODUCTION: &str = "\
`wakeful up` reads `wakeful.toml` in the working directory, or the file that `--config` names.
Each setting can also be given as a `WAKEFUL_…` variable or as a flag: `--set idle.app=20m`, and the most common have flags of their own.
A flag beats a variable, a variable beats the file, the file beats the default.
`wakeful config show` prints every value and where it came from.

Unknown keys, wrong types and values that contradict one another are refused before anything starts, all of them at once.
Durations are whole numbers with a unit of `ms`, `s`, `m`, `h` or `d`, the longest first: `30m`, `1m30s`, `7d`.
";

const TEMPLATES: &str = "
## Templates

A template is what an environment runs: a set of surfaces, each a command that serves HTTP on `$PORT`.
Three are shipped: `demo` needs nothing installed, `opencode` is a coding agent, `datasette` shows the SQLite files of the workspace.

`[templates.NAME]` is a template of its own if any of its surfaces has a `command`; it then replaces a shipped one of that name whole.
Without any `command` it changes the shipped one of its name: what it writes is changed, all else stays.
With `extends` it starts from the template that it names.

```toml
[templates.site]
title = \"Site\"
home = \"app\"
env = { GREETING = \"hello\" }

[templates.site.surfaces.app]
command = \"python3 -m http.server $PORT --bind 127.0.0.1\"
ready = { http = \"/\" }

[templates.opencode]          # changes the shipped one
env = { OPENCODE_CONFIG_CONTENT = '{\"share\":\"disabled\"}' }

[templates.agent-and-site]
extends = \"opencode\"

[templates.agent-and-site.surfaces.app]
command = \"npm run dev -- --port $PORT\"
start = \"lazy\"
```
";
