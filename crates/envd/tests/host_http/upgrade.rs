//! How a socket is opened and refused.

use futures::StreamExt as _;
use tokio::io::DuplexStream;
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Error, Message, client::IntoClientRequest as _, http::HeaderName},
};
use wakeful_envd::host::Farewell;
use wakeful_wire::rpc::{KNOWN_HEADER, SUBPROTOCOL, ServerFrame, TICKET_SUBPROTOCOL};

use crate::{
    client::PATIENCE,
    fixture::{Member, World},
};

type Socket = WebSocketStream<DuplexStream>;

/// Offers these subprotocols; a page says where it is from.
async fn offer(world: &World, offered: &str, origin: Option<&str>) -> Result<Socket, Error> {
    let origin = origin.map(|origin| ("origin".to_owned(), origin.to_owned()));
    offer_with(world, offered, origin.into_iter().collect()).await
}

/// Offers these subprotocols and sends these headers as well.
async fn offer_with(
    world: &World,
    offered: &str,
    more: Vec<(String, String)>,
) -> Result<Socket, Error> {
    let mut request =
        format!("{}/rpc", world.base.replace("http:", "ws:")).into_client_request()?;
    // The gateway strips its own prefix.
    *request.uri_mut() = "ws://wakeful.localhost/rpc".parse().unwrap();
    let headers = request.headers_mut();
    headers.insert("sec-websocket-protocol", offered.parse().unwrap());
    for (name, value) in more {
        headers.insert(HeaderName::try_from(name).unwrap(), value.parse().unwrap());
    }
    let opening = client_async(request, world.line().into_stream());
    let (socket, answer) = tokio::time::timeout(PATIENCE, opening).await.expect("in time")?;
    assert_eq!(answer.headers()["sec-websocket-protocol"], SUBPROTOCOL);
    Ok(socket)
}

pub(crate) async fn open(world: &World, ticket: &str) -> Result<Socket, Error> {
    offer(world, &format!("{SUBPROTOCOL}, {TICKET_SUBPROTOCOL}{ticket}"), None).await
}

pub(crate) async fn open_in_page(world: &World, ticket: &str) -> Socket {
    let offered = format!("{SUBPROTOCOL}, {TICKET_SUBPROTOCOL}{ticket}");
    offer(world, &offered, Some("https://app.example")).await.unwrap()
}

/// The status of a refused upgrade, and why.
pub(crate) fn refusal(refused: Result<Socket, Error>) -> (u16, String) {
    let Err(Error::Http(answer)) = refused else { panic!("it was not refused: {refused:?}") };
    let body: serde_json::Value =
        serde_json::from_slice(answer.body().as_deref().unwrap_or_default()).unwrap_or_default();
    let reason = body["reason"].as_str().or_else(|| body["code"].as_str());
    (answer.status().as_u16(), reason.unwrap_or_default().to_owned())
}

/// What a socket is closed with, whatever it is sent before.
pub(crate) async fn closed(mut socket: Socket) -> (u16, String) {
    let end = async {
        while let Some(message) = socket.next().await {
            if let Ok(Message::Close(Some(frame))) = message {
                return (u16::from(frame.code), frame.reason.as_str().to_owned());
            }
        }
        panic!("it ended without a close frame")
    };
    tokio::time::timeout(PATIENCE, end).await.expect("in time")
}

async fn revoke(world: &World, member: &Member) {
    assert!(world.authority.sessions().revoke(member.session).await.unwrap());
}

#[tokio::test]
async fn a_ticket_opens_one_socket() {
    let world = World::new().await;
    let member = world.member("read").await;
    let ticket = world.ticket(&member).await;
    let socket = open(&world, &ticket).await.unwrap();
    assert_eq!(world.authority.sessions().list()[0].connections, 1);
    assert_eq!(refusal(open(&world, &ticket).await), (401, "ticket_used".to_owned()));
    drop(socket);
}

#[tokio::test]
async fn a_program_opens_a_socket_with_its_token_and_a_proof_and_no_ticket() {
    let world = World::new().await;
    let member = world.member("read").await;
    let shown = world.signed(&member, "GET", "/rpc").headers;
    let socket = offer_with(&world, SUBPROTOCOL, shown.clone()).await.unwrap();
    assert_eq!(world.authority.sessions().list()[0].connections, 1);
    let again = offer_with(&world, SUBPROTOCOL, shown.clone()).await;
    assert_eq!(refusal(again), (401, "proof_replayed".to_owned()));
    let elsewhere = world.signed(&member, "GET", "/shell").headers;
    let elsewhere = offer_with(&world, SUBPROTOCOL, elsewhere).await;
    assert_eq!(refusal(elsewhere), (401, "proof_url".to_owned()));
    let tokenless = shown.into_iter().filter(|(name, _)| name != "authorization").collect();
    let tokenless = offer_with(&world, SUBPROTOCOL, tokenless).await;
    assert_eq!(refusal(tokenless), (401, "ticket_malformed".to_owned()));
    let blind = world.member("write").await;
    let blind = world.signed(&blind, "GET", "/rpc").headers;
    let blind = offer_with(&world, SUBPROTOCOL, blind).await;
    assert_eq!(refusal(blind), (403, "scope_missing".to_owned()));
    drop(socket);
}

#[tokio::test]
async fn whoever_knows_the_host_as_it_is_is_greeted_with_less() {
    let world = World::new().await;
    let member = world.member("read").await;
    let greeted = async |known: Option<&str>| {
        let mut shown = world.signed(&member, "GET", "/rpc").headers;
        shown.extend(known.map(|known| (KNOWN_HEADER.to_owned(), known.to_owned())));
        let mut socket = offer_with(&world, SUBPROTOCOL, shown).await.unwrap();
        let frame = tokio::time::timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
        serde_json::from_str::<ServerFrame>(frame.to_text().unwrap()).unwrap()
    };
    let ServerFrame::Hello(hello) = greeted(None).await else { panic!("a hello") };
    let tag = hello.tag.unwrap();
    let ServerFrame::HelloAgain(again) = greeted(Some(&tag)).await else { panic!("a short one") };
    assert_eq!((again.host, &again.tag), (hello.host.id, &tag));
    assert_eq!(again.session.id, member.session);
    let ServerFrame::Hello(whole) = greeted(Some("another")).await else { panic!("a hello") };
    assert_eq!(whole.tag.as_ref(), Some(&tag));
}

#[tokio::test]
async fn a_wrong_or_missing_ticket_opens_nothing() {
    let world = World::new().await;
    let unknown = format!("wkt1.{}", "A".repeat(43));
    assert_eq!(refusal(open(&world, &unknown).await), (401, "ticket_unknown".to_owned()));
    assert_eq!(refusal(open(&world, "x").await), (401, "ticket_malformed".to_owned()));
    let bare = offer(&world, SUBPROTOCOL, None).await;
    assert_eq!(refusal(bare), (401, "ticket_malformed".to_owned()));
    let plain = world.send(&world.asking("GET", "/rpc")).await;
    assert_eq!((plain.status, plain.value()["code"].as_str()), (400, Some("bad_request")));
}

#[tokio::test]
async fn another_protocol_is_unsupported_and_uses_no_ticket_up() {
    let world = World::new().await;
    let ticket = world.ticket(&world.member("read").await).await;
    let offered = format!("wakeful.rpc.v9, {TICKET_SUBPROTOCOL}{ticket}");
    assert_eq!(refusal(offer(&world, &offered, None).await), (400, "unsupported".to_owned()));
    assert!(open(&world, &ticket).await.is_ok());
}

#[tokio::test]
async fn a_ticket_needs_the_scope_to_read() {
    let world = World::new().await;
    let member = world.member("sessions").await;
    let refused = world.send(&world.signed(&member, "POST", "/ticket")).await;
    assert_eq!(refused.refusal(), (403, "scope_missing".to_owned()));
    let unknown = world.send(&world.asking("POST", "/ticket")).await;
    assert_eq!(unknown.refusal(), (401, "token_missing".to_owned()));
}

#[tokio::test]
async fn the_ticket_of_a_session_that_is_over_opens_nothing() {
    let world = World::new().await;
    let member = world.member("read").await;
    let ticket = world.ticket(&member).await;
    let in_page = world.ticket(&member).await;
    revoke(&world, &member).await;
    assert_eq!(refusal(open(&world, &ticket).await), (401, "session_revoked".to_owned()));
    let (code, reason) = closed(open_in_page(&world, &in_page).await).await;
    assert_eq!((code, reason.as_str()), (4411, "session_revoked"));
}

#[tokio::test]
async fn a_page_is_told_by_a_close_code() {
    let world = World::new().await;
    let member = world.member("read").await;
    let socket = open_in_page(&world, &format!("wkt1.{}", "A".repeat(43))).await;
    assert_eq!(closed(socket).await, (4401, "ticket_unknown".to_owned()));
    // A session that ends while its ticket is still good.
    world.clock.advance(std::time::Duration::from_secs(3_590));
    let ticket = world.ticket(&member).await;
    world.clock.advance(std::time::Duration::from_secs(20));
    let socket = open_in_page(&world, &ticket).await;
    assert_eq!(closed(socket).await, (4412, "session_expired".to_owned()));
}

#[tokio::test]
async fn a_host_that_ends_closes_its_sockets() {
    let world = World::new().await;
    let member = world.member("read").await;
    let socket = open(&world, &world.ticket(&member).await).await.unwrap();
    let ending = closed(socket);
    let (end, ()) = tokio::join!(ending, world.host.close(Farewell::SUSPENDING));
    assert_eq!(end, (4503, "suspending".to_owned()));
}
