//! What an agent writes on its standard output, line by line.

use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Line {
    /// The agent wants something.
    Request { id: Value, method: String, params: Value },
    /// The agent says something.
    Notification { method: String, params: Value },
    /// The agent answers what the host asked.
    Answer { id: u64, result: Result<Value, Fault> },
    /// No message of the protocol: a banner, a log line, an answer to nobody.
    Noise(Vec<u8>),
    /// A line that was longer than the bound, of so many bytes. Nothing of it was kept.
    TooLong(u64),
}

/// An agent's error answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Fault {
    #[serde(default)]
    pub(super) code: i64,
    #[serde(default)]
    pub(super) message: String,
}

/// Reads one line of at most `max` bytes; `None` at the end of the stream or when it breaks.
///
/// A longer line is read to its end and dropped: one line that nobody can hold must not cost the
/// turn. Empty lines are passed over. Not safe to lose half-way: a line would be lost with it.
pub(super) async fn next_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    max: usize,
) -> Option<Line> {
    let (mut line, mut dropped) = (Vec::new(), 0_u64);
    loop {
        let bytes = reader.fill_buf().await.ok()?;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(bytes.len(), |end| end + 1);
        if taken == 0 {
            // A line without an end at the end of the stream is what a crash cut.
            return None;
        }
        let piece = &bytes[..taken];
        if dropped > 0 || line.len() + piece.len() > max {
            dropped += u64::try_from(line.len() + piece.len()).unwrap_or(u64::MAX);
            line = Vec::new();
        } else {
            line.extend_from_slice(piece);
        }
        reader.consume(taken);
        if end.is_none() {
            continue;
        }
        if dropped > 0 {
            return Some(Line::TooLong(dropped));
        }
        if !line.trim_ascii().is_empty() {
            return Some(read(line));
        }
        line.clear();
    }
}

/// Tells what a line is. Only an object that names the protocol is a message of it; all else is
/// noise, however much it looks like JSON, and is never answered: an agent that logs what it
/// receives would answer the answer.
fn read(line: Vec<u8>) -> Line {
    #[derive(Deserialize)]
    struct Message {
        jsonrpc: String,
        #[serde(default, deserialize_with = "some")]
        id: Option<Value>,
        method: Option<String>,
        #[serde(default)]
        params: Value,
        #[serde(default, deserialize_with = "some")]
        result: Option<Value>,
        error: Option<Fault>,
    }
    /// `null` is a value here, and not the absence of one.
    fn some<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
        Value::deserialize(deserializer).map(Some)
    }
    if line.trim_ascii_start().first() != Some(&b'{') {
        return Line::Noise(line);
    }
    let Ok(message) = serde_json::from_slice::<Message>(&line) else { return Line::Noise(line) };
    if message.jsonrpc != "2.0" {
        return Line::Noise(line);
    }
    match (message.method, message.id) {
        (Some(method), Some(id)) if !id.is_null() => {
            Line::Request { id, method, params: message.params }
        }
        (Some(method), _) => Line::Notification { method, params: message.params },
        // The host's ids are numbers; an answer to anything else is an answer to nobody.
        (None, Some(id)) => match (id.as_u64(), message.result, message.error) {
            (Some(id), _, Some(fault)) => Line::Answer { id, result: Err(fault) },
            (Some(id), Some(value), None) => Line::Answer { id, result: Ok(value) },
            _ => Line::Noise(line),
        },
        (None, None) => Line::Noise(line),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn all(text: &[u8], max: usize) -> Vec<Line> {
        let mut reader = tokio::io::BufReader::with_capacity(7, text);
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut reader, max).await {
            lines.push(line);
        }
        lines
    }

    #[test]
    fn only_an_object_that_names_the_protocol_is_a_message() {
        let noise: [&[u8]; 10] = [
            b"Welcome to the agent!",
            b"[1,2]",
            b"{\"level\":\"info\",\"message\":\"started\"}",
            b"{\"jsonrpc\":\"1.0\",\"method\":\"x\"}",
            b"{\"jsonrpc\":\"2.0\"}",
            b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":1}",
            b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1}}",
            b"{\"jsonrpc\":\"2.0\",\"id\":1}",
            b"{\"jsonrpc\":\"2.0\",",
            b"\xff\xfe",
        ];
        for line in noise {
            assert_eq!(read(line.to_vec()), Line::Noise(line.to_vec()));
        }
        assert_eq!(
            read(b"  {\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"m\",\"params\":{}}".to_vec()),
            Line::Request { id: json!("x"), method: "m".to_owned(), params: json!({}) }
        );
        assert_eq!(
            read(b"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}".to_vec()),
            Line::Notification { method: "m".to_owned(), params: Value::Null }
        );
        assert_eq!(
            read(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":null}".to_vec()),
            Line::Answer { id: 7, result: Ok(Value::Null) }
        );
        assert_eq!(
            read(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32000}}".to_vec()),
            Line::Answer { id: 7, result: Err(Fault { code: -32000, message: String::new() }) }
        );
    }

    #[tokio::test]
    async fn a_line_over_the_bound_is_dropped_and_the_next_one_is_read() {
        let text = b"\r\nshort\n0123456789012345678901234567890\n\nlast\ncut off";
        let lines = all(text, 10).await;
        assert_eq!(
            lines,
            [Line::Noise(b"short\n".to_vec()), Line::TooLong(32), Line::Noise(b"last\n".to_vec())]
        );
    }
}
