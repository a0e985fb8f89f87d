//! Whether a host is the one that was expected and can be understood.

use serde::Deserialize;
use wakeful_wire::{
    HostId,
    rpc::{Hello, HelloAgain, PROTOCOL},
};

use crate::{Failure, FailureReason};

/// Checks a hello.
///
/// # Errors
/// If it is another host's, which no retry mends (spec client-runtime 1), or of another protocol.
pub(super) fn check(hello: &Hello, expected: HostId) -> Result<(), Failure> {
    if hello.host.id != expected {
        let detail = format!("Another host answers: {} instead of {expected}.", hello.host.id);
        return Err(Failure::new(FailureReason::Configuration, detail));
    }
    if hello.protocol == PROTOCOL { Ok(()) } else { Err(unsupported(hello.protocol)) }
}

/// A hello that leaves out what is known, with that put in.
///
/// # Errors
/// If something else is known than what the host stands for.
pub(super) fn whole(again: HelloAgain, known: Option<Box<Hello>>) -> Result<Box<Hello>, Failure> {
    let Some(known) = known.filter(|known| known.tag.as_ref() == Some(&again.tag)) else {
        let detail = "The host counts on something that this client does not know of it.";
        return Err(Failure::new(FailureReason::Remote, detail));
    };
    let HelloAgain { protocol, host, tag: _, session, head } = again;
    let mut whole = Hello { protocol, session, head, ..*known };
    whole.host.id = host;
    Ok(Box::new(whole))
}

fn unsupported(protocol: u32) -> Failure {
    let whose = if protocol > PROTOCOL { "client" } else { "host" };
    let detail =
        format!("The host speaks protocol {protocol}, this client {PROTOCOL}. Update the {whose}.");
    Failure::new(FailureReason::Unsupported, detail)
}

/// What a frame that cannot be read means. The hello of another protocol may have any shape; where
/// it still says its number, that is the reason.
pub(super) fn unreadable(text: &str) -> Failure {
    #[derive(Deserialize)]
    struct Said {
        r#type: String,
        protocol: u32,
    }
    match serde_json::from_str::<Said>(text) {
        Ok(said) if said.r#type == "hello" && said.protocol != PROTOCOL => {
            unsupported(said.protocol)
        }
        Ok(_) | Err(_) => Failure::new(
            FailureReason::Remote,
            "The host sent something that is not a frame of this protocol.",
        ),
    }
}
