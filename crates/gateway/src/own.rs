//! The gateway's own routes on a surface's host: the status that a waking page polls, and the
//! exchange of a ticket for the host's cookie.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, Response, header};
use wakeful_wire::Code;

use crate::{
    admit,
    core::Core,
    ensure::{Asking, Gated},
    refusal::Refusal,
    rescue::{self, Asked, Status},
};

/// A field of a query, decoded. The first of its name counts.
pub(crate) fn field<'a>(query: &'a str, name: &str) -> Option<Cow<'a, str>> {
    let (_, value) =
        query.split('&').filter_map(|field| field.split_once('=')).find(|(key, _)| *key == name)?;
    decode(value)
}

/// Percent-decodes a query's value; `None` if it is not UTF-8 then.
fn decode(value: &str) -> Option<Cow<'_, str>> {
    if !value.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
        return Some(Cow::Borrowed(value));
    }
    let mut bytes = value.bytes();
    let mut decoded = Vec::with_capacity(value.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

/// Exchanges a ticket for the cookie of this host, and leads to where it was asked for. It is for
/// one use and bound to the browser that was sent for it, so an address that leaks is worth
/// nothing.
pub(crate) async fn redeem(
    core: &Core,
    headers: &HeaderMap,
    query: &str,
    host: &str,
) -> Result<Response<Bytes>, Refusal> {
    let ticket = field(query, "ticket").ok_or_else(spent)?;
    let to = field(query, "to").unwrap_or(Cow::Borrowed("/"));
    for nonce in core.names().nonces(headers) {
        let redeemed = core
            .shared()
            .control
            .redeem(&ticket, &nonce, host)
            .await
            .map_err(|_| Refusal::control_unavailable())?;
        let Some(session) = redeemed else { continue };
        let cookie =
            admit::surface_cookie(core.hosts(), core.names(), &session.cookie, session.max_age_s);
        let mut response = rescue::sign_in(admit::ticket_destination(&to), cookie);
        if let Some(gone) = admit::spent_nonce(core.hosts(), core.names()) {
            response.headers_mut().append(header::SET_COOKIE, gone);
        }
        response
            .headers_mut()
            .insert(header::REFERRER_POLICY, http::HeaderValue::from_static("no-referrer"));
        return Ok(response);
    }
    Err(spent())
}

fn spent() -> Refusal {
    Refusal::new(Code::Unauthenticated)
        .detail("This way in was used already, or is too old. Open the page again.")
}

/// How far a wake is. Asking neither wakes nor holds, and counts as no visit.
pub(crate) async fn status(
    core: &Core,
    asked: Asked<'_>,
    asking: Asking<'_>,
) -> Result<Response<Bytes>, Refusal> {
    match core.shared().ensure.look(core, &asking).await {
        Gated::Refused { entry, .. } | Gated::Over(Some(entry)) => {
            Ok(rescue::status(&Status::of(entry.answer()), asked))
        }
        Gated::Ready(entry, lease) => {
            drop(lease);
            Ok(rescue::status(&Status::of(entry.answer()), asked))
        }
        Gated::PutToSleep => Err(Refusal::new(Code::Asleep)),
        Gated::Over(None) | Gated::Unavailable => Err(Refusal::control_unavailable()),
        Gated::Overloaded => Err(Refusal::new(Code::Overloaded)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_a_query_is_decoded_once() {
        let query = "a=1&to=%2Fx%3Fy%3D%2520+z&bad=%zz&half=%2&latin=%ff&a=2";
        assert_eq!(field(query, "a").unwrap(), "1");
        assert_eq!(field(query, "to").unwrap(), "/x?y=%20 z");
        for bad in ["bad", "half", "latin", "absent"] {
            assert_eq!(field(query, bad), None, "{bad}");
        }
    }
}
