//! One socket to a host, after its hello.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use futures::{SinkExt as _, StreamExt as _};
use reqwest::Url;
use serde_json::Value;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        self, Message,
        client::IntoClientRequest as _,
        http::{HeaderName, HeaderValue, StatusCode},
        protocol::WebSocketConfig,
    },
};
use wakeful_wire::{
    Code, Problem,
    host::{SOCKET_PATH, close},
    rpc::{Call, CallId, ClientFrame, Hello, SUBPROTOCOL, ServerFrame, TICKET_SUBPROTOCOL},
};

use wakeful_client::http::{Stream, connect};

use super::{Ended, HostError};

/// How long the upgrade and the hello may take.
const OPEN_TIME: Duration = Duration::from_secs(30);
/// How long a frame may take to be sent.
const SEND_TIME: Duration = Duration::from_secs(30);
/// How long the other side may take to answer a close.
const CLOSE_TIME: Duration = Duration::from_secs(1);
/// The longest frame that is taken, in bytes.
const FRAME_MAX: usize = 64 << 20;
/// How long a command may take to be answered. A host holds it for a minute at most.
const ANSWER_TIME: Duration = Duration::from_secs(90);
/// How many frames of other calls are kept meanwhile.
const KEPT_MAX: usize = 4_096;
/// How many heartbeats may be missed.
const MISSED: u32 = 3;

/// One socket to a host.
pub struct HostSocket {
    stream: WebSocketStream<Box<dyn Stream>>,
    hello: Hello,
    next: u32,
    /// When the host last sent something.
    heard: Instant,
    /// Frames that came while something else was waited for.
    kept: VecDeque<ServerFrame>,
}

impl std::fmt::Debug for HostSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostSocket").field("host", &self.hello.host.id).finish_non_exhaustive()
    }
}

/// Opens a socket below the address of a host.
pub(super) async fn open(
    base: &str,
    headers: &[(&'static str, String)],
    ticket: &str,
) -> Result<HostSocket, HostError> {
    tokio::time::timeout(OPEN_TIME, upgrade(base, headers, ticket))
        .await
        .unwrap_or_else(|_| Err(HostError::Unreachable("the host says nothing".to_owned())))
}

async fn upgrade(
    base: &str,
    headers: &[(&'static str, String)],
    ticket: &str,
) -> Result<HostSocket, HostError> {
    let address = format!("{base}{SOCKET_PATH}");
    let url = Url::parse(&address).map_err(|error| HostError::Garbled(error.to_string()))?;
    let stream = connect(&url)
        .await
        .map_err(|why| HostError::Unreachable(format!("the host cannot be reached: {why}")))?;
    let wrong = |what: &str| HostError::Garbled(format!("the {what} cannot stand in a request"));
    let mut request =
        address.replacen("http", "ws", 1).into_client_request().map_err(|_| wrong("address"))?;
    for (name, value) in headers {
        let value = HeaderValue::from_str(value).map_err(|_| wrong("token"))?;
        request.headers_mut().insert(HeaderName::from_static(name), value);
    }
    let protocols = format!("{SUBPROTOCOL}, {TICKET_SUBPROTOCOL}{ticket}");
    let protocols = HeaderValue::from_str(&protocols).map_err(|_| wrong("ticket"))?;
    request.headers_mut().insert("sec-websocket-protocol", protocols);
    let config = WebSocketConfig::default()
        .max_message_size(Some(FRAME_MAX))
        .max_frame_size(Some(FRAME_MAX));
    let (mut stream, _) =
        tokio_tungstenite::client_async_with_config(request, stream, Some(config))
            .await
            .map_err(not_upgraded)?;
    loop {
        match read(&mut stream).await {
            Ok(ServerFrame::Hello(hello)) => {
                return Ok(HostSocket {
                    stream,
                    hello: *hello,
                    next: 0,
                    heard: Instant::now(),
                    kept: VecDeque::new(),
                });
            }
            Ok(_) => {}
            Err(Ended { code: Some(4503), .. }) => return Err(HostError::Asleep { phase: None }),
            Err(ended @ Ended { code: Some(close::SESSION_REVOKED | 4401 | 4403 | 4404), .. }) => {
                let problem = Problem::new(Code::Unauthenticated).detail(ended.to_string());
                return Err(HostError::Refused(Box::new(problem)));
            }
            Err(ended) => return Err(HostError::Unreachable(ended.to_string())),
        }
    }
}

/// Why there was no upgrade.
fn not_upgraded(error: tungstenite::Error) -> HostError {
    let tungstenite::Error::Http(response) = error else {
        return HostError::Unreachable(format!("no socket: {error}"));
    };
    let body = response.body().as_deref().unwrap_or_default();
    match serde_json::from_slice::<Problem>(body) {
        Ok(problem) => problem.into(),
        Err(_) if response.status() == StatusCode::SERVICE_UNAVAILABLE => {
            HostError::Asleep { phase: None }
        }
        Err(_) => HostError::Unreachable(format!("no socket: {}", response.status())),
    }
}

/// The next frame.
async fn read(stream: &mut WebSocketStream<Box<dyn Stream>>) -> Result<ServerFrame, Ended> {
    loop {
        match stream.next().await {
            Some(Ok(Message::Text(text))) => {
                return serde_json::from_str(&text)
                    .map_err(|error| Ended::broke(format!("a frame cannot be read: {error}")));
            }
            Some(Ok(Message::Close(frame))) => {
                let code = frame.as_ref().map(|frame| frame.code.into());
                let reason = frame.map(|frame| frame.reason.to_string()).unwrap_or_default();
                return Err(Ended { code, reason });
            }
            // A ping is answered with the next read or write.
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(Ended::broke(error.to_string())),
            None => return Err(Ended::broke("")),
        }
    }
}

impl HostSocket {
    /// The first frame.
    #[must_use]
    pub const fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Sends a request. What comes of it comes by [`Self::next`] under the id.
    ///
    /// # Errors
    /// The socket has ended.
    pub async fn request(&mut self, call: &Call) -> Result<CallId, Ended> {
        self.next = self.next.wrapping_add(1);
        let id = CallId(self.next);
        let method = call.method().to_owned();
        self.send(&ClientFrame::Request { id, method, params: call.params() }).await?;
        Ok(id)
    }

    /// Ends a subscription, or no longer waits for a command.
    ///
    /// # Errors
    /// The socket has ended.
    pub async fn cancel(&mut self, id: CallId) -> Result<(), Ended> {
        self.send(&ClientFrame::Cancel { id }).await
    }

    async fn send(&mut self, frame: &ClientFrame) -> Result<(), Ended> {
        let text = serde_json::to_string(frame).map_err(|error| Ended::broke(error.to_string()))?;
        let sending = self.stream.send(Message::text(text));
        match tokio::time::timeout(SEND_TIME, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Ended::broke(error.to_string())),
            Err(_) => Err(Ended::broke("the host takes nothing")),
        }
    }

    /// The next frame. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The socket has ended, or the host is silent for longer than it may be.
    pub async fn next(&mut self) -> Result<ServerFrame, Ended> {
        if let Some(frame) = self.kept.pop_front() {
            return Ok(frame);
        }
        self.read().await
    }

    async fn read(&mut self) -> Result<ServerFrame, Ended> {
        let silence = Duration::from_millis(self.hello.heartbeat_ms.max(1_000)) * MISSED;
        // Counted from what was heard last, not from this call: a caller may drop it and ask anew.
        let frame = tokio::time::timeout_at(self.heard + silence, read(&mut self.stream))
            .await
            .unwrap_or_else(|_| Err(Ended::broke("the host says nothing")));
        self.heard = Instant::now();
        frame
    }

    /// Sends a command and waits for its answer. Frames of other calls are kept for
    /// [`Self::next`].
    ///
    /// # Errors
    /// The socket has ended; whether the command happened is then unknown, and it can be sent again
    /// with the same ids.
    pub async fn answer(&mut self, call: &Call) -> Result<Result<Value, Box<Problem>>, Ended> {
        let asked = self.request(call).await?;
        let until = Instant::now() + ANSWER_TIME;
        loop {
            let frame = tokio::time::timeout_at(until, self.read()).await;
            let frame = frame.unwrap_or_else(|_| Err(Ended::broke("the host does not answer")))?;
            if let ServerFrame::Response { id, result } = frame {
                if id == asked {
                    return Ok(Ok(result));
                }
                self.kept.push_back(ServerFrame::Response { id, result });
            } else if let ServerFrame::Error { id, problem } = frame {
                if id == asked {
                    return Ok(Err(Box::new(problem)));
                }
                self.kept.push_back(ServerFrame::Error { id, problem });
            } else {
                self.kept.push_back(frame);
            }
            if self.kept.len() > KEPT_MAX {
                return Err(Ended::broke("too much came before the answer"));
            }
        }
    }

    /// Closes it.
    pub async fn close(mut self) {
        let closing = async {
            let _gone = self.stream.close(None).await;
            while let Some(Ok(_)) = self.stream.next().await {}
        };
        let _in_time = tokio::time::timeout(CLOSE_TIME, closing).await;
    }
}
