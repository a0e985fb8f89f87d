//! Sessions and pairing codes: what needs [`Scope::Sessions`].

use axum::{body::Body, response::Response};
use serde_json::{Map, Value};
use wakeful_wire::{
    Code, HostSessionId, Problem,
    host::{Denial, PairingAnswer, PairingRequest, Scope, capability},
    rpc::SessionList,
};

use super::{
    admit::{self, Asked, BODY_MAX, invalid},
    answer::{self, Refusal},
};
use crate::credential::PairingOffer;

/// Answers `GET /sessions`.
///
/// # Errors
/// Whatever is wrong with the request.
pub(super) fn list(asked: &Asked) -> Result<Response, Refusal> {
    asked.session(Scope::Sessions)?;
    let sessions = asked.host.parts().authority.sessions().list();
    Ok(answer::json(&SessionList { sessions }))
}

/// Answers `DELETE /sessions/{id}`: the session's sockets close and its credentials are dead.
///
/// # Errors
/// Whatever is wrong with the request; 404 when there is no such session to revoke.
pub(super) async fn revoke(asked: &Asked, id: HostSessionId) -> Result<Response, Refusal> {
    asked.session(Scope::Sessions)?;
    if asked.host.parts().authority.sessions().revoke(id).await? {
        Ok(answer::done())
    } else {
        Err(Problem::new(Code::NotFound).detail("There is no such session.").into())
    }
}

/// Answers `POST /sessions/revoke-others`: every session ends but the caller's own.
///
/// # Errors
/// Whatever is wrong with the request.
pub(super) async fn revoke_others(asked: &Asked) -> Result<Response, Refusal> {
    let session = asked.session(Scope::Sessions)?;
    asked.host.parts().authority.sessions().revoke_others(session.id, None).await?;
    Ok(answer::done())
}

/// Answers `POST /pairing`: a code for another client, which enters as the caller's subject with
/// the caller's scopes or fewer. An empty body asks for all of them.
///
/// # Errors
/// Whatever is wrong with the request; 400 on a host that cannot be paired with.
pub(super) async fn pair(asked: &Asked, body: Body) -> Result<Response, Refusal> {
    let session = asked.session(Scope::Sessions)?;
    let parts = asked.host.parts();
    if !parts.descriptor.capabilities.has(capability::PAIRING) {
        return Err(Problem::new(Code::Unsupported)
            .detail("This host belongs to a platform, which lets clients in: it makes no codes.")
            .into());
    }
    let body = admit::body(body, BODY_MAX).await?;
    let request = if body.is_empty() {
        PairingRequest::default()
    } else {
        // An object and nothing else: a list would be read as one without fields.
        serde_json::from_slice::<Map<String, Value>>(&body)
            .and_then(|fields| serde_json::from_value(Value::Object(fields)))
            .map_err(|_| invalid("The body is no JSON object with `label` and `scopes`."))?
    };
    let scopes = request.scopes.unwrap_or_else(|| session.scopes.clone());
    if scopes.is_empty() {
        return Err(invalid("The `scopes` name nothing that this host knows."));
    }
    if !scopes.is_within(&session.scopes) {
        return Err(Denial::ScopeMissing.into());
    }
    let label = request.label.unwrap_or_default();
    let offer = PairingOffer { subject: session.subject, scopes, label };
    let offered = parts.authority.offer_pairing(offer);
    Ok(answer::json(&PairingAnswer {
        code: offered.code.to_string(),
        expires_at: offered.expires_at,
    }))
}
