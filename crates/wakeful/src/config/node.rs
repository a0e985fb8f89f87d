//! A TOML document as a tree that remembers on which line each value stands.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

/// A value and its line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// The value.
    pub(crate) value: Value,
    /// The line that it begins on, from 1.
    pub(crate) line: usize,
}

/// A value. Dates are kept as their text: no setting is one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// A string.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// Any other number, as written.
    Float(String),
    /// True or false.
    Flag(bool),
    /// A date or time.
    Date(String),
    /// An array.
    List(Vec<Node>),
    /// A table.
    Table(Table),
}

/// A table, sorted by key.
pub(crate) type Table = BTreeMap<String, Node>;

impl Value {
    /// What kind of value it is, for messages.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a fractional number",
            Self::Flag(_) => "true or false",
            Self::Date(_) => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

impl Node {
    /// The table, if it is one.
    pub(crate) const fn as_table(&self) -> Option<&Table> {
        if let Value::Table(table) = &self.value { Some(table) } else { None }
    }

    /// The text, if it is one.
    pub(crate) const fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text.as_str()) } else { None }
    }

    /// The same as JSON, for the types that read themselves with serde.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Text(text) | Value::Float(text) | Value::Date(text) => text.as_str().into(),
            Value::Integer(number) => (*number).into(),
            Value::Flag(flag) => (*flag).into(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Table(table) => serde_json::Value::Object(
                table.iter().map(|(key, node)| (key.clone(), node.to_json())).collect(),
            ),
        }
    }
}

/// Reads a document.
///
/// # Errors
/// The line and what the parser found there.
pub(crate) fn parse(text: &str) -> Result<Table, (usize, String)> {
    let lines = Lines::new(text);
    match DeTable::parse(text) {
        Ok(document) => Ok(table(document.get_ref(), &lines)),
        Err(error) => {
            let line = error.span().map_or(1, |span| lines.of(span.start));
            Err((line, error.message().replace('\n', ", ")))
        }
    }
}

/// Where lines begin.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        Self(
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect(),
        )
    }

    /// The line of the byte at `at`, from 1.
    fn of(&self, at: usize) -> usize {
        self.0.partition_point(|newline| *newline < at) + 1
    }
}

fn table(table: &DeTable<'_>, lines: &Lines) -> Table {
    table
        .iter()
        .map(|(key, value)| {
            // A table's own span begins at its header, and an implied one has none: the key's line
            // is what a person looks for.
            let node =
                Node { value: convert(value.get_ref(), lines), line: lines.of(key.span().start) };
            (key.get_ref().clone().into_owned(), node)
        })
        .collect()
}

fn convert(value: &DeValue<'_>, lines: &Lines) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.clone().into_owned()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Value::Float(number.to_string()), Value::Integer),
        DeValue::Float(number) => Value::Float(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(items) => Value::List(
            items
                .iter()
                .map(|item| Node {
                    value: convert(item.get_ref(), lines),
                    line: lines.of(item.span().start),
                })
                .collect(),
        ),
        DeValue::Table(inner) => Value::Table(table(inner, lines)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_knows_its_line() {
        let document = parse("a = 1\n\n[b]\nc = [\n  'x',\n  'y',\n]\n").unwrap();
        assert_eq!(document["a"].line, 1);
        assert_eq!(document["b"].line, 3);
        let c = &document["b"].as_table().unwrap()["c"];
        assert_eq!(c.line, 4);
        let Value::List(items) = &c.value else { panic!("{c:?}") };
        assert_eq!((items[0].line, items[1].line), (5, 6));
    }

    #[test]
    fn a_syntax_error_names_its_line() {
        let (line, message) = parse("a = 1\nb = = 2\n").unwrap_err();
        assert_eq!(line, 2);
        assert!(!message.is_empty());
    }

    #[test]
    fn a_number_beyond_64_bits_is_no_whole_number() {
        let document = parse("a = 99999999999999999999\n").unwrap();
        assert_eq!(document["a"].value.kind(), "a fractional number");
    }
}
