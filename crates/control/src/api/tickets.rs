//! `GET /surface-ticket`: sends a signed-in browser back to a surface's own host with a ticket.

use axum::{
    Router,
    extract::State,
    response::{IntoResponse, Response},
    routing,
};
use http::{StatusCode, header};
use serde::Deserialize;
use wakeful_wire::{
    Code, EnvId,
    hosts::{GRANT_TICKET_PATH, Hosts, REDEEM_TICKET_PATH},
};

use super::{AppState, Asked, Refusal, caller::Caller, reference::encode};

pub(super) fn routes() -> Router<AppState> {
    Router::new().route(GRANT_TICKET_PATH, routing::get(grant))
}

/// The query.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// Where the visitor wanted to go: a URL of a surface's own host.
    to: String,
    /// What that host keeps in a cookie of this browser.
    nonce: String,
}

async fn grant(
    State(state): State<AppState>,
    caller: Caller,
    Asked(asked): Asked<Request>,
) -> Result<Response, Refusal> {
    let hosts = state.engine.hosts();
    let place = Place::read(hosts, &asked.to)
        .ok_or_else(|| Refusal::because(Code::BadRequest, "That is no address of a surface."))?;
    caller.environment(&state, &place.env.to_string()).await?;
    let session = caller.session.as_ref().ok_or_else(|| {
        Refusal::because(Code::BadRequest, "Only a browser that signed in gets a ticket.")
    })?;
    let ticket = state.accounts.issue_ticket(session, place.host, &asked.nonce).await?;
    let to = format!(
        "{}{REDEEM_TICKET_PATH}?ticket={}&to={}",
        hosts.origin(place.host),
        encode(&ticket),
        encode(place.path),
    );
    // The ticket stands in this address for the minute that it lives; the next answer leads on.
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response())
}

/// A place on a surface's own host.
#[derive(Debug, PartialEq, Eq)]
struct Place<'a> {
    host: &'a str,
    env: EnvId,
    path: &'a str,
}

impl<'a> Place<'a> {
    /// Reads a URL. `None` unless its scheme and port are the installation's own and its host is
    /// one below its domain that surfaces have.
    fn read(hosts: &Hosts, url: &'a str) -> Option<Self> {
        let rest = url.strip_prefix(hosts.scheme.as_str())?.strip_prefix("://")?;
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let host = match hosts.port {
            Some(port) => authority.strip_suffix(&format!(":{port}"))?,
            None => authority,
        };
        let (label, kind) =
            host.strip_suffix(hosts.domain.as_str())?.strip_suffix('.')?.split_once('.')?;
        if !matches!(kind, "apps" | "preview" | "code" | "db" | "on") {
            return None;
        }
        let (id, rest) = label.split_at_checked(36)?;
        let fits = rest.is_empty() || rest.starts_with('-');
        let plain = label.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        let path = match path {
            "" => "/",
            path if path.starts_with('/') => path,
            _ => return None,
        };
        let clean = path.bytes().all(|b| b > b' ' && b != 0x7f);
        (fits && plain && clean).then_some(Self { host, env: id.parse().ok()?, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENV: &str = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f";

    #[test]
    fn tickets_are_given_for_surfaces_hosts_alone() {
        let hosts = Hosts::default();
        let read = |url: &str| {
            Place::read(&hosts, url).map(|place| (place.host.to_owned(), place.path.to_owned()))
        };
        for label in [format!("{ENV}-dev.apps"), format!("{ENV}.db"), format!("{ENV}-agent.on")] {
            let host = format!("{label}.wakeful.localhost");
            let url = format!("http://{host}:7878/a?b=c#d");
            assert_eq!(read(&url), Some((host.clone(), "/a?b=c#d".to_owned())));
            assert_eq!(read(&format!("http://{host}:7878")), Some((host, "/".to_owned())));
        }
        let app = format!("{ENV}-dev.apps.wakeful.localhost");
        for bad in [
            format!("https://{app}:7878/"),
            format!("http://{app}/"),
            format!("http://{app}:78780/"),
            format!("http://{app}:7878.evil.example/"),
            format!("http://{app}:7878@evil.example/"),
            format!("http://evil.example\\@{app}:7878/"),
            format!("http://x@{app}:7878/"),
            format!("http://{}:7878/", app.to_uppercase()),
            format!("http://{app}:7878/\r\nx"),
            format!("http://{app}.evil.example:7878/"),
            format!("http://{ENV}.evil.wakeful.localhost:7878/"),
            format!("http://{ENV}x.apps.wakeful.localhost:7878/"),
            format!("http://a.{ENV}.apps.wakeful.localhost:7878/"),
            "http://wakeful.localhost:7878/".to_owned(),
            "http://short.apps.wakeful.localhost:7878/".to_owned(),
            String::new(),
        ] {
            assert_eq!(read(&bad), None, "{bad}");
        }
    }
}
