//! Handing a connected descriptor over.

use std::{io, io::IoSlice, mem::MaybeUninit, os::fd::AsFd, time::Duration};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use tokio::{
    io::Interest,
    net::{TcpStream, UnixStream},
};
use wakeful_wire::sandbox::{Refusal, Reply};

use super::line;
use crate::probe::connect;

/// How long a connection may take. The kernel asks a full backlog again after 1 s and 3 s.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Connects to a surface's port.
pub(super) async fn dial(port: u16) -> Result<TcpStream, Refusal> {
    match tokio::time::timeout(CONNECT_TIME, connect(port)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(Refusal::Connect { reason: error.to_string() }),
        Err(_) => Err(Refusal::Connect {
            reason: format!("no connection within {} s", CONNECT_TIME.as_secs()),
        }),
    }
}

/// Sends `reply` with the descriptor. The descriptor is non-blocking, which the receiver shares.
pub(super) async fn pass(
    stream: &UnixStream,
    descriptor: &TcpStream,
    reply: &Reply,
) -> io::Result<()> {
    let line = line::encode(reply)?;
    let sent = stream
        .async_io(Interest::WRITABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            let fds = [descriptor.as_fd()];
            if !ancillary.push(SendAncillaryMessage::ScmRights(&fds)) {
                return Err(io::Error::other("no room for a descriptor"));
            }
            Ok(rustix::net::sendmsg(
                stream,
                &[IoSlice::new(&line)],
                &mut ancillary,
                SendFlags::NOSIGNAL,
            )?)
        })
        .await?;
    // The descriptor travels with the first byte; a short write leaves only text to send.
    let mut rest = &line[sent..];
    while !rest.is_empty() {
        stream.writable().await?;
        match stream.try_write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
