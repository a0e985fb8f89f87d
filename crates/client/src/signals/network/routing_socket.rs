//! A socket to the kernel's routing tables.

use std::{io, os::fd::OwnedFd};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketFlags, SocketType, bind,
        netlink::SocketAddrNetlink, recvfrom, send, socket_with,
    },
};
use tokio::io::{Interest, unix::AsyncFd};

use super::{
    super::readable::readable,
    message::{Message, Table, messages},
    settling::Changes,
};

/// Changes of devices, of addresses and of routes, these of both families.
const CHANGES: u32 = 0x001 | 0x010 | 0x040 | 0x100 | 0x400;
/// How much is received at once; the kernel fills no more with one part of a table.
const PART_MAX: usize = 32 * 1024;
/// How much of a table is read. What is behind is left out: it takes a hundred thousand routes, and
/// the routes to everywhere come first.
const TABLE_MAX: usize = 16 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct RoutingSocket {
    socket: AsyncFd<OwnedFd>,
    part: Vec<u8>,
}

/// What was received.
enum Received<'a> {
    /// Whole messages.
    Part(&'a [u8]),
    /// Something that was too much, for the kernel's queue or for one part.
    TooMuch,
}

impl RoutingSocket {
    /// One that is told of changes.
    pub(super) fn of_changes() -> io::Result<Self> {
        Self::open(CHANGES)
    }

    /// One on which a table is asked for.
    pub(super) fn of_table(table: Table) -> io::Result<Self> {
        let asking = Self::open(0)?;
        // Without an address it goes to the kernel.
        send(&asking.socket, &table.request(), SendFlags::empty())?;
        Ok(asking)
    }

    fn open(groups: u32) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, groups))?;
        Ok(Self { socket: readable(socket)?, part: vec![0; PART_MAX] })
    }

    /// Reads the table that was asked for, until it ends or [`TABLE_MAX`] is reached.
    pub(super) async fn read_table(mut self, mut take: impl FnMut(Message)) -> io::Result<()> {
        let mut read = 0;
        while read < TABLE_MAX {
            let Received::Part(part) = self.receive().await? else {
                return Err(Errno::NOBUFS.into());
            };
            read += part.len();
            for message in messages(part) {
                match message {
                    Message::Done => return Ok(()),
                    Message::Refused(error) => return Err(io::Error::from_raw_os_error(error)),
                    Message::Device(_)
                    | Message::Address(_)
                    | Message::DefaultRoute(_)
                    | Message::Other => take(message),
                }
            }
        }
        Ok(())
    }

    async fn receive(&mut self) -> io::Result<Received<'_>> {
        loop {
            let part = &mut self.part;
            let receiving = self.socket.async_io(Interest::READABLE, |socket| {
                Ok(recvfrom(socket, &mut part[..], RecvFlags::TRUNC)?)
            });
            match receiving.await {
                Ok((_, length, _)) if length > PART_MAX => return Ok(Received::TooMuch),
                Ok((length, _, from)) if is_kernel(from.as_ref()) => {
                    return Ok(Received::Part(&self.part[..length]));
                }
                // Another program can send here, too, if it is privileged.
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(Errno::NOBUFS.raw_os_error()) => {
                    return Ok(Received::TooMuch);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Changes for RoutingSocket {
    async fn changed(&mut self) -> io::Result<()> {
        loop {
            let of_interest = match self.receive().await? {
                Received::Part(part) => messages(part).any(|message| match message {
                    Message::Device(_) | Message::Address(_) | Message::DefaultRoute(_) => true,
                    Message::Done | Message::Refused(_) | Message::Other => false,
                }),
                Received::TooMuch => true,
            };
            if of_interest {
                return Ok(());
            }
        }
    }
}

fn is_kernel(from: Option<&SocketAddrAny>) -> bool {
    let from = from.cloned().map(SocketAddrNetlink::try_from);
    from.is_some_and(|from| from.is_ok_and(|from| from.pid() == 0))
}
