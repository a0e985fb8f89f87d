//! Who may go where: hosts, cookies, tokens, tickets (`cases.md`, C28, C29).

use wakeful_wire::gate::{GateEvent, GateState};

use crate::{
    http::TOKEN,
    support::{
        Served,
        client::{Answer, ask, basic},
        control::{
            ALICE, ALICE_SESSION, ALICE_SURFACE, BOB, BOB_SURFACE, Control, TICKET, env, user,
        },
        raw::Raw,
        until,
    },
};

fn served(raw: &Raw) -> Served {
    let control = Control::ready(1, &raw.upstream());
    control.add(2, "bob", GateState::Ready, &raw.upstream());
    Served::start(control)
}

fn surface_cookie(value: &str) -> String {
    format!("Cookie: wakeful_surface={value}")
}

#[tokio::test]
async fn hosts_that_are_not_served_are_misdirected() {
    let raw = Raw::ok().await;
    let served = served(&raw);
    for host in ["evil.example", "wakeful.localhost.evil.example", "x.apps.wakeful.localhost2"] {
        let answer = ask(served.address, "GET /", host, &[TOKEN]).await;
        assert_eq!((answer.status, answer.code().as_str()), (421, "misdirected"), "{host}");
    }
}

#[tokio::test]
async fn a_wrong_slug_leads_to_the_canonical_host_and_wakes_nothing() {
    let raw = Raw::ok().await;
    let control = Control::new();
    control.add(1, "alice", GateState::Asleep, &raw.upstream());
    let served = Served::start(control);
    let host = format!("{}-wrong.apps.wakeful.localhost:{}", env(1), served.address.port());
    let answer = ask(served.address, "POST /a?b=1", &host, &[TOKEN]).await;
    assert_eq!(answer.status, 308);
    let expected = format!("http://{}/a?b=1", served.app(env(1)));
    assert_eq!(answer.header("location"), Some(expected.as_str()));
    assert!(served.control.ensures().is_empty());
    let stranger = ask(served.address, "POST /", &host, &[]).await;
    assert_eq!(stranger.status, 401, "and tells a stranger nothing");
}

#[tokio::test]
async fn what_may_not_be_seen_is_not_there() {
    let raw = Raw::ok().await;
    let served = served(&raw);
    let nothing = served.app(env(99));
    for host in [served.app(env(2)), nothing] {
        for headers in [vec![TOKEN.to_owned()], vec![surface_cookie(ALICE_SURFACE)]] {
            let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
            let answer = ask(served.address, "GET /", &host, &headers).await;
            assert_eq!((answer.status, answer.code().as_str()), (404, "not_found"), "{host}");
        }
        assert_eq!(ask(served.address, "GET /", &host, &[]).await.status, 401);
    }
    let bob = format!("X-Wakeful-Token: {BOB}");
    assert_eq!(ask(served.address, "GET /", &served.app(env(2)), &[&bob]).await.status, 200);
    let answer = ask(served.address, "GET /u/bob/", &served.main(), &[TOKEN]).await;
    assert_eq!(answer.status, 404, "another user's home");
    assert_eq!(served.control.ensures_of(99), 0);
}

#[tokio::test]
async fn a_page_load_without_a_cookie_is_sent_for_a_ticket() {
    let raw = Raw::ok().await;
    let served = served(&raw);
    let host = served.app(env(1));
    let page = ["Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"];
    let answer = ask(served.address, "GET /a?b=1", &host, &page).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    let location = answer.header("location").unwrap();
    let main = format!("{}/surface-ticket?to=", served.hosts.main_origin());
    assert!(location.starts_with(&main), "{location}");
    let nonce = location.split_once("nonce=").unwrap().1.to_owned();
    assert!(nonce.len() >= 22, "{nonce}");
    let cookie = answer.header("set-cookie").unwrap().to_owned();
    assert!(cookie.starts_with(&format!("wakeful_nonce={nonce};")), "{cookie}");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"));

    // Another browser, which did not ask, gets nothing for the ticket.
    let line = format!("GET /.wakeful/ticket?ticket={TICKET}&to=%2Fa%3Fb%3D1");
    let answer = ask(served.address, &line, &host, &page).await;
    assert_eq!(answer.status, 401);
    let nonce = format!("Cookie: wakeful_nonce={nonce}");
    let redeem = async || -> Answer { ask(served.address, &line, &host, &[&nonce, page[0]]).await };
    let answer = redeem().await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    assert_eq!(answer.header("location"), Some("/a?b=1"));
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let cookies = answer.all("set-cookie");
    let session = cookies.iter().find(|cookie| cookie.starts_with("wakeful_surface=")).unwrap();
    assert!(session.contains("HttpOnly") && session.contains("SameSite=Lax"), "{session}");
    assert!(cookies.iter().any(|cookie| cookie.starts_with("wakeful_nonce=;")));
    assert_eq!(redeem().await.status, 401, "a ticket is for one use");

    let pair = session.split(';').next().unwrap();
    let answer = ask(served.address, "GET /a?b=1", &host, &[&format!("Cookie: {pair}")]).await;
    assert_eq!(answer.text(), "ok");
}

#[tokio::test]
async fn a_ticket_leads_nowhere_but_home() {
    let raw = Raw::ok().await;
    let served = served(&raw);
    let line = format!("GET /.wakeful/ticket?ticket={TICKET}&to=%2F%2Fevil.example%2F");
    let answer =
        ask(served.address, &line, &served.app(env(1)), &["Cookie: wakeful_nonce=x"]).await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")));
}

/// C28: the valid one of several cookies of one name wins, whichever comes first.
#[tokio::test]
async fn the_valid_one_of_several_cookies_wins() {
    let raw = Raw::ok().await;
    let served = served(&raw);
    for cookies in [
        format!("Cookie: wakeful_surface=expired; a=\"q=1\"; wakeful_surface={ALICE_SURFACE}; b=2"),
        format!("Cookie: wakeful_surface={ALICE_SURFACE}; a=\"q=1\"; wakeful_surface=expired; b=2"),
    ] {
        let answer = ask(served.address, "GET /", &served.app(env(1)), &[&cookies]).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let session = format!("Cookie: wakeful_session=old; wakeful_session={ALICE_SESSION}");
    let line = format!("GET /api/proxy/{}/", env(1));
    let own = "Sec-Fetch-Site: same-origin";
    assert_eq!(ask(served.address, &line, &served.main(), &[&session, own]).await.status, 200);
    let seen = raw.text();
    assert_eq!(seen.matches("cookie: a=\"q=1\"; b=2\r\n").count(), 2, "{seen}");
    assert!(!seen.contains("wakeful_"), "{seen}");
}

/// C29: the app's own `Authorization` is the app's.
#[tokio::test]
async fn the_apps_own_authorization_is_its_own() {
    let raw = Raw::ok().await;
    let served = served(&raw);
    let host = served.app(env(1));
    let cookie = surface_cookie(ALICE_SURFACE);
    let theirs =
        ["Authorization: Bearer app-123".to_owned(), format!("Authorization: {}", basic("u:p"))];
    for header in &theirs {
        let answer = ask(served.address, "GET /", &host, &[&cookie, header]).await;
        assert_eq!(answer.status, 200);
        let value = header.split_once(": ").unwrap().1;
        assert!(raw.text().contains(&format!("authorization: {value}\r\n")), "{}", raw.text());
    }
    let ours = format!("Authorization: Bearer {ALICE}");
    assert_eq!(ask(served.address, "GET /", &host, &[&ours]).await.status, 200);
    assert!(!raw.text().contains("wk_alice"));
    let bobs = surface_cookie(BOB_SURFACE);
    for (headers, status) in [
        (vec![ours.as_str(), bobs.as_str()], 400),
        (vec!["Cookie: wakeful_surface=expired", theirs[0].as_str()], 401),
        (vec![cookie.as_str(), theirs[0].as_str(), theirs[1].as_str()], 400),
        (vec!["Authorization: Bearer wk_nobody"], 401),
    ] {
        let answer = ask(served.address, "GET /", &host, &headers).await;
        assert_eq!(answer.status, status, "{headers:?}");
        assert_eq!(answer.header("location"), None);
    }
    // Elsewhere it never passes.
    let before = raw.text().len();
    let agent = served.on(env(1), "agent");
    assert_eq!(ask(served.address, "GET /", &agent, &[&cookie, &theirs[0]]).await.status, 200);
    assert!(!raw.text()[before..].contains("app-123"));
    // A preflight wakes nobody and is sent nowhere.
    let preflight = ["Origin: https://x.example", "Access-Control-Request-Headers: authorization"];
    let answer = ask(served.address, "OPTIONS /", &host, &preflight).await;
    assert_eq!((answer.status, answer.header("location")), (401, None));
}

#[tokio::test]
async fn a_page_of_another_origin_cannot_act_by_cookie() {
    let raw = Raw::ok().await;
    let served = served(&raw);
    let host = served.app(env(1));
    let cookie = surface_cookie(ALICE_SURFACE);
    let evil = ["Origin: https://evil.example", cookie.as_str()];
    let answer = ask(served.address, "POST /", &host, &evil).await;
    assert_eq!((answer.status, answer.code().as_str()), (403, "cross_origin"));
    let own = format!("Origin: http://{host}");
    let answer = ask(served.address, "POST /", &host, &[&own, &cookie, "Content-Length: 0"]).await;
    assert_eq!(answer.status, 200);
    assert_eq!(raw.requests(), 1);
}

#[tokio::test]
async fn a_sign_out_ends_what_was_remembered() {
    let raw = Raw::ok().await;
    let served = served(&raw);
    let host = served.app(env(1));
    assert_eq!(ask(served.address, "GET /", &host, &[TOKEN]).await.status, 200);
    assert_eq!(ask(served.address, "GET /", &host, &[TOKEN]).await.status, 200);
    assert_eq!(served.control.authenticated(), 1);
    served.control.tell(GateEvent::SignedOut { user: user("alice") });
    let start = tokio::time::Instant::now();
    while served.control.authenticated() == 1 {
        assert!(start.elapsed() < std::time::Duration::from_secs(3));
        ask(served.address, "GET /", &host, &[TOKEN]).await;
    }
}

#[tokio::test]
async fn a_changed_route_is_asked_for_again() {
    let raw = Raw::ok().await;
    let served = served(&raw);
    let host = served.app(env(1));
    assert_eq!(ask(served.address, "GET /", &host, &[TOKEN]).await.status, 200);
    served.control.declare(1, "app", serde_json::json!({ "route": "path" }));
    let start = tokio::time::Instant::now();
    while ask(served.address, "GET /", &host, &[TOKEN]).await.status != 404 {
        assert!(start.elapsed() < std::time::Duration::from_secs(3));
    }
}

#[tokio::test]
async fn the_environment_servers_own_route_reaches_it() {
    let raw = Raw::ok().await;
    let served = served(&raw);
    let line = format!("GET /api/host/{}/descriptor", env(1));
    let headers = [TOKEN, "Authorization: DPoP own", "DPoP: proof"];
    assert_eq!(ask(served.address, &line, &served.main(), &headers).await.status, 200);
    let seen = raw.text();
    assert!(seen.contains("GET /descriptor HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("DPoP own") && seen.contains("proof") && !seen.contains("wk_alice"));
    until("the lease is given back", || served.metric("wakeful_leases") == 0).await;
}
