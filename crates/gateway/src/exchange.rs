//! One exchange with a surface: the request as the program is to see it, the answer as the visitor
//! is to see it.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header,
    uri::PathAndQuery,
};
use hyper::{body::Incoming, upgrade::OnUpgrade};
use tokio::time::Instant;
use wakeful_wire::{
    Code,
    gate::{FailureKind, SignedInBy, Upstream},
    hosts::PathOrigin,
};

use crate::{
    answer::{Answer, Carried, Manner, SurfaceBody},
    core::Core,
    entry::Admitted,
    forward::{self, SendError, Way},
    framing,
    gate::Entry,
    headers::{self, Place, RequestContext, ResponseContext},
    intent::{self, Visit},
    leases::Lease,
    pool::RequestBody,
    refusal::{Origin, Refusal},
    serve::{Named, path_and_query},
    upgrade::{self, Held},
};

/// What a request got at the gate.
pub(crate) struct Bound<'a> {
    pub(crate) entry: &'a Arc<Entry>,
    pub(crate) lease: Lease,
    pub(crate) ready: forward::Ready,
    pub(crate) wakes: bool,
}

/// What is kept of a request whose headers become the program's.
struct Kept {
    method: Method,
    version: Version,
    uri: Uri,
    host: Option<HeaderValue>,
    visit: Visit,
    by: Option<SignedInBy>,
    /// A handshake's headers as they came, and its client's half.
    socket: Option<(HeaderMap, OnUpgrade)>,
}

impl Kept {
    fn authority(&self) -> &str {
        match self.uri.authority() {
            Some(authority) => authority.as_str(),
            None => self.host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or_default(),
        }
    }

    /// Headers that say as much of the visitor as a refusal's looks depend on.
    fn manners(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if matches!(self.visit, Visit::PageLoad | Visit::Submit) {
            headers.insert("sec-fetch-mode", HeaderValue::from_static("navigate"));
        }
        headers
    }

    fn refuse(self, core: &Core, carried: Carried, refusal: &Refusal) -> Response<Answer> {
        match self.socket {
            Some((headers, upgrade)) => {
                let about = (&self.method, &headers);
                upgrade::refuse(core, carried, refusal, about, Some(upgrade))
            }
            None => {
                let headers = self.manners();
                upgrade::refuse(core, carried, refusal, (&self.method, &headers), None)
            }
        }
    }
}

/// The program's own address, `host:port`.
fn address(upstream: &Upstream) -> Cow<'_, str> {
    match upstream {
        Upstream::Broker { authority, .. } => authority.as_str().into(),
        Upstream::Tcp { address, .. } => address.to_string().into(),
    }
}

fn basic(upstream: &Upstream) -> Option<HeaderValue> {
    let (Upstream::Broker { basic, .. } | Upstream::Tcp { basic, .. }) = upstream;
    basic.as_deref().and_then(headers::basic)
}

/// Sends the request and hands the answer on.
pub(crate) async fn exchange(
    core: &Arc<Core>,
    mut carried: Carried,
    mut request: Request<Incoming>,
    named: &Named,
    admitted: &Admitted,
    bound: Bound<'_>,
) -> Response<Answer> {
    let answer = bound.entry.answer();
    let (Some(sandbox), Some(upstream)) = (answer.sandbox, answer.upstream.as_ref()) else {
        let about = (request.method(), request.headers());
        return upgrade::refuse(core, carried, &Refusal::new(Code::Internal), about, None);
    };
    let by = admitted.principal.as_ref().map(|principal| principal.by);
    let socket = intent::is_websocket(request.headers())
        .then(|| (request.headers().clone(), hyper::upgrade::on(&mut request)));
    let (mut parts, body) = request.into_parts();
    let kept = Kept {
        method: parts.method.clone(),
        version: parts.version,
        uri: parts.uri.clone(),
        host: parts.headers.get(header::HOST).cloned(),
        visit: intent::visit(&parts.method, &parts.headers, by),
        by,
        socket,
    };
    let target = path_and_query(&kept.uri);
    let rest = named.rest(target);
    let Some(uri) = target_of(named, &kept.uri, rest) else {
        return kept.refuse(core, carried, &Refusal::new(Code::BadTarget));
    };
    let own_address = address(upstream);
    // A surface's pair is for its program, and the environment server is none.
    let basic = admitted.declared.as_ref().and_then(|_| basic(upstream));
    headers::prepare_request(
        &mut parts.headers,
        &RequestContext {
            hosts: core.hosts(),
            surface: &admitted.surface,
            declared: admitted.declared.as_deref(),
            authority: kept.authority(),
            upstream: &own_address,
            peer: carried.busy.client().peer.ip(),
            user: admitted.principal.as_ref().map(|principal| &principal.user),
            basic: basic.as_ref(),
            prefix: named.prefix(target),
            upgrade: kept.socket.is_some(),
        },
    );
    let asked = kept.socket.as_ref().map(|_| parts.headers.clone()).unwrap_or_default();
    parts.uri = uri;
    parts.version = Version::HTTP_11;
    parts.extensions.clear();
    let request = Request::from_parts(parts, RequestBody::of(body));
    let way = Way { sandbox, surface: &admitted.surface, upstream };
    let (mut response, connection) = match forward::send(core, way, bound.ready, request).await {
        Ok(answered) => answered,
        Err(SendError::ClientLeft) => {
            // Nobody reads it; the connection is being closed.
            drop(bound.lease);
            carried.line.status(499);
            carried.line.origin(Origin::Client);
            let mut response = Response::new(Answer::whole(Bytes::new(), carried));
            *response.status_mut() = StatusCode::BAD_REQUEST;
            return response;
        }
        Err(SendError::Failed(kind)) => {
            drop(bound.lease);
            let kind = if kept.socket.is_some() { FailureKind::Handshake } else { kind };
            let (env, surface) = (admitted.env, admitted.surface.clone());
            let refusal = Box::pin(core.refusal_of_failure(env, surface, sandbox, kind)).await;
            return kept.refuse(core, carried, &refusal);
        }
    };
    carried.line.head();
    let status = response.status();
    let fault =
        framing::check_response(status, response.version(), response.headers(), &asked).err();
    if let Some(fault) = fault {
        tracing::debug!(env = %admitted.env, %fault, "an answer is not handed on");
        connection.exchange().abort();
        drop((connection, response, bound.lease));
        let kind =
            if kept.socket.is_some() { FailureKind::Handshake } else { FailureKind::Malformed };
        let (env, surface) = (admitted.env, admitted.surface.clone());
        let refusal = Box::pin(core.refusal_of_failure(env, surface, sandbox, kind)).await;
        return kept.refuse(core, carried, &refusal);
    }
    headers::prepare_response(
        status,
        response.headers_mut(),
        &ResponseContext {
            hosts: core.hosts(),
            declared: admitted.declared.as_deref(),
            place: match named {
                Named::Path(place) => Place::Path { prefix: place.prefix(target) },
                Named::Host(place) => Place::Host { host: &place.host },
            },
            target: rest,
            authority: kept.authority(),
            upstream: &own_address,
            basic: basic.is_some(),
            sandbox: matches!(named, Named::Path(_))
                && kept.by == Some(SignedInBy::Cookie)
                && core.hosts().path_origin == PathOrigin::Separate,
        },
    );
    carried.line.status(status.as_u16());
    carried.line.verdict(if bound.wakes { "ready" } else { "ready_without_intent" });
    if let Some((asked, client)) = kept.socket {
        if status == StatusCode::SWITCHING_PROTOCOLS {
            let surface = hyper::upgrade::on(&mut response);
            let held = Held { core: Arc::clone(core), lease: bound.lease, sandbox };
            upgrade::relay(held, client, surface);
            let (parts, _) = response.into_parts();
            return Response::from_parts(parts, Answer::whole(Bytes::new(), carried));
        }
        if asked.contains_key(header::ORIGIN) {
            // A browser learns nothing from a refused upgrade, so it is told by a close code. What
            // the environment server says of a ticket is believed; a program's status may mean
            // anything.
            let code = match status.as_u16() {
                401 if named.is_env_host() => Code::Unauthenticated,
                403 if named.is_env_host() => Code::Forbidden,
                503 if named.is_env_host() => Code::Restarting,
                _ => Code::UpstreamFailed,
            };
            let refusal = Refusal::new(code).detail("The program did not complete the upgrade.");
            let about = (&kept.method, &asked);
            return upgrade::refuse(core, carried, &refusal, about, Some(client));
        }
    }
    let (mut parts, body) = response.into_parts();
    parts.version = Version::HTTP_11;
    let manner = Manner {
        event_stream: is_event_stream(&parts.headers),
        ends_by_close: kept.version < Version::HTTP_11,
    };
    let body =
        SurfaceBody::new(body, core, sandbox, bound.lease, connection, manner, Instant::now());
    Response::from_parts(parts, Answer::surface(body, carried))
}

/// The target to send: the bytes that came, in origin form and without the route's prefix.
fn target_of(named: &Named, uri: &Uri, rest: &str) -> Option<Uri> {
    match named {
        Named::Host(_) if uri.authority().is_none() => Some(uri.clone()),
        Named::Host(_) => uri.path_and_query().cloned().map(Uri::from),
        Named::Path(_) => {
            let rest = Bytes::copy_from_slice(rest.as_bytes());
            PathAndQuery::from_maybe_shared(rest).ok().map(Uri::from)
        }
    }
}

/// Whether an answer is a stream of events.
pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|value| {
        let media = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
        media.trim_ascii().eq_ignore_ascii_case(b"text/event-stream")
    })
}
