//! One request, phase by phase.
//!
//! Route and framing are decided here; [`crate::entry`] says who may go on, [`crate::passing`]
//! waits at the gate and dials, [`crate::exchange`] sends the request and hands the answer on.

use std::{net::SocketAddr, sync::Arc};

use http::{HeaderValue, Request, Response, Uri, header, uri::PathAndQuery};
use hyper::{
    body::{Body as _, Incoming},
    upgrade::OnUpgrade,
};

use crate::{
    access_log::Line,
    admit::Door,
    answer::{Answer, Busy, Carried},
    core::Core,
    entry::{self, Turned},
    exchange::is_event_stream,
    framing, intent, passing,
    rescue::{self, Asked},
    route::{HostLabel, HostTarget, PathPlace, PathTarget, Target},
    stream::Client,
    upgrade::{self, own},
};

/// Serves one request.
pub(crate) async fn serve(
    core: Arc<Core>,
    client: Arc<Client>,
    mut request: Request<Incoming>,
) -> Response<Answer> {
    let line = Line::new(Arc::clone(core.counters()), request.method(), request.uri());
    let busy = Busy::new(&client, !request.body().is_end_stream());
    let mut carried = Carried { line, busy, pages: true };
    let checked = framing::check_request(request.method(), request.version(), request.headers());
    if let Err(fault) = checked {
        let upgrade = upgrade_of(&mut request);
        let about = (request.method(), request.headers());
        let mut response = upgrade::refuse(&core, carried, &fault.into(), about, upgrade);
        let headers = response.headers_mut();
        headers.entry(header::CONNECTION).or_insert(HeaderValue::from_static("close"));
        return response;
    }
    let peer = client.peer.ip();
    let target = core.target(request.method(), request.uri(), request.headers(), peer);
    let place = match target {
        Ok(Target::Main) => return main(&core, carried, client.peer, request).await,
        Ok(Target::Path(target)) => Named::Path(target),
        Ok(Target::Host(target)) => Named::Host(target),
        Ok(Target::Redirect(to)) => {
            carried.line.verdict("redirect");
            return own(rescue::redirect(&to), carried);
        }
        Ok(Target::NeedsName) => {
            carried.line.verdict("needs_name");
            let asked = Asked::new(request.method(), request.headers(), core.hosts());
            return own(rescue::needs_name(asked), carried);
        }
        Err(error) => {
            let upgrade = upgrade_of(&mut request);
            let about = (request.method(), request.headers());
            return upgrade::refuse(&core, carried, &error.into(), about, upgrade);
        }
    };
    carried.line.route(place.label());
    carried.pages = !place.is_env_host();
    match entry::admit(&core, &request, &place).await {
        Ok(admitted) => {
            carried.line.surface(admitted.env, &admitted.surface);
            carried.line.admitted();
            passing::pass(&core, carried, request, &place, &admitted).await
        }
        Err(Turned::Away(refusal)) => {
            let upgrade = upgrade_of(&mut request);
            let about = (request.method(), request.headers());
            upgrade::refuse(&core, carried, &refusal, about, upgrade)
        }
        Err(Turned::Elsewhere(response)) => {
            carried.line.verdict("own");
            own(response, carried)
        }
    }
}

/// The client's half of an upgrade, if the request is a WebSocket handshake.
pub(crate) fn upgrade_of(request: &mut Request<Incoming>) -> Option<OnUpgrade> {
    intent::is_websocket(request.headers()).then(|| hyper::upgrade::on(request))
}

async fn main(
    core: &Core,
    mut carried: Carried,
    peer: SocketAddr,
    mut request: Request<Incoming>,
) -> Response<Answer> {
    carried.line.main();
    request.extensions_mut().insert(peer);
    let response = core.shared().main.serve(request).await;
    carried.line.status(response.status().as_u16());
    // An open dashboard listens for ever; without this it would keep a stop waiting.
    let recall = is_event_stream(response.headers()).then(|| core.recalls().enroll_main());
    response.map(|body| Answer::main(body, recall, carried))
}

/// What a request for a surface named.
#[derive(Debug)]
pub(crate) enum Named {
    Path(PathTarget),
    Host(HostTarget),
}

impl Named {
    pub(crate) fn door(&self) -> Door<'_> {
        match self {
            Self::Path(target) => target.into(),
            Self::Host(target) => target.into(),
        }
    }

    pub(crate) const fn is_own(&self) -> bool {
        match self {
            Self::Path(target) => target.own,
            Self::Host(target) => target.own,
        }
    }

    /// Whether it is the environment server's own route, where nothing is a page.
    pub(crate) const fn is_env_host(&self) -> bool {
        match self {
            Self::Path(target) => matches!(target.place, PathPlace::EnvHost(_)),
            Self::Host(_) => false,
        }
    }

    /// The target as the program sees it.
    pub(crate) fn rest<'a>(&self, path_and_query: &'a str) -> &'a str {
        match self {
            Self::Path(target) => target.rest(path_and_query),
            Self::Host(_) => path_and_query,
        }
    }

    pub(crate) fn prefix<'a>(&self, path_and_query: &'a str) -> Option<&'a str> {
        match self {
            Self::Path(target) => Some(target.prefix(path_and_query)),
            Self::Host(_) => None,
        }
    }

    pub(crate) const fn label(&self) -> &'static str {
        match self {
            Self::Path(target) => match &target.place {
                PathPlace::Agent(_) => "path",
                PathPlace::User(_) => "user",
                PathPlace::EnvHost(_) => "env_host",
            },
            Self::Host(target) => match &target.label {
                HostLabel::Bare | HostLabel::Slug(_) => "host",
                HostLabel::Preview => "preview",
                HostLabel::Surface => "surface_host",
            },
        }
    }
}

/// The target of a request: a path, and perhaps a query.
pub(crate) fn path_and_query(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", PathAndQuery::as_str)
}
