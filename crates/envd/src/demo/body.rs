//! Bodies of the demo's answers.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

/// A text at once, or pieces as they come.
#[derive(Debug)]
pub(super) enum Payload {
    Whole(Option<Bytes>),
    Pieces { pieces: mpsc::Receiver<io::Result<Bytes>>, length: Option<u64> },
}

impl Payload {
    pub(super) fn text(text: impl Into<Bytes>) -> Self {
        Self::Whole(Some(text.into()))
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.get_mut() {
            Self::Whole(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Pieces { pieces, .. } => {
                pieces.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(text) => SizeHint::with_exact(
                text.as_ref().map_or(0, |text| u64::try_from(text.len()).unwrap_or(u64::MAX)),
            ),
            Self::Pieces { length: Some(length), .. } => SizeHint::with_exact(*length),
            Self::Pieces { length: None, .. } => SizeHint::default(),
        }
    }
}
