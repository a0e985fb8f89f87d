//! What a client's frame means.

use serde::Deserialize as _;
use serde_json::Value;
use wakeful_wire::{
    Code, Problem,
    rpc::{Call, CallError, CallId, ClientFrame},
};

use super::ending::Ending;

/// What was heard.
#[derive(Debug, PartialEq)]
pub(super) enum Heard {
    /// A call.
    Call(CallId, Call),
    /// A call that ends.
    Cancel(CallId),
    /// A probe.
    Probe(CallId),
    /// Something that is refused on its id; the socket goes on.
    Refused(CallId, Problem),
    /// Something that a newer client knows, without an id: skipped.
    Skipped,
    /// Nothing that could be answered: the socket closes.
    Broken(Ending),
}

/// Understands a text frame.
pub(super) fn understand(text: &str) -> Heard {
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return Heard::Broken(Ending::NOT_JSON);
    };
    let id = value.get("id").and_then(Value::as_u64).and_then(|id| u32::try_from(id).ok());
    let id = id.map(CallId);
    let is_object = value.is_object();
    match (ClientFrame::deserialize(value), id) {
        (Ok(ClientFrame::Request { id, method, params }), _) => match Call::read(&method, params) {
            Ok(call) => Heard::Call(id, call),
            Err(error) => Heard::Refused(id, not_understood(&error)),
        },
        (Ok(ClientFrame::Cancel { id }), _) => Heard::Cancel(id),
        (Ok(ClientFrame::Probe { id }), _) => Heard::Probe(id),
        (Ok(ClientFrame::Unknown), Some(id)) => {
            let problem = Problem::new(Code::Unsupported)
                .field("type")
                .detail("This host does not know this type of frame.");
            Heard::Refused(id, problem)
        }
        (Ok(ClientFrame::Unknown), None) => Heard::Skipped,
        (Err(error), Some(id)) if is_object => {
            Heard::Refused(id, Problem::new(Code::Invalid).detail(error.to_string()))
        }
        (Err(_), _) => Heard::Broken(Ending::NOT_A_FRAME),
    }
}

fn not_understood(error: &CallError) -> Problem {
    match error {
        CallError::UnknownMethod(_) => {
            Problem::new(Code::Unsupported).field("method").detail(format!("{error}"))
        }
        CallError::Params(_) => {
            Problem::new(Code::Invalid).field("params").detail(format!("{error}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (CallId, Code, Option<String>) {
        let Heard::Refused(id, problem) = understand(text) else { panic!("{text} is taken") };
        (id, problem.code, problem.detail)
    }

    #[test]
    fn what_has_an_id_is_refused_on_it() {
        let table = [
            (r#"{"type":"request","id":3,"method":"thread.dance"}"#, Code::Unsupported),
            (r#"{"type":"request","id":3,"method":"thread.rename","params":{}}"#, Code::Invalid),
            (r#"{"type":"request","id":3}"#, Code::Invalid),
            (r#"{"type":"request","id":3,"method":7}"#, Code::Invalid),
            (r#"{"type":"dance","id":3}"#, Code::Unsupported),
            (r#"{"id":3}"#, Code::Invalid),
        ];
        for (text, expected) in table {
            let (id, code, detail) = refused(text);
            assert_eq!((id, code), (CallId(3), expected), "{text}");
            assert!(detail.is_some_and(|detail| !detail.is_empty()), "{text}");
        }
        let (_, _, detail) = refused(table[1].0);
        assert!(detail.unwrap().contains("thread"), "it says which field");
    }

    #[test]
    fn what_has_no_id_is_skipped_or_ends_the_socket() {
        assert_eq!(understand(r#"{"type":"dance"}"#), Heard::Skipped);
        assert_eq!(understand(r#"{"type":"dance","id":"x"}"#), Heard::Skipped);
        for text in ["", "{", "nonsense", &"[".repeat(10_000)] {
            assert_eq!(understand(text), Heard::Broken(Ending::NOT_JSON), "{text:.20}");
        }
        for text in ["4", "[]", "{}", r#"{"type":"probe","id":-1}"#, r#"{"type":"probe"}"#] {
            assert_eq!(understand(text), Heard::Broken(Ending::NOT_A_FRAME), "{text}");
        }
    }

    #[test]
    fn frames_are_read() {
        assert_eq!(understand(r#"{"type":"probe","id":9}"#), Heard::Probe(CallId(9)));
        assert_eq!(understand(r#"{"type":"cancel","id":9}"#), Heard::Cancel(CallId(9)));
        let Heard::Call(CallId(9), call) =
            understand(r#"{"type":"request","id":9,"method":"activity"}"#)
        else {
            panic!("no call")
        };
        assert_eq!(call.method(), "activity");
    }
}
