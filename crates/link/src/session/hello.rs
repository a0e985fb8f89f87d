//! Whether a host is the one that was expected and can be understood.

use serde::Deserialize;
use wakeful_wire::{
    HostId,
    rpc::{Hello, PROTOCOL},
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
