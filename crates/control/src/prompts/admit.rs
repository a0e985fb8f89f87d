//! What may be kept, and the call that it becomes.

use sha2::{Digest as _, Sha256};
use wakeful_wire::{
    api::KeepPrompt,
    rpc::{Call, Prompt, ThreadCreate, ThreadId, ThreadPrompt},
    sandbox::{Ask, AskKind, LINE_MAX},
};

use super::PromptError;

/// The most bytes of a kept prompt's text.
pub const TEXT_MAX: usize = 128 * 1024;

/// Room for a sandbox's secret in the line that carries a call: no secret is longer.
const SECRET_ROOM: usize = 256;

/// A prompt that may be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Admitted {
    /// Its thread.
    pub(super) thread: ThreadId,
    /// The call, as JSON.
    pub(super) call: String,
    /// By which a repetition is known.
    pub(super) digest: Vec<u8>,
}

/// Admits a prompt. `drawn` is the id of its thread, if that is to be a new one.
///
/// # Errors
/// [`PromptError::Invalid`] for an empty text, [`PromptError::TooLarge`] for one that is too long or
/// that would not fit the line by which the host gets it.
pub(super) fn admit(request: &KeepPrompt, drawn: ThreadId) -> Result<Admitted, PromptError> {
    if request.text.trim().is_empty() {
        return Err(PromptError::Invalid { field: "text", detail: "A prompt needs a text." });
    }
    if request.text.len() > TEXT_MAX {
        return Err(PromptError::TooLarge(TEXT_MAX));
    }
    let call = call(request, drawn);
    let json = serde_json::to_string(&call).map_err(PromptError::broken)?;
    let ask = AskKind::Deliver { call: Box::new(call) };
    let line = serde_json::to_vec(&Ask { secret: "0".repeat(SECRET_ROOM), ask });
    if line.map_err(PromptError::broken)?.len() > LINE_MAX {
        return Err(PromptError::TooLarge(LINE_MAX - SECRET_ROOM));
    }
    Ok(Admitted { thread: request.thread.unwrap_or(drawn), call: json, digest: digest(request)? })
}

/// By which a repetition of a request is known.
pub(super) fn digest(request: &KeepPrompt) -> Result<Vec<u8>, PromptError> {
    let bytes = serde_json::to_vec(request).map_err(PromptError::broken)?;
    Ok(Sha256::digest(bytes).to_vec())
}

fn call(request: &KeepPrompt, drawn: ThreadId) -> Call {
    let prompt = Prompt::text(request.client, request.text.clone());
    match request.thread {
        Some(thread) => Call::ThreadPrompt(ThreadPrompt { thread, prompt }),
        None => Call::ThreadCreate(ThreadCreate {
            thread: drawn,
            parent: None,
            project: request.project.clone().unwrap_or_default(),
            agent: request.agent.clone(),
            title: request.title.clone(),
            prompt: Some(prompt),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompts::testing::{a_client, a_request};

    const DRAWN: &str = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e50";
    const GIVEN: &str = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e51";

    #[test]
    fn a_new_thread_is_made_with_the_drawn_id_and_a_given_one_is_gone_on_with() {
        let drawn: ThreadId = DRAWN.parse().unwrap();
        let asked = KeepPrompt {
            agent: Some("helper".into()),
            project: Some("shop".into()),
            title: Some("Dishes".into()),
            ..a_request(a_client(1), "wash")
        };
        let admitted = admit(&asked, drawn).unwrap();
        let Call::ThreadCreate(create) = serde_json::from_str(&admitted.call).unwrap() else {
            panic!("{admitted:?}")
        };
        assert_eq!((create.thread, admitted.thread), (drawn, drawn));
        let named = (create.agent.as_deref(), create.title.as_deref(), create.project.as_str());
        assert_eq!(named, (Some("helper"), Some("Dishes"), "shop"));
        assert_eq!(create.prompt, Some(Prompt::text(a_client(1), "wash")));
        let given: ThreadId = GIVEN.parse().unwrap();
        let admitted = admit(&KeepPrompt { thread: Some(given), ..asked }, drawn).unwrap();
        let prompt = Prompt::text(a_client(1), "wash");
        let expected = Call::ThreadPrompt(ThreadPrompt { thread: given, prompt });
        assert_eq!(serde_json::from_str::<Call>(&admitted.call).unwrap(), expected);
        assert_eq!(admitted.thread, given);
    }

    #[test]
    fn a_repetition_is_known_whatever_id_was_drawn_and_any_other_word_is_told() {
        let asked = a_request(a_client(1), "wash");
        let first = admit(&asked, DRAWN.parse().unwrap()).unwrap().digest;
        assert_eq!(admit(&asked, GIVEN.parse().unwrap()).unwrap().digest, first);
        let others = [
            KeepPrompt { text: "dry".into(), ..asked.clone() },
            KeepPrompt { thread: Some(GIVEN.parse().unwrap()), ..asked.clone() },
            KeepPrompt { agent: Some("helper".into()), ..asked.clone() },
            KeepPrompt { project: Some("shop".into()), ..asked.clone() },
            KeepPrompt { title: Some("shop".into()), ..asked },
        ];
        for other in others {
            assert_ne!(digest(&other).unwrap(), first, "{other:?}");
        }
    }

    #[test]
    fn a_text_is_bounded_by_itself_and_by_the_line_that_carries_it() {
        let drawn = DRAWN.parse().unwrap();
        let table = [
            ("x".repeat(TEXT_MAX), None),
            ("x".repeat(TEXT_MAX + 1), Some("too_large")),
            // Each of these takes six bytes in a line.
            ("\u{1}".repeat(43_000), None),
            ("\u{1}".repeat(44_000), Some("too_large")),
            (String::new(), Some("invalid")),
            (" \n".to_owned(), Some("invalid")),
        ];
        for (text, refused) in table {
            let admitted = admit(&a_request(a_client(1), &text), drawn);
            let code = admitted.err().map(|error| error.code().as_str());
            assert_eq!(code, refused, "{} bytes", text.len());
        }
    }
}
