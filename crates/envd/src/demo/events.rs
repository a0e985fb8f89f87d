//! The event stream: one event at once, then a heartbeat for as long as somebody listens.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use tokio::sync::mpsc;

use super::body::Payload;

/// The time between two heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(10);

pub(super) fn answer() -> Response<Payload> {
    let (sender, pieces) = mpsc::channel(1);
    tokio::spawn(async move {
        let begun = tokio::time::Instant::now();
        let mut event = "retry: 5000\nevent: connected\ndata: {}\n\n".to_owned();
        while sender.send(Ok(Bytes::from(event))).await.is_ok() {
            tokio::time::sleep(HEARTBEAT).await;
            event = format!(
                "event: heartbeat\ndata: {{\"seconds\":{}}}\n\n",
                begun.elapsed().as_secs()
            );
        }
    });
    let mut response = Response::new(Payload::Pieces { pieces, length: None });
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    response
}
