//! What waits to be sent.

use std::collections::VecDeque;

use wakeful_wire::rpc::{CLIENT_FRAME_MAX, Call, CallId, ClientFrame};

use super::text_of;
use crate::{Failure, FailureReason};

/// Frames in the order in which they are sent.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// A check whose probe is to be sent. Probes go first: one that waits behind what is slow to
    /// send would call a busy socket dead (spec client-runtime 2.7).
    probe: Option<u32>,
    frames: VecDeque<String>,
}

impl Outbox {
    /// A request.
    ///
    /// # Errors
    /// If it is longer than a host takes: sent all the same it would close the socket, and every
    /// other call with it.
    pub(super) fn request(&mut self, id: CallId, call: &Call) -> Result<(), Failure> {
        let method = call.method().to_owned();
        let frame = ClientFrame::Request { id, method, params: call.params() };
        let text = text_of(&frame).unwrap_or_default();
        if text.is_empty() || text.len() > CLIENT_FRAME_MAX {
            let detail = format!(
                "The request is too long: {} bytes, where a host takes {CLIENT_FRAME_MAX}.",
                text.len(),
            );
            return Err(Failure::new(FailureReason::Configuration, detail));
        }
        self.frames.push_back(text);
        Ok(())
    }

    /// Tells the host that a subscription is left.
    pub(super) fn cancel(&mut self, id: CallId) {
        self.frames.extend(text_of(&ClientFrame::Cancel { id }));
    }

    /// A probe.
    pub(super) const fn probe(&mut self, check: u32) {
        self.probe = Some(check);
    }

    /// The next frame.
    pub(super) fn next(&mut self) -> Option<String> {
        match self.probe.take() {
            Some(check) => text_of(&ClientFrame::Probe { id: CallId(check) }),
            None => self.frames.pop_front(),
        }
    }
}
