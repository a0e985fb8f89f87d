//! What may stand in `[templates.NAME]`, as data: from it a template is checked (`walk`),
//! and the reference page is made.
//!
//! The types in `wakeful_wire::template` say the same to serde; a test holds the two together.

use wakeful_wire::{SurfaceName, TemplateName, template::SHELL_AGENT};

use super::{check, kind::Check};

/// The most surfaces that a template may declare.
pub const SURFACES_MAX: usize = 16;
/// The most entries in one list.
pub const ENTRIES_MAX: usize = 64;

/// What a key's value may be.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// A text that passes a check.
    Text(Check),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of path patterns.
    Patterns,
    /// A list of programs.
    Programs,
    /// A list of HTTP statuses.
    Statuses,
    /// `true`.
    True,
    /// A table with these keys.
    Table(&'static [Field]),
    /// One of these words, or a table with these keys.
    ChoiceOrTable(&'static [&'static str], &'static [Field]),
    /// A table with keys that pass a check, each of this shape; and the most of them.
    Map(Check, &'static Self, usize),
}

/// One key of a table.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The key.
    pub key: &'static str,
    /// What its value may be.
    pub shape: Shape,
    /// A line that sets it.
    pub example: &'static str,
    /// What it does, in sentences.
    pub about: &'static str,
}

/// The keys of `[templates.NAME]`.
pub const TEMPLATE: &[Field] = &[
    Field {
        key: "extends",
        shape: Shape::Text(check::template_name),
        example: r#"extends = "opencode""#,
        about: "Start from this template and change what is written here. \
                A surface with a `command` of its own replaces the one of that name whole; \
                any other key replaces just itself.",
    },
    Field {
        key: "title",
        shape: Shape::Text(title),
        example: r#"title = "Demo""#,
        about: "A title for people; the template's name where absent.",
    },
    Field {
        key: "description",
        shape: Shape::Text(title),
        example: r#"description = "A page to begin with.""#,
        about: "A sentence for people who choose a template.",
    },
    Field {
        key: "home",
        shape: Shape::Text(surface),
        example: r#"home = "app""#,
        about: "The surface that `/u/{user}/` and the dashboard open. \
                Where absent: `agent`, else the first by name.",
    },
    Field {
        key: "needs",
        shape: Shape::Programs,
        example: r#"needs = ["npm"]"#,
        about: "The programs that its commands need, on `PATH` or as absolute paths. \
                A missing one is said before anything starts.",
    },
    Field {
        key: "install",
        shape: Shape::Text(anything),
        example: r#"install = "npm install --global opencode-ai""#,
        about: "The command that installs the template's programs, shown when one is missing.",
    },
    Field {
        key: "env",
        shape: Shape::Map(variable, &Shape::Text(anything), 256),
        example: r#"env = { GREETING = "hello" }"#,
        about: "Variables of every process. \
                An environment's own variables and secrets override them.",
    },
    Field {
        key: "agents",
        shape: Shape::Map(agent, &Shape::Table(AGENT), AGENTS_MAX),
        example: r#"agents.opencode = { command = "opencode acp", title = "OpenCode" }"#,
        about: "The agents that threads can be made with: a table for each, by name. \
                The built-in `shell`, which runs each prompt as a command, needs no entry.",
    },
    Field {
        key: "default_agent",
        shape: Shape::Text(default_agent),
        example: r#"default_agent = "opencode""#,
        about: "The agent of a thread for which nobody chose one. \
                Where absent: the only entry of `agents`, else `shell`.",
    },
    Field {
        key: "surfaces",
        shape: Shape::Map(surface, &Shape::Table(SURFACE), SURFACES_MAX),
        example: r#"surfaces.app = { command = "python3 -m http.server $PORT" }"#,
        about: "The ways in: a table for each, by name. \
                `agent`, `app`, `vscode` and `db` have hosts of their own kind; \
                any other is reached as `{environment}-{surface}.on.{domain}`.",
    },
];

/// The most agents that a template may have.
const AGENTS_MAX: usize = 32;
/// The longest name of an agent, in characters.
const AGENT_NAME_MAX: usize = 26;

/// The keys of `[templates.NAME.agents.NAME]`.
pub const AGENT: &[Field] = &[
    Field {
        key: "command",
        shape: Shape::Text(command),
        example: r#"command = "opencode acp""#,
        about: "The shell command that is run in the workspace. \
                It must speak ACP on its standard input and output.",
    },
    Field {
        key: "title",
        shape: Shape::Text(title),
        example: r#"title = "OpenCode""#,
        about: "A title for people; the agent's name where absent.",
    },
];

/// The keys of `[templates.NAME.surfaces.NAME]`.
pub const SURFACE: &[Field] = &[
    Field {
        key: "command",
        shape: Shape::Text(command),
        example: r#"command = "python3 -m http.server $PORT""#,
        about: "The shell command that is run in the workspace. \
                It must serve HTTP on `127.0.0.1:$PORT`.",
    },
    Field {
        key: "start",
        shape: Shape::Choice(&["eager", "lazy"]),
        example: r#"start = "lazy""#,
        about: "`eager` (default) starts it with the environment, `lazy` on the first visit.",
    },
    Field {
        key: "ready",
        shape: Shape::Table(READY),
        example: r#"ready = { http = "/" }"#,
        about: "How it is known to answer. \
                `{ http = \"/healthz\", status = [200, 401] }` asks for a path, where any status \
                below 500 counts unless `status` lists others; `{ tcp = true }` (default) only \
                connects. Twice in a row, each within a second. \
                An open port is not a ready program, so prefer `http`.",
    },
    Field {
        key: "route",
        shape: Shape::Choice(&["path", "host", "both"]),
        example: r#"route = "host""#,
        about: "Whether it is reached by a path of the main host, by a host of its own, or by \
                `both` (default).",
    },
    Field {
        key: "base_path",
        shape: Shape::Choice(&["strip", "strip-and-fix-location"]),
        example: r#"base_path = "strip""#,
        about: "What happens to the prefix of a path route: taken off, and redirects mapped back \
                under it with `strip-and-fix-location` (default).",
    },
    Field {
        key: "host",
        shape: Shape::ChoiceOrTable(
            &["keep", "upstream"],
            &[Field {
                key: "fixed",
                shape: Shape::Text(authority),
                example: r#"host = { fixed = "env.internal" }"#,
                about: "A fixed name.",
            }],
        ),
        example: r#"host = "upstream""#,
        about: "Which `Host` the program sees: the visitor's with `keep` (default), its own \
                address with `upstream`, or `{ fixed = \"env.internal\" }`.",
    },
    Field {
        key: "origin",
        shape: Shape::Choice(&["keep", "rewrite", "drop"]),
        example: r#"origin = "rewrite""#,
        about: "Which `Origin` it sees, after the gateway has checked it: the visitor's with \
                `keep` (default), one that fits the `Host` with `rewrite`, none with `drop`.",
    },
    Field {
        key: "clock",
        shape: Shape::Choice(&["agent", "app"]),
        example: r#"clock = "agent""#,
        about: "Which idle clock its visits feed: by default `app` for the surface named `app`, \
                else `agent`.",
    },
    Field {
        key: "wake",
        shape: Shape::Choice(&["intent", "any", "never"]),
        example: r#"wake = "intent""#,
        about: "Which requests wake a sleeping environment. `intent`: page loads, unsafe methods \
                and programs with a token. `any` (default for the surface named `app`): all but \
                HEAD, OPTIONS, prefetches and what `background` lists. `never`: none.",
    },
    Field {
        key: "wake_paths",
        shape: Shape::Patterns,
        example: r#"wake_paths = ["/api/run*"]"#,
        about: "Paths that always wake it. `*` stands for any run of characters.",
    },
    Field {
        key: "background",
        shape: Shape::Patterns,
        example: r#"background = ["/events", "/health"]"#,
        about: "Paths that never wake it: the program's own polls and reconnects from a forgotten \
                tab. `*` stands for any run of characters.",
    },
    Field {
        key: "auth",
        shape: Shape::Choice(&["none", "basic"]),
        example: r#"auth = "basic""#,
        about: "`basic`: a random password for each environment, in `$WAKEFUL_BASIC_USER` and \
                `$WAKEFUL_BASIC_PASSWORD` for the command, and added to each request by the \
                gateway. `none` is the default.",
    },
    Field {
        key: "access",
        shape: Shape::Choice(&["private"]),
        example: r#"access = "private""#,
        about: "Who may visit: its owner.",
    },
];

const READY: &[Field] = &[
    Field {
        key: "http",
        shape: Shape::Text(path),
        example: r#"ready = { http = "/" }"#,
        about: "The path that is asked for.",
    },
    Field {
        key: "status",
        shape: Shape::Statuses,
        example: r#"ready = { http = "/", status = [200, 401] }"#,
        about: "The statuses that mean ready; any below 500 where absent.",
    },
    Field {
        key: "tcp",
        shape: Shape::True,
        example: "ready = { tcp = true }",
        about: "Only connect.",
    },
];

impl Shape {
    /// What it is, for messages and the reference page.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text(_) | Self::Choice(_) => "a string",
            Self::Patterns | Self::Programs => "a list of strings",
            Self::Statuses => "a list of numbers",
            Self::True => "true",
            Self::Table(_) | Self::Map(..) => "a table",
            Self::ChoiceOrTable(..) => "a string or a table",
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a check has this signature")]
fn anything(_: &str) -> Result<(), String> {
    Ok(())
}

fn title(text: &str) -> Result<(), String> {
    if (1..=200).contains(&text.chars().count()) && !text.chars().any(char::is_control) {
        Ok(())
    } else {
        Err("must be one line of 1 to 200 characters".to_owned())
    }
}

fn command(text: &str) -> Result<(), String> {
    if text.trim().is_empty() { Err("must not be empty".to_owned()) } else { check::path(text) }
}

fn surface(text: &str) -> Result<(), String> {
    SurfaceName::new(text).map(|_| ()).map_err(|why| format!("is `{text}`: a surface's name {why}"))
}

fn agent_name(text: &str) -> Result<(), String> {
    let fits = (1..=AGENT_NAME_MAX).contains(&text.len())
        && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    if fits {
        Ok(())
    } else {
        Err(format!(
            "an agent's name is 1 to {AGENT_NAME_MAX} lower-case letters, digits and hyphens"
        ))
    }
}

fn agent(text: &str) -> Result<(), String> {
    if text == SHELL_AGENT {
        return Err("is built in and needs no entry".to_owned());
    }
    agent_name(text)
}

fn default_agent(text: &str) -> Result<(), String> {
    agent_name(text).map_err(|why| format!("is `{text}`: {why}"))
}

/// A name that `[templates.NAME]` may have.
pub(crate) fn template(text: &str) -> Result<(), String> {
    TemplateName::new(text).map(|_| ()).map_err(|why| format!("a template's name {why}"))
}

fn variable(text: &str) -> Result<(), String> {
    let fits = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit());
    if !fits {
        return Err("is no variable's name: letters, digits and underscores".to_owned());
    }
    if text == "PORT" || text.starts_with("WAKEFUL_") {
        return Err("is set by Wakeful itself".to_owned());
    }
    Ok(())
}

fn path(text: &str) -> Result<(), String> {
    let fits = text.starts_with('/') && text.bytes().all(|b| b.is_ascii_graphic() && b != b'#');
    if fits { Ok(()) } else { Err(format!("is `{text}`, but must be a path that begins with `/`")) }
}

/// A path pattern.
pub(crate) fn pattern(text: &str) -> Result<(), String> {
    let fits = text.starts_with('/')
        && text.len() <= 512
        && text.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'#' | b'?'));
    if fits {
        Ok(())
    } else {
        Err(format!("holds `{text}`, but a pattern is a path that begins with `/`, without query"))
    }
}

/// A program's name or absolute path.
pub(crate) fn program(text: &str) -> Result<(), String> {
    let name = !text.contains('/') && text.bytes().all(|b| b.is_ascii_graphic());
    if !text.is_empty() && (name || check::absolute_path(text).is_ok()) {
        Ok(())
    } else {
        Err(format!("holds `{text}`, which is neither a program's name nor an absolute path"))
    }
}

fn authority(text: &str) -> Result<(), String> {
    check::public_url(&format!("http://{text}"))
        .map(|_| ())
        .map_err(|_| format!("is `{text}`, but must be a host name, perhaps with a port"))
}

#[cfg(test)]
mod tests {
    use wakeful_wire::template::{Agent, Surface, Template};

    use super::*;

    /// The keys that serde names when it meets one it does not know.
    fn known_to_serde<T: serde::de::DeserializeOwned + std::fmt::Debug>(
        value: serde_json::Value,
    ) -> Vec<String> {
        let message = serde_json::from_value::<T>(value).unwrap_err().to_string();
        let (_, expected) = message.split_once("expected ").unwrap();
        let mut names: Vec<_> = expected.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        names.sort();
        names
    }

    fn known_here(fields: &[Field]) -> Vec<String> {
        let mut names: Vec<_> = fields.iter().map(|field| field.key.to_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_schema_names_the_keys_that_the_types_have() {
        let mut template = known_here(TEMPLATE);
        template.retain(|key| key != "extends");
        assert_eq!(template, known_to_serde::<Template>(serde_json::json!({ "zz": 1 })));
        assert_eq!(
            known_here(SURFACE),
            known_to_serde::<Surface>(serde_json::json!({ "command": "x", "zz": 1 }))
        );
        assert_eq!(
            known_here(AGENT),
            known_to_serde::<Agent>(serde_json::json!({ "command": "x", "zz": 1 }))
        );
    }

    #[test]
    fn every_word_of_the_schema_reads_as_its_type() {
        for field in SURFACE {
            let words = match field.shape {
                Shape::Choice(words) | Shape::ChoiceOrTable(words, _) => words,
                Shape::Text(_)
                | Shape::Patterns
                | Shape::Programs
                | Shape::Statuses
                | Shape::True
                | Shape::Table(_)
                | Shape::Map(..) => continue,
            };
            for word in words {
                let mut surface = serde_json::json!({ "command": "x" });
                surface[field.key] = (*word).into();
                serde_json::from_value::<Surface>(surface)
                    .unwrap_or_else(|error| panic!("{} = {word}: {error}", field.key));
            }
        }
    }
}
