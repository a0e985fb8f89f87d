//! One WebSocket to a host: opened once, read and written until it ends. It retries nothing.

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _, stream::SplitSink, stream::SplitStream};
use reqwest::Url;
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        self, Message,
        client::IntoClientRequest as _,
        http::{HeaderName, HeaderValue, header},
        protocol::WebSocketConfig,
    },
};
use wakeful_link::http::{HttpAnswer, Reply};

use crate::http::{Stream, connect, head_of};

/// The longest frame that is taken, in bytes.
pub const FRAME_MAX: usize = 64 << 20;
/// How many frames wait to be sent. A host that takes none of them for that long is gone.
const OUTBOX_MAX: usize = 1_024;
/// How many frames wait to be taken in. More are left to the connection itself, so a client that is
/// slow slows its host down and holds no more memory.
const INBOX_MAX: usize = 256;
/// How long a frame may take to be sent.
const SEND_TIME: Duration = Duration::from_secs(30);
/// How long the other side may take to answer a close.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// What a socket is opened with.
#[derive(Debug)]
pub struct Opening {
    /// Where, with `http` or `https`.
    pub address: Url,
    /// The subprotocols that are offered, by commas.
    pub protocols: HeaderValue,
    /// More headers. Secrets among them are marked as sensitive.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// There is no socket: what the upgrade was answered with, or why it was not answered.
#[derive(Debug)]
pub struct NotOpened(pub Reply);

fn unreachable(why: impl Into<String>) -> NotOpened {
    NotOpened(Reply::Unreachable(why.into()))
}

/// What comes by a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A text frame.
    Text(String),
    /// A sign of life without content.
    Life,
    /// It is over. Nothing comes afterwards.
    Closed {
        /// The close code; nothing if it broke off.
        code: Option<u16>,
        /// Why, as the other side or the system says it.
        reason: String,
    },
}

/// An open socket. Dropped, it is closed.
#[derive(Debug)]
pub struct Socket {
    outbox: mpsc::Sender<String>,
    inbox: mpsc::Receiver<Heard>,
    reading: JoinHandle<()>,
}

/// Where frames are put that are to be sent.
#[derive(Debug, Clone)]
pub struct Outbox(mpsc::Sender<String>);

impl Outbox {
    /// Sends a frame. False if the socket takes no more: it has ended, or the other side takes
    /// nothing.
    #[must_use]
    pub fn send(&self, text: String) -> bool {
        self.0.try_send(text).is_ok()
    }
}

impl Socket {
    /// Opens a socket. Dropping the future opens none.
    ///
    /// # Errors
    /// [`NotOpened`].
    pub async fn open(opening: Opening) -> Result<Self, NotOpened> {
        let stream = connect(&opening.address).await.map_err(unreachable)?;
        let wrong = |_| unreachable("The address is none.");
        let address = opening.address.as_str().replacen("http", "ws", 1);
        let mut request = address.into_client_request().map_err(wrong)?;
        request.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, opening.protocols);
        request.headers_mut().extend(opening.headers);
        let config = WebSocketConfig::default()
            .max_message_size(Some(FRAME_MAX))
            .max_frame_size(Some(FRAME_MAX));
        let opened = tokio_tungstenite::client_async_with_config(request, stream, Some(config));
        let (stream, _) = opened.await.map_err(not_upgraded)?;
        let (sink, stream) = stream.split();
        let (outbox, to_send) = mpsc::channel(OUTBOX_MAX);
        let (heard, inbox) = mpsc::channel(INBOX_MAX);
        tokio::spawn(write(sink, to_send));
        let reading = tokio::spawn(read(stream, heard));
        Ok(Self { outbox, inbox, reading })
    }

    /// Where frames are put that are to be sent. The socket closes when this handle and every clone
    /// of it are gone, and the socket itself.
    #[must_use]
    pub fn outbox(&self) -> Outbox {
        Outbox(self.outbox.clone())
    }

    /// What comes next; nothing after it has closed. Dropping the future loses nothing.
    pub async fn heard(&mut self) -> Option<Heard> {
        self.inbox.recv().await
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The writing half says goodbye once every outbox is gone.
        self.reading.abort();
    }
}

type Connection = WebSocketStream<Box<dyn Stream>>;

async fn write(mut sink: SplitSink<Connection, Message>, mut to_send: mpsc::Receiver<String>) {
    while let Some(text) = to_send.recv().await {
        let sending = async {
            sink.feed(Message::text(text)).await?;
            while let Ok(text) = to_send.try_recv() {
                sink.feed(Message::text(text)).await?;
            }
            sink.flush().await
        };
        match tokio::time::timeout(SEND_TIME, sending).await {
            Ok(Ok(())) => {}
            // The reading half hears of a broken connection by itself, and of a host that takes
            // nothing by its silence: from here on frames are refused.
            Ok(Err(_)) | Err(_) => return,
        }
    }
    let _in_time = tokio::time::timeout(CLOSE_TIME, sink.close()).await;
}

async fn read(mut stream: SplitStream<Connection>, heard: mpsc::Sender<Heard>) {
    loop {
        let (next, over) = match stream.next().await {
            Some(Ok(Message::Text(text))) => (Heard::Text(text.as_str().to_owned()), false),
            Some(Ok(Message::Close(frame))) => {
                let code = frame.as_ref().map(|frame| frame.code.into());
                let reason = frame.map(|frame| frame.reason.as_str().to_owned());
                (Heard::Closed { code, reason: reason.unwrap_or_default() }, true)
            }
            Some(Ok(_)) => (Heard::Life, false),
            Some(Err(error)) => (Heard::Closed { code: None, reason: error.to_string() }, true),
            None => (Heard::Closed { code: None, reason: String::new() }, true),
        };
        if heard.send(next).await.is_err() || over {
            return;
        }
    }
}

/// Why there was no upgrade.
fn not_upgraded(error: tungstenite::Error) -> NotOpened {
    let tungstenite::Error::Http(response) = error else {
        return unreachable(format!("There is no socket: {error}."));
    };
    let head = head_of(response.status().as_u16(), response.headers());
    let body = response.body().clone().unwrap_or_default();
    NotOpened(Reply::Answered(HttpAnswer { body, ..head }))
}
