//! A real terminal.

use std::{io, os::fd::OwnedFd};

use rustix::{
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use tokio::net::unix::pipe;

/// What programs are told of its size. Wide enough for most output, and nobody can resize it.
const SIZE: Winsize = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };

/// The side that reads what programs write. It is read like a pipe: bytes until nobody writes.
#[derive(Debug)]
pub(super) struct Terminal(pipe::Receiver);

impl Terminal {
    /// A terminal and the side that programs have.
    pub(super) fn open() -> io::Result<(Self, OwnedFd)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let theirs = ioctl_tiocgptpeer(&ours, flags)?;
        tcsetwinsize(&ours, SIZE)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        Ok((Self(pipe::Receiver::from_owned_fd_unchecked(ours)?), theirs))
    }

    /// Reads what was written. Zero bytes: no program has it open any longer.
    pub(super) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.0.readable().await?;
            match self.0.try_read(buffer) {
                // How Linux says that nobody has the other side open.
                Err(error)
                    if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) =>
                {
                    return Ok(0);
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) => {}
                read => return read,
            }
        }
    }
}

/// Makes text of bytes that come in pieces: a character that is cut by a piece's end waits for the
/// next, bytes that are no text are replaced.
#[derive(Debug, Default)]
pub(super) struct Decoder(Vec<u8>);

impl Decoder {
    pub(super) fn decode(&mut self, bytes: &[u8]) -> String {
        self.0.extend_from_slice(bytes);
        let incomplete = match std::str::from_utf8(&self.0) {
            Ok(_) => 0,
            Err(error) if error.error_len().is_none() => self.0.len() - error.valid_up_to(),
            // Something before the end is no text; only the end can still become text.
            Err(_) => incomplete_end(&self.0),
        };
        let rest = self.0.split_off(self.0.len() - incomplete);
        String::from_utf8_lossy(&std::mem::replace(&mut self.0, rest)).into_owned()
    }

    /// What never became a character.
    pub(super) fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.0)).into_owned()
    }
}

/// How many of the last bytes begin a character that is not whole.
fn incomplete_end(bytes: &[u8]) -> usize {
    (1..=3.min(bytes.len()))
        .find(|back| {
            let end = &bytes[bytes.len() - back..];
            std::str::from_utf8(end)
                .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_is_cut_waits_for_its_rest() {
        let text = "aé€😀z\r\n";
        for size in 1..6 {
            let mut decoder = Decoder::default();
            let mut all = String::new();
            for piece in text.as_bytes().chunks(size) {
                all.push_str(&decoder.decode(piece));
            }
            all.push_str(&decoder.finish());
            assert_eq!(all, text, "pieces of {size}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_never_held_back_for_long() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.decode(b"\xff\xffa\xe2\x82"), "\u{fffd}\u{fffd}a");
        assert_eq!(decoder.decode(b"\xacb"), "€b");
        assert_eq!(decoder.decode(b"\xf0\x9f"), "");
        assert_eq!(decoder.finish(), "\u{fffd}");
    }
}
