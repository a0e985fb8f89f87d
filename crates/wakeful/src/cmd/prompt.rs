//! Secrets from a person or a pipe: never as an argument, never echoed.

use std::{
    fs,
    io::{self, Read as _, Write as _},
};

use anyhow::{Context as _, bail};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// The most bytes of a secret.
const SECRET_MAX: usize = 64 * 1024;

/// Reads a secret from standard input, to its end, without a line end behind it.
///
/// # Errors
/// It cannot be read, is no UTF-8, is empty or too long.
pub(super) fn from_stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    io::stdin()
        .lock()
        .take(SECRET_MAX as u64 + 1)
        .read_to_string(&mut text)
        .context("standard input cannot be read")?;
    let secret = text.strip_suffix('\n').unwrap_or(&text);
    let secret = secret.strip_suffix('\r').unwrap_or(secret);
    if secret.is_empty() || secret.len() > SECRET_MAX {
        bail!("standard input must hold between 1 and {SECRET_MAX} bytes");
    }
    Ok(secret.to_owned())
}

/// Asks the person at the terminal, without showing what is typed.
///
/// # Errors
/// There is no terminal, or the person gave up.
pub(super) fn from_terminal(question: &str) -> anyhow::Result<String> {
    let mut terminal = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/tty")
        .context("there is no terminal to ask at; use --password-stdin")?;
    let before = tcgetattr(&terminal)?;
    let mut silent = before.clone();
    // Without signals, too: Ctrl-C must not end the process before the echo is back.
    silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
    tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
    let restore = Restore { terminal: terminal.try_clone()?, before };
    write!(terminal, "{question}: ")?;
    let typed = read_line(&mut terminal);
    drop(restore);
    writeln!(terminal)?;
    typed
}

/// Reads up to the end of a line, with the editing keys that a silent line needs.
fn read_line(input: &mut impl io::Read) -> anyhow::Result<String> {
    let mut typed = Vec::new();
    let mut key = [0];
    // One byte at a time: what stands behind the line is not ours to read.
    while input.read(&mut key)? > 0 {
        match key[0] {
            b'\r' | b'\n' => break,
            3 | 4 => bail!("cancelled"),
            8 | 127 => {
                // One character, which may be several bytes.
                while typed.pop().is_some_and(|byte: u8| byte & 0xc0 == 0x80) {}
            }
            21 => typed.clear(),
            byte if typed.len() < SECRET_MAX => typed.push(byte),
            _ => bail!("too long"),
        }
    }
    if typed.is_empty() {
        bail!("nothing was typed");
    }
    String::from_utf8(typed).context("what was typed is no UTF-8")
}

/// Puts the terminal back as it was.
struct Restore {
    terminal: fs::File,
    before: Termios,
}

impl Drop for Restore {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_secret_can_be_edited_and_cancelled() {
        let read = |bytes: &[u8]| read_line(&mut &bytes[..]).ok();
        assert_eq!(read(b"secret\nrest").as_deref(), Some("secret"));
        assert_eq!(read("pä\u{7f}\u{7f}q\r".as_bytes()).as_deref(), Some("q"));
        assert_eq!(read(b"wrong\x15right\n").as_deref(), Some("right"));
        assert_eq!(read(b"sec\x03"), None);
        assert_eq!(read(b"\n"), None);
    }
}
