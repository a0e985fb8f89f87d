//! Lines of JSON on a control socket.

use std::io;

use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use wakeful_wire::sandbox::LINE_MAX;

/// Reads one line, without its end. `None` when it exceeds [`LINE_MAX`] bytes or its sender leaves
/// before its end.
pub(crate) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        let piece = &buffer[..count];
        // What follows the line is nothing: a connection carries one ask.
        if let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
            line.extend_from_slice(&piece[..end]);
            return (line.len() <= LINE_MAX).then_some(line);
        }
        line.extend_from_slice(piece);
        if line.len() > LINE_MAX {
            return None;
        }
    }
}

/// One value as a line.
pub(crate) fn encode(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// Writes one value as a line.
pub(crate) async fn write(
    stream: &mut (impl AsyncWrite + Unpin),
    value: &impl Serialize,
) -> io::Result<()> {
    stream.write_all(&encode(value)?).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_ends_at_its_newline_and_within_its_bound() {
        let longest = vec![b'a'; LINE_MAX];
        let with_end = |bytes: &[u8]| [bytes, b"\n"].concat();
        let table = [
            (b"ask\nrest".to_vec(), Some(b"ask".to_vec())),
            (b"cut short".to_vec(), None),
            (Vec::new(), None),
            (with_end(&longest), Some(longest.clone())),
            (with_end(&[longest.as_slice(), b"a"].concat()), None),
        ];
        for (input, line) in table {
            assert_eq!(read(&mut input.as_slice()).await, line);
        }
    }
}
