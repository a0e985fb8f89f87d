//! Server-sent events, read as they come (HTML Living Standard, section 9.2.6).

/// The most bytes of one event.
const EVENT_MAX: usize = 4 << 20;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its type, `message` unless named.
    pub kind: String,
    /// Its data.
    pub data: String,
}

/// An event was longer than this client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {EVENT_MAX} bytes")]
pub struct TooLong;

/// Takes bytes in any portions and gives out whole events.
#[derive(Debug, Default)]
pub struct Reader {
    line: Vec<u8>,
    after_return: bool,
    kind: String,
    data: String,
}

impl Reader {
    /// Takes bytes and returns the events that they complete.
    ///
    /// # Errors
    /// [`TooLong`]; the reader is of no use afterwards.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        for byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                other => self.line.push(*other),
            }
            if self.line.len() + self.data.len() > EVENT_MAX {
                return Err(TooLong);
            }
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let kind = std::mem::take(&mut self.kind);
            let mut data = std::mem::take(&mut self.data);
            // Data ends with a line end; without any data there is no event.
            data.pop()?;
            let kind = if kind.is_empty() { "message".to_owned() } else { kind };
            return Some(Event { kind, data });
        }
        let line = String::from_utf8_lossy(&line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.kind),
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            // A comment, an id, a retry delay: nothing that this client needs.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, data: &str) -> Event {
        Event { kind: kind.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn events_come_whole_however_the_bytes_are_cut() {
        let text =
            ": hello\n\nevent: environment\ndata: {\"a\":1}\n\ndata:x\r\ndata: y\r\n\r\nid: 1\n\n";
        let expected = vec![event("environment", "{\"a\":1}"), event("message", "x\ny")];
        for size in 1..text.len() {
            let mut reader = Reader::default();
            let events: Vec<_> = text
                .as_bytes()
                .chunks(size)
                .flat_map(|chunk| reader.push(chunk).unwrap())
                .collect();
            assert_eq!(events, expected, "in portions of {size}");
        }
    }

    #[test]
    fn an_event_without_an_end_is_refused() {
        let mut reader = Reader::default();
        let portion = vec![b'x'; EVENT_MAX];
        assert_eq!(reader.push(&portion), Ok(Vec::new()));
        assert_eq!(reader.push(b"x"), Err(TooLong));
    }
}
