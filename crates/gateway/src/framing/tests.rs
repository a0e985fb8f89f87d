use super::*;

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(header::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
    }
    headers
}

type Lines = &'static [(&'static str, &'static str)];

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

fn handshake(more: &[(&str, &str)]) -> HeaderMap {
    let mut lines = vec![
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", KEY),
    ];
    lines.extend_from_slice(more);
    headers(&lines)
}

#[test]
fn a_message_has_one_framing() {
    use FramingError::{Coding, Length, TwoFramings};
    let table: [(Lines, Result<(), FramingError>); 16] = [
        (&[], Ok(())),
        (&[("content-length", "6")], Ok(())),
        (&[("content-length", "0")], Ok(())),
        (&[("transfer-encoding", "chunked")], Ok(())),
        (&[("transfer-encoding", "Chunked")], Ok(())),
        (&[("content-length", "6"), ("transfer-encoding", "chunked")], Err(TwoFramings)),
        (&[("transfer-encoding", "chunked"), ("content-length", "6")], Err(TwoFramings)),
        (&[("transfer-encoding", "xchunked")], Err(Coding)),
        (&[("transfer-encoding", "chunked, identity")], Err(Coding)),
        (&[("transfer-encoding", "gzip, chunked")], Err(Coding)),
        (&[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")], Err(Coding)),
        (&[("transfer-encoding", "")], Err(Coding)),
        (&[("content-length", "6"), ("content-length", "7")], Err(Length)),
        (&[("content-length", "6"), ("content-length", "6")], Err(Length)),
        (&[("content-length", "+6")], Err(Length)),
        (&[("content-length", "6, 6")], Err(Length)),
    ];
    for (lines, expected) in table {
        let headers = headers(lines);
        assert_eq!(check_request(&Method::POST, Version::HTTP_11, &headers), expected, "{lines:?}");
        let answer = check_response(StatusCode::OK, Version::HTTP_11, &headers, &HeaderMap::new());
        assert_eq!(answer, expected, "{lines:?}");
    }
    let chunked = headers(&[("transfer-encoding", "chunked")]);
    assert_eq!(check_request(&Method::POST, Version::HTTP_10, &chunked), Err(Coding));
}

#[test]
fn methods_that_turn_a_gateway_inside_out_are_not_carried() {
    for method in [Method::CONNECT, Method::TRACE] {
        let got = check_request(&method, Version::HTTP_11, &HeaderMap::new());
        assert_eq!(got, Err(FramingError::Method));
        assert_eq!(FramingError::Method.code().status(), 405);
    }
}

#[test]
fn an_upgrade_has_no_body_and_a_whole_handshake() {
    let check = |headers: &HeaderMap| check_request(&Method::GET, Version::HTTP_11, headers);
    assert_eq!(check(&handshake(&[])), Ok(()));
    assert_eq!(check(&handshake(&[("content-length", "0")])), Ok(()));
    assert_eq!(check(&handshake(&[("content-length", "5")])), Err(FramingError::UpgradeBody));
    let chunked = handshake(&[("transfer-encoding", "chunked")]);
    assert_eq!(check(&chunked), Err(FramingError::UpgradeBody));
    assert_eq!(check(&handshake(&[("sec-websocket-key", KEY)])), Err(FramingError::Handshake));
    for (name, value) in [("sec-websocket-key", "c2hvcnQ="), ("sec-websocket-version", "8")] {
        let mut headers = handshake(&[]);
        headers.insert(name, value.parse().unwrap());
        assert_eq!(check(&headers), Err(FramingError::Handshake), "{name}");
        headers.remove(name);
        assert_eq!(check(&headers), Err(FramingError::Handshake), "{name}");
    }
    let post = check_request(&Method::POST, Version::HTTP_11, &handshake(&[]));
    assert_eq!(post, Err(FramingError::Handshake));
}

#[test]
fn a_switch_must_be_asked_for_proven_and_with_an_offered_subprotocol() {
    let asked = handshake(&[
        ("sec-websocket-protocol", "v2.bin, v1.json"),
        ("sec-websocket-protocol", "token.abc123"),
    ]);
    let proof = accept_key(KEY.as_bytes());
    assert_eq!(proof, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    let answer = |more: &[(&str, &str)]| {
        let mut lines = vec![("connection", "upgrade"), ("upgrade", "websocket")];
        lines.extend_from_slice(more);
        let switching = StatusCode::SWITCHING_PROTOCOLS;
        check_response(switching, Version::HTTP_11, &headers(&lines), &asked)
    };
    let proven = ("sec-websocket-accept", proof.as_str());
    assert_eq!(answer(&[proven]), Ok(()));
    for chosen in ["v2.bin", "v1.json", "token.abc123"] {
        assert_eq!(answer(&[proven, ("sec-websocket-protocol", chosen)]), Ok(()), "{chosen}");
    }
    let never = Err(FramingError::Switch);
    assert_eq!(answer(&[proven, ("sec-websocket-protocol", "v3")]), never);
    assert_eq!(answer(&[proven, ("sec-websocket-protocol", "v2.bin, v1.json")]), never);
    assert_eq!(answer(&[]), never);
    assert_eq!(answer(&[("sec-websocket-accept", "AAAA")]), never);
    let plain = HeaderMap::new();
    let unasked = check_response(StatusCode::SWITCHING_PROTOCOLS, Version::HTTP_11, &asked, &plain);
    assert_eq!(unasked, never);
}

#[test]
fn an_interim_answer_is_not_a_final_one() {
    let early = StatusCode::from_u16(103).unwrap();
    let got = check_response(early, Version::HTTP_11, &HeaderMap::new(), &HeaderMap::new());
    assert_eq!(got, Err(FramingError::Interim));
}
