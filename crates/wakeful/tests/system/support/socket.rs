//! WebSockets, frame by frame (RFC 6455, section 5.2).

use std::io;

use super::{Answer, Ask, Exchange};

/// An open WebSocket.
#[derive(Debug)]
pub(crate) struct Socket(Exchange);

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    Text(String),
    /// The close code and reason.
    Close(u16, String),
    Other(u8),
}

const MASK: [u8; 4] = [7, 11, 13, 17];

impl Socket {
    /// Sends the handshake that `ask` makes up with its own headers.
    ///
    /// # Errors
    /// The answer, where it is not a switch of protocols.
    pub(crate) fn open(ask: Ask) -> Result<Self, Answer> {
        let ask = ask
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
        let mut exchange = ask.open().unwrap();
        let mut answer = exchange.head().unwrap();
        if answer.status == 101 {
            let accept = answer.header("sec-websocket-accept");
            assert_eq!(accept, Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
            return Ok(Self(exchange));
        }
        exchange.rest(&mut answer);
        Err(answer)
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.frame(1, text.as_bytes()).unwrap();
    }

    fn frame(&mut self, opcode: u8, data: &[u8]) -> io::Result<()> {
        let length = u8::try_from(data.len()).unwrap();
        assert!(length < 126, "longer frames are not needed here");
        let mut bytes = vec![0x80 | opcode, 0x80 | length];
        bytes.extend_from_slice(&MASK);
        bytes.extend(data.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        self.0.write(&bytes)
    }

    pub(crate) fn receive(&mut self) -> io::Result<Frame> {
        let head = self.0.read(2)?;
        let length = usize::from(head[1] & 0x7f);
        assert!(length < 126, "longer frames are not needed here");
        let data = self.0.read(length)?;
        let text = |data: &[u8]| String::from_utf8_lossy(data).into_owned();
        Ok(match (head[0] & 0x0f, data.as_slice()) {
            (1, data) => Frame::Text(text(data)),
            (8, [high, low, reason @ ..]) => {
                Frame::Close(u16::from_be_bytes([*high, *low]), text(reason))
            }
            (opcode, _) => Frame::Other(opcode),
        })
    }

    /// Sends a text and takes it back from a program that echoes.
    pub(crate) fn echo(&mut self, text: &str) {
        self.send(text);
        assert_eq!(self.receive().unwrap(), Frame::Text(text.to_owned()));
    }
}
