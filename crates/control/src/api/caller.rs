//! Who calls.

use std::net::{IpAddr, SocketAddr};

use axum::extract::FromRequestParts;
use http::{HeaderMap, Method, header, request::Parts};
use wakeful_wire::{
    Code, EnvId, ProjectId, UserName, api,
    gate::{Credential, SignedInBy},
};

use super::{AppState, Refusal, cookies, origin};
use crate::accounts::{Session, TOKEN_PREFIX};

/// A header for programs that need `Authorization` for something else.
const TOKEN_HEADER: &str = "x-wakeful-token";

/// Whoever is signed in. Extracting it refuses whoever is not, and a cookie's request that changes
/// something and comes from another origin.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The user.
    pub(crate) user: UserName,
    /// By what they showed who they are.
    pub(crate) by: SignedInBy,
    /// The session, where that was a cookie.
    pub(crate) session: Option<Session>,
    /// By what they were admitted: asked again while a stream is open.
    pub(crate) credential: Credential,
}

impl Caller {
    /// An environment of this user.
    ///
    /// # Errors
    /// [`Code::NotFound`] for what is no id, is unknown, or is somebody else's: alike.
    pub(crate) async fn environment(
        &self,
        state: &AppState,
        id: &str,
    ) -> Result<api::Environment, Refusal> {
        let id: EnvId = id.parse().map_err(|_| Refusal::new(Code::NotFound))?;
        let found = state.engine.environment(id).await?;
        found
            .filter(|found| found.owner == self.user)
            .map(|found| found.value)
            .ok_or_else(|| Refusal::new(Code::NotFound))
    }

    /// A project of this user.
    ///
    /// # Errors
    /// [`Code::NotFound`] for what is no id, is unknown, or is somebody else's: alike.
    pub(crate) async fn project(
        &self,
        state: &AppState,
        id: &str,
    ) -> Result<api::Project, Refusal> {
        let id: ProjectId = id.parse().map_err(|_| Refusal::new(Code::NotFound))?;
        let found = state.engine.project(id).await?;
        found
            .filter(|found| found.owner == self.user)
            .map(|found| found.value)
            .ok_or_else(|| Refusal::new(Code::NotFound))
    }
}

impl FromRequestParts<AppState> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refusal> {
        let found = identify(&parts.headers, state).await?;
        let caller = found.ok_or_else(|| Refusal::new(Code::Unauthenticated))?;
        let changes = !matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
        if changes && caller.by == SignedInBy::Cookie {
            origin::check(&parts.headers, state.engine.hosts(), true)?;
        }
        Ok(caller)
    }
}

/// Whoever is signed in, or nobody.
#[derive(Debug, Clone)]
pub(crate) struct MaybeCaller(pub(crate) Option<Caller>);

impl FromRequestParts<AppState> for MaybeCaller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refusal> {
        match Caller::from_request_parts(parts, state).await {
            Ok(caller) => Ok(Self(Some(caller))),
            Err(refusal) if refusal.code() == Code::Unauthenticated => Ok(Self(None)),
            Err(refusal) => Err(refusal),
        }
    }
}

async fn identify(headers: &HeaderMap, state: &AppState) -> Result<Option<Caller>, Refusal> {
    if let Some(token) = token(headers) {
        let credential = Credential::Token(token.to_owned());
        // A token that is wrong is wrong, whatever cookie came with it.
        let principal = state.accounts.authenticate(&credential).await?;
        return Ok(principal.map(|principal| Caller {
            user: principal.user,
            by: principal.by,
            session: None,
            credential,
        }));
    }
    let name = state.engine.hosts().session_cookie();
    for value in cookies::candidates(headers, &name) {
        if let Some(session) = state.accounts.session(value).await? {
            return Ok(Some(Caller {
                user: session.user.clone(),
                by: SignedInBy::Cookie,
                session: Some(session),
                credential: Credential::Session(value.to_owned()),
            }));
        }
    }
    Ok(None)
}

/// The platform's own token. Another program's bearer token is none of ours and says nothing.
fn token(headers: &HeaderMap) -> Option<&str> {
    if let Some(own) = headers.get(TOKEN_HEADER) {
        return Some(own.to_str().unwrap_or_default());
    }
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && token.starts_with(TOKEN_PREFIX)).then_some(token)
}

/// A request to sign up or in, from the main host's own pages or from a program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SameOrigin;

impl FromRequestParts<AppState> for SameOrigin {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refusal> {
        let hosts = state.engine.hosts();
        let with_cookie = cookies::has(&parts.headers, &hosts.session_cookie());
        origin::check(&parts.headers, hosts, with_cookie).map(|()| Self)
    }
}

/// Where the request came from, and what the client calls itself.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// The peer's address, where it is known.
    pub(crate) address: Option<IpAddr>,
    /// `User-Agent`, or nothing.
    pub(crate) agent: String,
}

impl FromRequestParts<AppState> for Client {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _state: &AppState) -> Result<Self, Refusal> {
        let address = parts.extensions.get::<SocketAddr>().map(SocketAddr::ip);
        let agent = parts.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        Ok(Self { address, agent: agent.unwrap_or_default().to_owned() })
    }
}
