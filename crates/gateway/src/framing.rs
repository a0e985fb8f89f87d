//! Framing: what must hold of a parsed message beyond what hyper checks (`cases.md`, C01).
//!
//! hyper reads the bytes; these checks refuse what it lets pass and a program behind the gateway
//! could read differently. After a refusal the connection is closed.

use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use wakeful_wire::Code;

use crate::intent;

/// Why a request is not forwarded, or an answer not handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// Both a length and a transfer coding.
    #[error("both Content-Length and Transfer-Encoding")]
    TwoFramings,
    /// A transfer coding other than `chunked` alone, or one in HTTP/1.0.
    #[error("a transfer coding other than chunked alone")]
    Coding,
    /// A length that is not one decimal number.
    #[error("Content-Length is not one decimal number")]
    Length,
    /// An upgrade that carries a body: its bytes could be taken for frames (`cases.md`, C11).
    #[error("an upgrade with a body")]
    UpgradeBody,
    /// A handshake without a usable key, of another version, or by another method.
    #[error("a malformed WebSocket handshake")]
    Handshake,
    /// A method that the gateway does not carry: `CONNECT` and `TRACE`.
    #[error("a method that is not carried")]
    Method,
    /// A switch of protocols that nobody asked for, or to something else than was asked for.
    #[error("an unasked switch of protocols")]
    Switch,
    /// An interim answer where a final one must stand.
    #[error("an interim answer in place of a final one")]
    Interim,
}

impl FramingError {
    /// The code for a faulty request. A faulty answer is [`Code::UpstreamFailed`].
    #[must_use]
    pub const fn code(self) -> Code {
        match self {
            Self::Method => Code::MethodNotAllowed,
            Self::TwoFramings
            | Self::Coding
            | Self::Length
            | Self::UpgradeBody
            | Self::Handshake
            | Self::Switch
            | Self::Interim => Code::BadRequest,
        }
    }

    /// What is wrong, in a sentence for people.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::TwoFramings => "A message has either Content-Length or Transfer-Encoding.",
            Self::Coding => "Transfer-Encoding must be chunked, once and alone.",
            Self::Length => "Content-Length must be one decimal number.",
            Self::UpgradeBody => "An upgrade must not have a body.",
            Self::Handshake => "The WebSocket handshake is malformed.",
            Self::Method => "CONNECT and TRACE are not carried.",
            Self::Switch => "The switch of protocols was not asked for.",
            Self::Interim => "An interim answer cannot stand in place of a final one.",
        }
    }
}

/// What is to be checked of a message's body framing.
fn check_body(version: Version, headers: &HeaderMap) -> Result<(), FramingError> {
    let codings = headers.get_all(header::TRANSFER_ENCODING);
    let mut codings = codings.iter();
    let coding = codings.next();
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let length = lengths.next();
    if let Some(coding) = coding {
        if length.is_some() {
            return Err(FramingError::TwoFramings);
        }
        let chunked = coding.as_bytes().eq_ignore_ascii_case(b"chunked");
        if !chunked || codings.next().is_some() || version < Version::HTTP_11 {
            return Err(FramingError::Coding);
        }
    }
    if let Some(length) = length {
        let digits = |value: &HeaderValue| {
            !value.is_empty() && value.as_bytes().iter().all(u8::is_ascii_digit)
        };
        if !digits(length) || lengths.next().is_some() {
            return Err(FramingError::Length);
        }
    }
    Ok(())
}

/// Whether the headers announce a body that is not empty.
fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH).map(HeaderValue::as_bytes);
    headers.contains_key(header::TRANSFER_ENCODING)
        || length.is_some_and(|length| length.iter().any(|digit| *digit != b'0'))
}

/// Checks a request before anything is done for it.
///
/// # Errors
/// The first fault found. The connection is to be closed after the answer.
pub fn check_request(
    method: &Method,
    version: Version,
    headers: &HeaderMap,
) -> Result<(), FramingError> {
    check_body(version, headers)?;
    if *method == Method::CONNECT || *method == Method::TRACE {
        return Err(FramingError::Method);
    }
    if intent::is_websocket(headers) {
        if has_body(headers) {
            return Err(FramingError::UpgradeBody);
        }
        check_handshake(method, version, headers)?;
    }
    Ok(())
}

fn check_handshake(
    method: &Method,
    version: Version,
    headers: &HeaderMap,
) -> Result<(), FramingError> {
    let one = |name: &header::HeaderName| {
        let mut lines = headers.get_all(name).iter();
        lines.next().filter(|_| lines.next().is_none()).map(HeaderValue::as_bytes)
    };
    let key = one(&header::SEC_WEBSOCKET_KEY).is_some_and(is_key);
    let speaks = one(&header::SEC_WEBSOCKET_VERSION) == Some(b"13".as_slice());
    if *method == Method::GET && version >= Version::HTTP_11 && key && speaks {
        Ok(())
    } else {
        Err(FramingError::Handshake)
    }
}

/// Sixteen bytes in base64 (RFC 6455 §4.2.1).
fn is_key(key: &[u8]) -> bool {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16)
}

/// Checks the head of an answer. `asked` are the request's headers as they were sent upstream.
///
/// # Errors
/// The first fault found: the visitor gets 502, the upstream connection is not used again.
pub fn check_response(
    status: StatusCode,
    version: Version,
    headers: &HeaderMap,
    asked: &HeaderMap,
) -> Result<(), FramingError> {
    check_body(version, headers)?;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return check_switch(headers, asked);
    }
    if status.is_informational() {
        return Err(FramingError::Interim);
    }
    Ok(())
}

/// Checks that an upstream's 101 answers the handshake that was sent: it switches to WebSocket,
/// proves that it read the key, and chose a subprotocol that was offered, or none
/// (RFC 6455 §4.1).
fn check_switch(headers: &HeaderMap, asked: &HeaderMap) -> Result<(), FramingError> {
    let key = asked.get(header::SEC_WEBSOCKET_KEY).ok_or(FramingError::Switch)?;
    let proof = headers.get(header::SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes);
    let expected = accept_key(key.as_bytes());
    if !intent::is_websocket(asked)
        || !intent::is_websocket(headers)
        || proof != Some(expected.as_bytes())
    {
        return Err(FramingError::Switch);
    }
    let mut chosen = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    match (chosen.next(), chosen.next()) {
        (None, _) => Ok(()),
        (Some(chosen), None) if offered(asked).any(|offer| offer == chosen.as_bytes()) => Ok(()),
        (Some(_), _) => Err(FramingError::Switch),
    }
}

/// The subprotocols that a handshake offers, in order, over all its lines.
pub fn offered(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    headers
        .get_all(header::SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|offer| !offer.is_empty())
}

/// What `Sec-WebSocket-Accept` holds for a key (RFC 6455 §4.2.2).
#[must_use]
pub fn accept_key(key: &[u8]) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use sha1::{Digest as _, Sha1};
    let mut hash = Sha1::new();
    hash.update(key.trim_ascii());
    hash.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    STANDARD.encode(hash.finalize())
}

#[cfg(test)]
mod tests;
