use super::*;

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
    }
    headers
}

fn text<'a>(response: &'a Response<Bytes>, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}

fn refused(refusal: &Refusal, method: &Method, lines: &[(&str, &str)]) -> Response<Bytes> {
    let hosts = Hosts::default();
    refuse(refusal, Asked::new(method, &headers(lines), &hosts))
}

const PAGE: [(&str, &str); 1] = [("sec-fetch-mode", "navigate")];
const HANDSHAKE: [(&str, &str); 4] = [
    ("connection", "upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("sec-websocket-version", "13"),
];

#[test]
fn programs_get_a_problem_and_browsers_a_page() {
    let refusal = Refusal::new(Code::Asleep)
        .phase(Phase::Suspended)
        .retry_after(Duration::from_millis(1_200));
    let json = refused(&refusal, &Method::GET, &[("accept", "*/*")]);
    assert_eq!(json.status(), 503);
    assert_eq!(text(&json, "content-type"), Some("application/problem+json"));
    assert_eq!(text(&json, "wakeful-phase"), Some("suspended"));
    assert_eq!(text(&json, "retry-after"), Some("2"));
    assert_eq!(text(&json, "cache-control"), Some("no-store"));
    let problem: Problem = serde_json::from_slice(json.body()).unwrap();
    assert_eq!(
        (problem.code, problem.phase, problem.retry),
        (Code::Asleep, Some(Phase::Suspended), true)
    );

    let page = refused(&refusal, &Method::GET, &PAGE);
    assert_eq!(page.status(), 503);
    assert_eq!(text(&page, "content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(text(&page, "wakeful-phase"), Some("suspended"));
    assert!(text(&page, "content-security-policy").unwrap().starts_with("default-src 'none'"));
    assert!(page.body().starts_with(b"<!DOCTYPE html>"));
}

#[test]
fn a_head_request_gets_the_length_and_no_body() {
    let refusal = Refusal::new(Code::NotFound);
    let get = refused(&refusal, &Method::GET, &[]);
    let head = refused(&refusal, &Method::HEAD, &[]);
    assert!(head.body().is_empty());
    assert_eq!(text(&head, "content-length"), Some(&*get.body().len().to_string()));
}

#[test]
fn an_answer_says_what_its_status_must_say() {
    let unauthenticated = refused(&Refusal::new(Code::Unauthenticated), &Method::GET, &[]);
    assert_eq!(text(&unauthenticated, "www-authenticate"), Some("Bearer realm=\"wakeful\""));
    let method = refused(&Refusal::new(Code::MethodNotAllowed), &Method::TRACE, &[]);
    assert!(text(&method, "allow").is_some());
    let retry = refused(&Refusal::new(Code::Overloaded), &Method::GET, &[]);
    assert_eq!(text(&retry, "retry-after"), Some("1"));
    let final_ = refused(&Refusal::new(Code::NotFound), &Method::GET, &[]);
    assert_eq!((text(&final_, "retry-after"), text(&final_, "wakeful-phase")), (None, None));
}

fn socket(refusal: &Refusal, more: &[(&str, &str)]) -> SocketAnswer {
    let hosts = Hosts::default();
    let lines = [HANDSHAKE.as_slice(), more].concat();
    refuse_socket(refusal, Asked::new(&Method::GET, &headers(&lines), &hosts))
}

const ORIGIN: (&str, &str) = ("origin", "http://x.apps.wakeful.localhost:7878");

#[test]
fn a_browsers_socket_is_accepted_and_closed_with_the_reason() {
    let asleep = Refusal::new(Code::Asleep).phase(Phase::Suspended);
    let offer = ("sec-websocket-protocol", " v2.bin, v1.json");
    let extension = ("sec-websocket-extensions", "permessage-deflate");
    let SocketAnswer::AcceptAndClose { head, frame } = socket(&asleep, &[ORIGIN, offer, extension])
    else {
        panic!()
    };
    assert_eq!(head.status(), 101);
    assert_eq!(head.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_eq!(head.headers()["sec-websocket-protocol"], "v2.bin");
    assert!(!head.headers().contains_key("sec-websocket-extensions"));
    assert!(intent::is_websocket(head.headers()));
    assert_eq!(&frame[..4], [0x88, 11, 0x11, 0x97]);
    assert_eq!(u16::from_be_bytes([frame[2], frame[3]]), 4503);
    assert_eq!(&frame[4..], b"suspended");

    let SocketAnswer::AcceptAndClose { head, frame } =
        socket(&Refusal::new(Code::Unauthenticated), &[ORIGIN])
    else {
        panic!()
    };
    assert!(!head.headers().contains_key("sec-websocket-protocol"));
    assert_eq!(u16::from_be_bytes([frame[2], frame[3]]), 4401);
    assert_eq!(&frame[4..], b"unauthenticated");
}

#[test]
fn a_ticket_is_never_said_back() {
    let refusal = Refusal::new(Code::Asleep);
    for (offer, echoed) in [
        ("wakeful.rpc.v1, wakeful.ticket.s3cret", Some("wakeful.rpc.v1")),
        ("wakeful.ticket.s3cret, wakeful.rpc.v1", Some("wakeful.rpc.v1")),
        ("Wakeful.Ticket.s3cret,,wakeful.ticket., x", Some("x")),
        ("wakeful.ticket.s3cret", None),
        ("wakeful.ticket", Some("wakeful.ticket")),
    ] {
        let answer = socket(&refusal, &[ORIGIN, ("sec-websocket-protocol", offer)]);
        let SocketAnswer::AcceptAndClose { head, .. } = answer else { panic!("{offer}") };
        let said = head.headers().get("sec-websocket-protocol").map(|v| v.to_str().unwrap());
        assert_eq!(said, echoed, "{offer}");
    }
}

#[test]
fn where_nothing_is_a_page_a_navigation_gets_json() {
    let (hosts, lines) = (Hosts::default(), headers(&[("sec-fetch-mode", "navigate")]));
    let asked = Asked::new(&Method::GET, &lines, &hosts);
    let media = |asked| {
        let response = refuse(&Refusal::new(Code::Asleep), asked);
        response.headers()["content-type"].to_str().unwrap().to_owned()
    };
    assert!(media(asked).starts_with("text/html"));
    assert_eq!(media(asked.pages(false)), Problem::MEDIA_TYPE);
}

#[test]
fn a_programs_socket_gets_the_plain_status() {
    let table = [
        (Refusal::new(Code::Unauthenticated), 401),
        (Refusal::new(Code::Forbidden), 403),
        (Refusal::new(Code::NotFound), 404),
        (Refusal::new(Code::EnvironmentDisabled), 423),
        (Refusal::new(Code::Asleep), 503),
        (Refusal::new(Code::UpstreamFailed), 502),
    ];
    for (refusal, status) in table {
        let SocketAnswer::Plain(response) = socket(&refusal, &[]) else { panic!("{status}") };
        assert_eq!(response.status(), status);
    }
    // A handshake that is itself at fault cannot be accepted.
    let faulty = socket(&Refusal::new(Code::BadRequest), &[ORIGIN]);
    assert!(matches!(faulty, SocketAnswer::Plain(response) if response.status() == 400));
}

#[test]
fn a_close_frame_fits_in_a_control_frame() {
    assert_eq!(&*close_frame(1000, ""), [0x88, 2, 0x03, 0xe8]);
    assert_eq!(close_frame(1000, &"x".repeat(123)).len(), 127);
    assert_eq!(close_frame(1000, &"x".repeat(124)).len(), 4);
}

#[test]
fn redirects_carry_their_target_and_nothing_else() {
    let to = Redirect { status: StatusCode::PERMANENT_REDIRECT, location: "/u/bob/?x".to_owned() };
    let response = redirect(&to);
    assert_eq!((response.status().as_u16(), text(&response, "location")), (308, Some("/u/bob/?x")));
    assert_eq!(text(&response, "cache-control"), Some("no-store"));
    assert!(response.body().is_empty());
    let cookie = HeaderValue::from_static("wakeful_nonce=n");
    let response = sign_in("http://x/login", Some(cookie));
    assert_eq!(response.status(), 303);
    assert_eq!(text(&response, "set-cookie"), Some("wakeful_nonce=n"));
}

#[test]
fn a_page_that_waits_is_told_whether_waiting_makes_sense() {
    let mut answer = EnsureAnswer {
        state: GateState::Starting,
        phase: Phase::Starting,
        generation: wakeful_wire::Generation(1),
        sandbox: None,
        upstream: None,
        retry_after_ms: None,
        reason: Some("pulling".to_owned()),
    };
    let table = [
        (GateState::Ready, true, false),
        (GateState::Starting, false, true),
        (GateState::SurfaceStarting, false, true),
        (GateState::Asleep, false, false),
        (GateState::Failed, false, false),
        (GateState::SurfaceFailed, false, false),
        (GateState::Gone, false, false),
    ];
    for (state, ready, waiting) in table {
        answer.state = state;
        let status = Status::of(&answer);
        assert_eq!((status.ready, status.waiting), (ready, waiting), "{state:?}");
    }
    answer.state = GateState::Starting;
    let hosts = Hosts::default();
    let empty = HeaderMap::new();
    let response = status(&Status::of(&answer), Asked::new(&Method::GET, &empty, &hosts));
    assert_eq!(response.status(), 200);
    assert_eq!(
        response.body().as_ref(),
        br#"{"phase":"starting","ready":false,"waiting":true,"reason":"pulling"}"#
    );
}

#[test]
fn the_waking_page_is_a_503_that_names_the_phase() {
    let hosts = Hosts::default();
    let lines = headers(&PAGE);
    let page = pages::Waking {
        title: "Demo",
        phase: Phase::Starting,
        reason: None,
        status_url: "/.wakeful/status",
        dashboard_url: "http://wakeful.localhost:7878/",
    };
    let response = waking(&page, Asked::new(&Method::GET, &lines, &hosts));
    assert_eq!(response.status(), 503);
    assert_eq!(text(&response, "wakeful-phase"), Some("starting"));
    assert_eq!(text(&response, "retry-after"), Some("1"));
    assert!(text(&response, "content-security-policy").unwrap().contains(&hosts.main_origin()));
}
