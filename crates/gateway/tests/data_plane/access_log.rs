//! One line per request, and no secret in any (`cases.md`, C34).

use std::{
    io::{self, Write},
    sync::Arc,
};

use parking_lot::Mutex;
use wakeful_wire::gate::GateState;

use crate::{
    http::TOKEN,
    support::{
        Served,
        client::{Client, ask, handshake, request},
        control::{Control, env},
        raw::Raw,
        until,
    },
};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }

    /// The access lines about an environment.
    fn lines(&self, n: u128) -> Vec<serde_json::Value> {
        let mut lines = self.all();
        lines.retain(|fields| fields["env"] == env(n).to_string());
        lines
    }

    /// The access lines.
    fn all(&self) -> Vec<serde_json::Value> {
        self.text()
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter(|line| line["target"] == "access")
            .map(|line| line["fields"].clone())
            .collect()
    }
}

#[tokio::test]
async fn each_request_has_one_line_and_no_line_holds_a_secret() {
    const SECRET: &str = "SECRETaaa111";
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();

    let raw = Raw::start(|mut conn| async move {
        while let Some(request) = conn.request().await {
            if request.target().starts_with("/cut") {
                return conn.reset();
            }
            let answer = format!("HTTP/1.1 500 No\r\nContent-Length: 12\r\n\r\n{SECRET}");
            conn.send(answer.as_bytes()).await;
        }
    })
    .await;
    let control = Control::ready(501, &raw.upstream());
    control.add(502, "alice", GateState::Disabled, &raw.upstream());
    control.add(503, "alice", GateState::Ready, &raw.upstream());
    let served = Served::start(control);
    let host = served.app(env(501));
    let secret_headers = [
        TOKEN.to_owned(),
        format!("Authorization: Bearer {SECRET}"),
        format!("Cookie: wakeful_surface={SECRET}; app={SECRET}"),
        format!("Sec-WebSocket-Protocol: {SECRET}"),
    ];
    let headers: Vec<&str> = secret_headers.iter().map(String::as_str).collect();
    let line = format!("GET /{SECRET}?token={SECRET}&x=1");
    assert_eq!(ask(served.address, &line, &host, &headers).await.status, 500);
    let line = format!("GET /cut?token={SECRET}");
    assert_eq!(ask(served.address, &line, &host, &headers).await.status, 502);
    assert_eq!(ask(served.address, &line, &served.app(env(502)), &headers).await.status, 423);
    let mut client = Client::connect(served.address).await;
    client.send(handshake(&format!("/ws?token={SECRET}"), &host, &headers)).await;
    assert_eq!(client.answer_to("GET").await.unwrap().status, 500);
    // A ticket of the environment server.
    let target = format!("/api/host/{}/rpc", env(503));
    let ticket = format!("Sec-WebSocket-Protocol: wakeful.rpc.v1, wakeful.ticket.{SECRET}");
    let proof = format!("DPoP: {SECRET}");
    for headers in [&[TOKEN, &ticket, &proof][..], &[TOKEN, &ticket, "Origin: http://x"]] {
        let mut client = Client::connect(served.address).await;
        client.send(handshake(&target, &served.main(), headers)).await;
        client.answer_to("GET").await.unwrap();
    }
    // One that authenticates as nobody, and one that leaves.
    ask(served.address, &line, &host, &[&format!("X-Wakeful-Token: wk_{SECRET}")]).await;
    let mut leaves = Client::connect(served.address).await;
    leaves.send(request("PUT /up?a=1", &host, &[TOKEN, "Content-Length: 9"])).await;
    until("the upload arrives", || raw.text().contains("PUT /up")).await;
    drop(leaves);

    // The main host: its paths are told, but for the names of files.
    for path in ["surface-ticket", "api/projects/1/files/{SECRET}"] {
        let line = format!("GET /{path}?to={SECRET}").replace("{SECRET}", SECRET);
        assert_eq!(ask(served.address, &line, &served.main(), &[]).await.status, 200);
    }

    until("the main host's have theirs", || {
        log.all().iter().filter(|line| line["path"].is_string()).count() == 2
    })
    .await;
    until("every request has its line", || log.lines(501).len() == 4 && log.lines(502).len() == 1)
        .await;
    let lines = log.lines(501);
    let told: Vec<_> = lines
        .iter()
        .map(|line| {
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            (line["status"].as_u64().unwrap(), text("query"), text("origin"), text("method"))
        })
        .collect();
    let row = |status, query: &str, origin: &str, method: &str| {
        (status, query.to_owned(), origin.to_owned(), method.to_owned())
    };
    assert_eq!(
        told,
        [
            row(500, "token,x", "", "GET"),
            row(502, "token", "environment", "GET"),
            row(500, "token", "", "GET"),
            row(499, "a", "client", "PUT"),
        ]
    );
    assert_eq!(lines[0]["surface"], "app");
    assert_eq!(lines[0]["route"], "host");
    assert_eq!(lines[0]["verdict"], "ready");
    for phase in ["admit_us", "gate_us", "dial_us", "head_us", "total_us"] {
        assert!(lines[0][phase].is_u64(), "{phase} in {}", lines[0]);
    }
    assert!(lines.iter().all(|line| line["path"].is_null()), "a surface's path may be a secret");
    assert_eq!(log.lines(502)[0]["verdict"], "environment_disabled");
    until("the sockets have theirs", || log.lines(503).len() == 2).await;
    assert!(log.lines(503).iter().all(|line| line["route"] == "env_host"), "{}", log.text());
    let told = log.all();
    let paths: Vec<_> = told.iter().filter_map(|line| line["path"].as_str()).collect();
    assert_eq!(paths, ["/surface-ticket", "/api/projects/1/files/"]);
    assert!(!log.text().contains(SECRET), "{}", log.text());
    assert!(!log.text().contains("wk_alice"));
}
