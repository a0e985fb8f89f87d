//! Where everything that `attach` says goes: text for people, or one JSON value a line.

use std::collections::BTreeMap;

use serde_json::json;

use super::{change::Change, render::Render};
use crate::output::Output;

/// Takes what is printed.
pub(super) trait Sink {
    /// Standard output, as it is.
    fn out(&mut self, text: &str) -> anyhow::Result<()>;
    /// A line on the side, for people.
    fn note(&mut self, text: &str);
}

impl Sink for Output {
    fn out(&mut self, text: &str) -> anyhow::Result<()> {
        self.raw(text.as_bytes())
    }

    fn note(&mut self, text: &str) {
        Self::note(*self, text);
    }
}

/// Whether the host is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connection {
    /// A socket is open.
    Connected,
    /// It broke off, and is tried again.
    Lost,
    /// The environment sleeps.
    Asleep,
}

impl Connection {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Lost => "lost",
            Self::Asleep => "asleep",
        }
    }
}

/// Prints for people or for programs.
#[derive(Debug)]
pub(super) struct Screen<S> {
    sink: S,
    /// Nothing: for programs.
    render: Option<Render>,
}

impl<S: Sink> Screen<S> {
    /// Prints text by `render`, or JSON without it.
    pub(super) const fn new(sink: S, render: Option<Render>) -> Self {
        Self { sink, render }
    }

    /// Whether it is for programs.
    pub(super) const fn is_for_programs(&self) -> bool {
        self.render.is_none()
    }

    /// What moves things on a terminal, as it is. The line that is open stays so.
    pub(super) fn raw(&mut self, text: &str) -> anyhow::Result<()> {
        if text.is_empty() { Ok(()) } else { self.sink.out(text) }
    }

    /// Lines for programs, as they are.
    pub(super) fn lines(&mut self, lines: &[String]) -> anyhow::Result<()> {
        if lines.is_empty() { Ok(()) } else { self.sink.out(&lines.concat()) }
    }

    /// What is new, for people.
    pub(super) fn changes(&mut self, changes: &[Change]) -> anyhow::Result<()> {
        let Some(render) = &mut self.render else { return Ok(()) };
        let text = render.render(changes);
        if text.is_empty() { Ok(()) } else { self.sink.out(&text) }
    }

    /// How it stands with the host: for programs, and in a sentence for people.
    pub(super) fn standing(
        &mut self,
        connection: Connection,
        text: Option<&str>,
    ) -> anyhow::Result<()> {
        if self.render.is_some() {
            return text.map_or(Ok(()), |text| self.note(text));
        }
        let line = json!({ "type": "connection", "state": connection.as_str() });
        self.sink.out(&format!("{line}\n"))
    }

    /// A line on the side, for people.
    pub(super) fn note(&mut self, text: &str) -> anyhow::Result<()> {
        self.close()?;
        if self.render.is_some() {
            self.sink.note(text);
        }
        Ok(())
    }

    /// Ends a line that is open.
    pub(super) fn close(&mut self) -> anyhow::Result<()> {
        let rest = self.render.as_mut().map(Render::close).unwrap_or_default();
        if rest.is_empty() { Ok(()) } else { self.sink.out(&rest) }
    }
}

/// Whether text has colours: on a terminal, unless `NO_COLOR` is set to something.
pub(super) fn has_colours(terminal: bool, variables: &BTreeMap<String, String>) -> bool {
    terminal && variables.get("NO_COLOR").is_none_or(String::is_empty)
}
