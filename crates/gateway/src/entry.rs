//! The shell of [`crate::admit`]: who asks, what there is, and whether they may.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, header};
use hyper::body::Incoming;
use wakeful_wire::{
    Code, EnvId, SurfaceName,
    gate::{Principal, Route},
    hosts::REDEEM_TICKET_PATH,
    template::{Access, RouteKind, Surface},
};

use crate::{
    admit::{self, AdmitError, Anonymous, Door},
    control::Unavailable,
    core::Core,
    intent, own,
    refusal::Refusal,
    rescue, route,
    route::PathPlace,
    serve::{Named, path_and_query},
};

/// Who may go on, and where to.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) env: EnvId,
    pub(crate) surface: SurfaceName,
    pub(crate) route: Arc<Route>,
    /// `None`: the environment server's own surface.
    pub(crate) declared: Option<Arc<Surface>>,
    pub(crate) principal: Option<Principal>,
}

/// Why a request goes no further.
#[derive(Debug)]
pub(crate) enum Turned {
    Away(Refusal),
    Elsewhere(Response<Bytes>),
}

impl From<AdmitError> for Turned {
    fn from(error: AdmitError) -> Self {
        Self::Away(error.into())
    }
}

impl From<Unavailable> for Turned {
    fn from(error: Unavailable) -> Self {
        tracing::warn!(%error, "a request cannot be admitted");
        Self::Away(Refusal::control_unavailable())
    }
}

/// Who asks, and whether they may.
pub(crate) async fn admit(
    core: &Core,
    request: &Request<Incoming>,
    named: &Named,
) -> Result<Admitted, Turned> {
    let (method, headers, uri) = (request.method(), request.headers(), request.uri());
    if let Named::Host(target) = named
        && target.own
        && *method == Method::GET
        && uri.path() == REDEEM_TICKET_PATH
    {
        let query = uri.query().unwrap_or_default();
        let redeemed = Box::pin(own::redeem(core, headers, query, &target.host)).await;
        return Err(redeemed.map_or_else(Turned::Away, Turned::Elsewhere));
    }
    let door = named.door();
    // One reading of the clock for all that is remembered.
    let now = core.now();
    let principal = principal(core, headers, door, now).await?;
    if let Some(principal) = &principal {
        let authority = route::authority(uri, headers).map_err(|e| Turned::Away(e.into()))?;
        admit::check_origin(method, headers, principal.by, door, authority, core.hosts())?;
    }
    // Nobody learns what there is before somebody is known.
    if principal.is_none() {
        if named.is_env_host() {
            // Nobody opens it as a page, so there is no page to sign in for.
            return Err(AdmitError::NotSignedIn.into());
        }
        return Err(anonymous(core, request, door));
    }
    let (env, surface) = resolve(core, named, principal.as_ref()).await?;
    let route = core.route(env, now).await?.ok_or(AdmitError::NotFound)?;
    let env_host = surface == SurfaceName::host();
    let declared = route.surfaces.get(&surface).cloned();
    match &declared {
        None if env_host => {}
        None => return Err(AdmitError::NotFound.into()),
        Some(declared) => {
            let closed = match named {
                Named::Path(_) => RouteKind::Host,
                Named::Host(_) => RouteKind::Path,
            };
            if declared.route == closed {
                return Err(AdmitError::NotFound.into());
            }
        }
    }
    let access = declared.as_ref().map_or(Access::Private, |declared| declared.access);
    match admit::may_visit(&route.owner, access, principal.as_ref()) {
        Ok(()) => {}
        Err(AdmitError::NotSignedIn) => return Err(anonymous(core, request, door)),
        Err(error) => return Err(error.into()),
    }
    if let Named::Host(target) = named
        && let Some(to) = target.canonical(core.hosts(), &route.slug, path_and_query(uri))
    {
        // A browser's socket follows no redirect, and cannot tell its page of one.
        if intent::is_websocket(headers) && headers.contains_key(header::ORIGIN) {
            let sentence = "There is nothing under this name. Load the page again.";
            return Err(Turned::Away(Refusal::new(Code::NotFound).detail(sentence)));
        }
        return Err(Turned::Elsewhere(rescue::redirect(&to)));
    }
    if let (Named::Path(target), Some(declared), Some(principal)) = (named, &declared, &principal)
        && !target.own
        && let Some(to) = admit::page_elsewhere(
            method,
            headers,
            principal.by,
            core.hosts(),
            &route,
            (&surface, declared),
            target.rest(path_and_query(uri)),
        )
    {
        return Err(Turned::Elsewhere(rescue::redirect(&to)));
    }
    Ok(Admitted { env, surface, route, declared, principal })
}

async fn principal(
    core: &Core,
    headers: &HeaderMap,
    door: Door<'_>,
    now: Duration,
) -> Result<Option<Principal>, Turned> {
    let credentials = admit::credentials(headers, core.names(), door)?;
    let token = match &credentials.token {
        Some(token) => Some(core.principal(token, now).await?),
        None => None,
    };
    let mut cookie = None;
    for candidate in &credentials.cookies {
        cookie = core.principal(candidate, now).await?;
        if cookie.is_some() {
            break;
        }
    }
    Ok(admit::decide(token, cookie)?)
}

async fn resolve(
    core: &Core,
    named: &Named,
    principal: Option<&Principal>,
) -> Result<(EnvId, SurfaceName), Turned> {
    match named {
        Named::Host(target) => Ok((target.env, target.surface.clone())),
        Named::Path(target) => match &target.place {
            PathPlace::Agent(env) => Ok((*env, SurfaceName::agent())),
            PathPlace::EnvHost(env) => Ok((*env, SurfaceName::host())),
            PathPlace::User(user) => {
                if principal.is_none_or(|principal| principal.user != *user) {
                    return Err(AdmitError::NotFound.into());
                }
                Ok(Box::pin(core.home(user)).await?.ok_or(AdmitError::NotFound)?)
            }
        },
    }
}

fn anonymous(core: &Core, request: &Request<Incoming>, door: Door<'_>) -> Turned {
    let way = admit::anonymous(
        request.method(),
        request.headers(),
        door,
        path_and_query(request.uri()),
        core.hosts(),
        core.names(),
        &nonce(),
    );
    match way {
        Anonymous::Unauthorized => AdmitError::NotSignedIn.into(),
        Anonymous::SignIn { location } => Turned::Elsewhere(rescue::sign_in(&location, None)),
        Anonymous::Ticket { location, cookie } => {
            Turned::Elsewhere(rescue::sign_in(&location, Some(cookie)))
        }
    }
}

/// 128 random bits.
fn nonce() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}
