//! The body of an answer, and everything that lasts exactly as long as it.
//!
//! The lease, the access line and the connection to the surface travel in the body. Dropping it is
//! the end of the request on every path: the last byte was handed on, the client left, the surface
//! broke off, or the gateway was told to end it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Instant;
use wakeful_wire::{
    SandboxUid,
    gate::{FailureKind, LeaseKind},
};

use crate::{
    access_log::Line,
    control::{Body, BodyError},
    core::Core,
    leases::Lease,
    pool::{self, Connection},
    recall::{Enrolled, Why},
    refusal::Origin,
    stream::Client,
};

/// How long an answer without an announced end must last before it counts as a stream.
const STREAM_AFTER: Duration = Duration::from_secs(5);

/// A client connection is busy while this lives.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Client>);

impl Busy {
    pub(crate) fn new(client: &Arc<Client>, body: bool) -> Self {
        client.begin(body);
        Self(Arc::clone(client))
    }

    pub(crate) const fn client(&self) -> &Arc<Client> {
        &self.0
    }

    /// While the result lives, a client that leaves is noticed also with a body on its way.
    pub(crate) fn watch(&self, body: bool) -> Watch<'_> {
        if body {
            self.0.watch(true);
        }
        Watch(&self.0)
    }
}

/// See [`Busy::watch`].
#[derive(Debug)]
pub(crate) struct Watch<'a>(&'a Client);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.watch(false);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// What lasts as long as a request.
#[derive(Debug)]
pub(crate) struct Carried {
    pub(crate) line: Line,
    pub(crate) busy: Busy,
    /// Whether a refusal may be a page: not on the environment server's own route.
    pub(crate) pages: bool,
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) struct Answer {
    kind: Kind,
    carried: Carried,
}

#[derive(Debug)]
enum Kind {
    Whole(Bytes),
    Main(MainBody),
    Surface(SurfaceBody),
    Done,
}

impl Answer {
    /// A body of the gateway's own.
    pub(crate) const fn whole(bytes: Bytes, carried: Carried) -> Self {
        Self { kind: Kind::Whole(bytes), carried }
    }

    /// The main host's. A stream of events is told to end by `recall`.
    pub(crate) const fn main(body: Body, recall: Option<Enrolled>, carried: Carried) -> Self {
        Self { kind: Kind::Main(MainBody { inner: body, recall }), carried }
    }

    /// A surface's.
    pub(crate) const fn surface(body: SurfaceBody, carried: Carried) -> Self {
        Self { kind: Kind::Surface(body), carried }
    }

    fn complete(&mut self) {
        if let Kind::Surface(body) = std::mem::replace(&mut self.kind, Kind::Done) {
            body.complete();
        }
        self.carried.line.finish();
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let frame = match &mut this.kind {
            Kind::Done => return Poll::Ready(None),
            Kind::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                (!bytes.is_empty()).then(|| Ok(Frame::data(bytes)))
            }
            Kind::Main(body) => ready!(body.poll_frame(cx)),
            Kind::Surface(body) => ready!(body.poll_frame(cx)),
        };
        match frame {
            None => {
                this.complete();
                Poll::Ready(None)
            }
            Some(Ok(frame)) => {
                if this.is_end_stream() {
                    this.complete();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                if let Kind::Surface(body) = std::mem::replace(&mut this.kind, Kind::Done) {
                    this.carried.line.verdict("cut");
                    this.carried.line.origin(Origin::Environment);
                    if body.ends_by_close {
                        this.carried.busy.client().end_by_reset();
                    }
                    body.fail();
                }
                this.carried.line.finish();
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Done => true,
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Main(body) => body.inner.is_end_stream(),
            Kind::Surface(body) => body.is_end(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Done => SizeHint::with_exact(0),
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Main(body) => body.inner.size_hint(),
            Kind::Surface(body) => body.inner.size_hint(),
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // An empty body is never polled, nor is one whose last frame was its end.
        if self.is_end_stream() {
            self.complete();
        }
    }
}

/// The body of an answer of the main host.
#[derive(Debug)]
struct MainBody {
    inner: Body,
    recall: Option<Enrolled>,
}

impl MainBody {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        // Each frame is a whole event, so between two of them it may end.
        if self.recall.as_ref().is_some_and(|recall| recall.poll(cx).is_ready()) {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.inner).poll_frame(cx)
    }
}

/// Why the surface's answer broke off, for whoever reads the error.
#[derive(Debug, thiserror::Error)]
#[error("the environment was put to sleep while it answered")]
struct PutToSleep;

/// The body of a surface's answer.
#[derive(Debug)]
pub(crate) struct SurfaceBody {
    inner: Incoming,
    core: Arc<Core>,
    sandbox: SandboxUid,
    lease: Lease,
    /// Taken when the exchange has come to its end.
    connection: Option<Connection>,
    recall: Option<Enrolled>,
    /// When it would count as a stream; `None` for one that does, or that has a length.
    stream_from: Option<Instant>,
    event_stream: bool,
    ends_by_close: bool,
    /// The surface has said all; a chunked body tells it in no other way.
    ended: bool,
}

/// How the client will see the end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Manner {
    /// It is a stream of events, which may end at any event.
    pub(crate) event_stream: bool,
    /// Only the end of the connection tells the client that it is over (HTTP/1.0).
    pub(crate) ends_by_close: bool,
}

impl SurfaceBody {
    pub(crate) fn new(
        inner: Incoming,
        core: &Arc<Core>,
        sandbox: SandboxUid,
        mut lease: Lease,
        connection: Connection,
        manner: Manner,
        now: Instant,
    ) -> Self {
        let endless = !inner.is_end_stream() && inner.size_hint().exact().is_none();
        let mut recall = None;
        if manner.event_stream && !inner.is_end_stream() {
            lease.become_kind(LeaseKind::Stream);
            recall = Some(core.recalls().enroll(lease.hold().env(), true));
        }
        Self {
            inner,
            core: Arc::clone(core),
            sandbox,
            connection: Some(connection),
            stream_from: (endless && recall.is_none()).then(|| now + STREAM_AFTER),
            recall,
            lease,
            event_stream: manner.event_stream,
            ends_by_close: manner.ends_by_close,
            ended: false,
        }
    }

    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(recall) = &self.recall
            && let Poll::Ready(why) = recall.poll(cx)
        {
            match (why, self.event_stream) {
                (Why::Asleep | Why::Leaving, true) => return Poll::Ready(None),
                (Why::Asleep, false) => return Poll::Ready(Some(Err(PutToSleep.into()))),
                // It has until the end of the drain.
                (Why::Leaving, false) => self.recall = None,
            }
        }
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        if let Some(from) = self.stream_from
            && Instant::now() >= from
        {
            self.stream_from = None;
            self.lease.become_kind(LeaseKind::Stream);
            self.recall = Some(self.core.recalls().enroll(self.lease.hold().env(), true));
        }
        self.ended = match &frame {
            None => true,
            Some(Ok(frame)) => frame.is_trailers() || self.inner.is_end_stream(),
            Some(Err(_)) => false,
        };
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end(&self) -> bool {
        self.ended || self.inner.is_end_stream()
    }

    /// All of it has been handed on, or it was ended between two events.
    fn complete(mut self) {
        if let Some(connection) = self.connection.take() {
            if self.is_end() {
                pool::put(self.sandbox, self.lease.hold().surface(), connection, Instant::now());
            } else {
                connection.exchange().abort();
            }
        }
    }

    /// The surface broke off in the middle: told once, and nothing is run again.
    fn fail(mut self) {
        self.connection = None;
        let hold = self.lease.hold();
        let (core, env, surface) = (Arc::clone(&self.core), hold.env(), hold.surface().clone());
        let sandbox = self.sandbox;
        tokio::spawn(async move {
            core.failed(env, surface, sandbox, FailureKind::MidStream).await;
        });
    }
}

impl Drop for SurfaceBody {
    fn drop(&mut self) {
        // The client left: the surface sees a reset, and the connection is not used again.
        if let Some(connection) = &self.connection {
            connection.exchange().abort();
        }
    }
}
