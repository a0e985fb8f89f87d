//! Upgrade: a WebSocket handshake, passed on, and the relay that follows it.
//!
//! The client's 101 is the surface's own, with its choice of subprotocol and extensions, and is
//! sent only once it has come. Bytes that either side sent in the same segment as its head are the
//! first that the relay moves.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Response};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use wakeful_wire::{
    Phase, SandboxUid,
    gate::{FailureKind, LeaseKind},
};

use crate::{
    answer::{Answer, Carried},
    core::Core,
    leases::Lease,
    refusal::Refusal,
    relay::{self, Ended, Relay},
    rescue::{self, Asked, SocketAnswer},
    stream::{ClientIo, SurfaceIo},
};

/// An answer of the gateway's own.
pub(crate) fn own(response: Response<Bytes>, mut carried: Carried) -> Response<Answer> {
    carried.line.status(response.status().as_u16());
    response.map(|body| Answer::whole(body, carried))
}

/// The answer to a request that is refused. `upgrade` is the request's own, where it is a
/// handshake: a browser's is completed only to be closed with a code that says why.
pub(crate) fn refuse(
    core: &Core,
    mut carried: Carried,
    refusal: &Refusal,
    (method, headers): (&Method, &HeaderMap),
    upgrade: Option<OnUpgrade>,
) -> Response<Answer> {
    carried.line.verdict(refusal.code.as_str());
    carried.line.origin(refusal.origin());
    let asked = Asked::new(method, headers, core.hosts()).pages(carried.pages);
    let Some(upgrade) = upgrade else {
        return own(rescue::refuse(refusal, asked), carried);
    };
    match rescue::refuse_socket(refusal, asked) {
        SocketAnswer::Plain(response) => own(response, carried),
        SocketAnswer::AcceptAndClose { head, frame } => {
            core.tasks().spawn(async move {
                if let Ok(upgraded) = upgrade.await
                    && let Some((client, _)) = take_client(upgraded)
                {
                    relay::refuse(client, frame).await;
                }
            });
            carried.line.status(refusal.code.status());
            head.map(|()| Answer::whole(Bytes::new(), carried))
        }
    }
}

fn take_client(upgraded: Upgraded) -> Option<(ClientIo, Bytes)> {
    let parts = upgraded.downcast::<TokioIo<ClientIo>>().ok()?;
    Some((parts.io.into_inner(), parts.read_buf))
}

fn take_surface(upgraded: Upgraded) -> Option<(SurfaceIo, Bytes)> {
    let parts = upgraded.downcast::<TokioIo<SurfaceIo>>().ok()?;
    Some((parts.io.into_inner(), parts.read_buf))
}

/// What a relay holds while it lasts.
pub(crate) struct Held {
    pub(crate) core: Arc<Core>,
    pub(crate) lease: Lease,
    pub(crate) sandbox: SandboxUid,
}

/// Relays two connections from the moment that both have switched. Returns at once.
pub(crate) fn relay(held: Held, client: OnUpgrade, surface: OnUpgrade) {
    let tasks = held.core.tasks().clone();
    tasks.clone().spawn(async move {
        // Both are ready as soon as each side's head is through; if the client leaves before, the
        // surface's side is dropped, and so closed.
        let Ok((client, surface)) = futures::future::try_join(client, surface).await else {
            return;
        };
        let (Some(client), Some(surface)) = (take_client(client), take_surface(surface)) else {
            return;
        };
        // A task of its own: the one around it is large, and this one may last for days.
        tasks.spawn(last(held, Relay::new(client, surface)));
    });
}

async fn last(mut held: Held, mut relay: Relay) {
    held.lease.become_kind(LeaseKind::Socket);
    let hold = Arc::clone(held.lease.hold());
    let weighs = hold.surface().as_str() != "host";
    let recall = held.core.recalls().enroll(hold.env(), weighs);
    let ended = relay.watch(&recall).await;
    drop(recall);
    let data_frames = relay.data_frames();
    tracing::debug!(env = %hold.env(), ?ended, data_frames, "a socket has ended");
    if matches!(ended, Ended::SurfaceGone) {
        let surface = hold.surface().clone();
        // Both boxed: what happens once at the end takes no memory while nothing happens.
        let (env, kind) = (hold.env(), FailureKind::MidStream);
        Box::pin(held.core.failed(env, surface, held.sandbox, kind)).await;
    }
    Box::pin(relay.finish(&ended, Phase::Suspending.as_str())).await;
    held.lease.release();
}
