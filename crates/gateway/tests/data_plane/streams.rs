//! Answers that take their time: events, cut answers, leases (`cases.md`, C07).

use std::time::Duration;

use wakeful_wire::gate::{FailureKind, LeaseKind};

use crate::{
    http::TOKEN,
    support::{
        Served,
        client::{Client, ask, request},
        control::{Control, env, sandbox},
        raw::Raw,
        soon, until,
    },
};

fn served(raw: &Raw) -> Served {
    Served::start(Control::ready(1, &raw.upstream()))
}

/// C07: the head comes before the first event, and each event by itself.
#[tokio::test]
async fn events_arrive_one_by_one() {
    let kinds = [
        "Content-Type: text/event-stream; charset=utf-8\r\n",
        "Content-Type: Text/Event-Stream\r\n",
        "Content-Type: application/x-ndjson\r\n",
        "Content-Encoding: gzip\r\nContent-Type: text/event-stream\r\nCache-Control: no-transform\r\n",
        "",
    ];
    for kind in kinds {
        let (next, wait) = tokio::sync::mpsc::channel::<&'static str>(1);
        let wait = std::sync::Arc::new(tokio::sync::Mutex::new(wait));
        let raw = Raw::start(move |mut conn| {
            let wait = std::sync::Arc::clone(&wait);
            async move {
                conn.request().await;
                let head = format!("HTTP/1.1 200 OK\r\n{kind}Transfer-Encoding: chunked\r\n\r\n");
                conn.send(head.as_bytes()).await;
                let mut wait = wait.lock().await;
                while let Some(event) = wait.recv().await {
                    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
                    conn.send(chunk.as_bytes()).await;
                }
                conn.send(b"0\r\n\r\n").await;
                let _ = conn.more().await;
            }
        })
        .await;
        let served = served(&raw);
        let mut client = Client::connect(served.address).await;
        let accept = "Accept-Encoding: gzip, br, zstd";
        client.send(request("GET /events", &served.app(env(1)), &[TOKEN, accept])).await;
        let head = soon(client.head()).await.expect("the head comes without any event");
        for line in kind.split("\r\n").filter(|line| !line.is_empty()) {
            assert!(head.to_ascii_lowercase().contains(&line.to_ascii_lowercase()), "{head}");
        }
        assert!(kind.contains("gzip") || !head.to_ascii_lowercase().contains("content-encoding"));
        // The next event is sent only when the one before has arrived whole.
        for event in ["data: 1\n\n", "x", "data: 2\n\n", "y"] {
            next.send(event).await.unwrap();
            assert_eq!(soon(client.chunk()).await.unwrap(), event.as_bytes());
        }
        drop(next);
        assert_eq!(soon(client.chunk()).await.unwrap(), b"");
    }
}

#[tokio::test]
async fn a_stream_holds_its_environment_to_the_last_byte() {
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let ended = std::sync::Arc::new(parking_lot::Mutex::new(Some(ended)));
    let raw = Raw::start(move |mut conn| {
        let ended = ended.lock().take().unwrap();
        async move {
            conn.request().await;
            conn.send(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                  Transfer-Encoding: chunked\r\n\r\n",
            )
            .await;
            ended.await.unwrap();
            conn.send(b"1\r\nx\r\n0\r\n\r\n").await;
            let _ = conn.more().await;
        }
    })
    .await;
    let served = served(&raw);
    let mut client = Client::connect(served.address).await;
    client.send(request("GET /events", &served.app(env(1)), &[TOKEN])).await;
    client.head().await.unwrap();
    until("the lease is counted", || served.metric("wakeful_leases") == 1).await;
    // At once, and not with the next tick a minute later.
    until("the first stream is reported", || {
        served
            .control
            .activity()
            .iter()
            .any(|report| report.kind == LeaseKind::Stream && report.count == 1 && report.touch)
    })
    .await;
    end.send(()).unwrap();
    assert_eq!(client.chunk().await.unwrap(), b"x");
    assert_eq!(client.chunk().await.unwrap(), b"");
    until("the lease is given back", || served.metric("wakeful_leases") == 0).await;
}

#[tokio::test]
async fn a_request_in_flight_holds_and_gives_back_when_its_client_leaves() {
    let raw = Raw::start(|mut conn| async move {
        conn.request().await;
        while conn.more().await {}
    })
    .await;
    let served = served(&raw);
    let mut client = Client::connect(served.address).await;
    client.send(request("GET /slow", &served.app(env(1)), &[TOKEN])).await;
    until("the request arrives", || raw.requests() == 1).await;
    assert_eq!(served.metric("wakeful_leases"), 1);
    drop(client);
    until("the lease is given back", || served.metric("wakeful_leases") == 0).await;
    until("the surface sees it end", || raw.open() == 0).await;
    until("it is counted as left", || served.metric(r#"wakeful_requests_total{class="499"}"#) == 1)
        .await;
    assert!(served.control.failures().is_empty());
}

#[tokio::test]
async fn a_cut_answer_is_visibly_cut_and_reported_once() {
    let rows: [(&str, &'static str); 4] = [
        ("reset", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
        ("end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
        ("reset", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello"),
        ("end", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello"),
    ];
    for (how, bytes) in rows {
        let raw = Raw::start(move |mut conn| async move {
            conn.request().await;
            conn.send(bytes.as_bytes()).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            if how == "reset" {
                conn.reset();
            }
        })
        .await;
        let served = served(&raw);
        let answer = ask(served.address, "GET /", &served.app(env(1)), &[TOKEN]).await;
        assert_eq!((answer.status, answer.whole), (200, false), "{how} {bytes}");
        assert_eq!(answer.text(), "hello");
        until("it is reported", || !served.control.failures().is_empty()).await;
        let failures = served.control.failures();
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert_eq!(failures[0].kind, FailureKind::MidStream);
        assert_eq!((failures[0].env, failures[0].sandbox), (env(1), sandbox(1)));
        assert_eq!(served.control.ensures().len(), 1, "the gate is not run again");
        assert_eq!(raw.requests(), 1);
        assert_eq!(served.metric(r#"wakeful_upstream_failures_total{kind="mid_stream"}"#), 1);
        until("the lease is given back", || served.metric("wakeful_leases") == 0).await;
    }
}

#[tokio::test]
async fn a_cut_answer_is_visible_also_where_only_the_connections_end_ends_it() {
    let raw = Raw::start(|mut conn| async move {
        conn.request().await;
        conn.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    })
    .await;
    let served = served(&raw);
    let mut client = Client::connect(served.address).await;
    client.send(format!("GET / HTTP/1.0\r\nHost: {}\r\n{TOKEN}\r\n\r\n", served.app(env(1)))).await;
    client.head().await.unwrap();
    let end = loop {
        let mut chunk = [0; 1024];
        match soon(tokio::io::AsyncReadExt::read(&mut client.stream, &mut chunk)).await {
            Ok(0) => break "end",
            Ok(_) => {}
            Err(_) => break "reset",
        }
    };
    assert_eq!(end, "reset");
}

#[tokio::test]
async fn a_slow_client_slows_the_surface_and_nothing_is_buffered_without_bound() {
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let raw = Raw::start({
        let sent = std::sync::Arc::clone(&sent);
        move |mut conn| {
            let sent = std::sync::Arc::clone(&sent);
            async move {
                conn.request().await;
                conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n").await;
                let chunk = vec![b'x'; 64 << 10];
                while tokio::io::AsyncWriteExt::write_all(&mut conn.stream, &chunk).await.is_ok() {
                    sent.fetch_add(chunk.len(), std::sync::atomic::Ordering::SeqCst);
                }
            }
        }
    })
    .await;
    let served = served(&raw);
    let mut client = Client::connect(served.address).await;
    client.send(request("GET /", &served.app(env(1)), &[TOKEN])).await;
    client.head().await.unwrap();
    // Waits until nothing moves any more: kernel buffers are full, and so is the gateway's.
    let taken = || sent.load(std::sync::atomic::Ordering::SeqCst);
    let mut before = usize::MAX;
    while before != taken() {
        before = taken();
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert!(before < 64 << 20, "{before}");
    drop(client);
    until("the surface sees it end", || raw.open() == 0).await;
}
