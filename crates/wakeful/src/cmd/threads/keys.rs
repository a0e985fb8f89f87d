//! The end of what is watched: a key, an interrupt, or a request to end.

use std::{
    fs::File,
    io::{self, IsTerminal as _, Read as _},
    os::fd::AsFd as _,
};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};

/// What a person at the terminal wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// The end.
    Quit,
    /// The terminal has another size.
    Resized,
}

/// Listens for the end. The terminal is as before when this is dropped.
#[derive(Debug)]
pub(super) struct Keys {
    typed: mpsc::Receiver<u8>,
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    resize: Option<Signal>,
    _restore: Option<Restore>,
}

impl Keys {
    /// Begins to listen; to keys only if `terminal` says that what is watched stands on one, and one
    /// is there to type at.
    pub(super) fn listen(terminal: bool) -> Self {
        let (sender, typed) = mpsc::channel(1);
        let restore = if terminal && io::stdin().is_terminal() { Restore::silent() } else { None };
        if restore.is_some() {
            // It stays in its read until the process ends, which no task of the runtime may.
            let reader = std::thread::Builder::new().name("keys".to_owned());
            let _without_keys = reader.spawn(move || read(&sender));
        }
        Self {
            typed,
            interrupt: signal(SignalKind::interrupt()).ok(),
            terminate: signal(SignalKind::terminate()).ok(),
            resize: signal(SignalKind::window_change()).ok(),
            _restore: restore,
        }
    }

    /// The next thing that a person wants. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Key {
        loop {
            tokio::select! {
                () = came(&mut self.interrupt) => return Key::Quit,
                () = came(&mut self.terminate) => return Key::Quit,
                () = came(&mut self.resize) => return Key::Resized,
                Some(key) = self.typed.recv() => {
                    if matches!(key, b'q' | b'Q') {
                        return Key::Quit;
                    }
                }
            }
        }
    }
}

/// Never, where the signal cannot be had.
async fn came(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

fn read(sender: &mpsc::Sender<u8>) {
    let mut key = [0];
    while io::stdin().read(&mut key).is_ok_and(|read| read > 0) {
        if sender.blocking_send(key[0]).is_err() {
            return;
        }
    }
}

/// Puts the terminal back as it was.
#[derive(Debug)]
struct Restore {
    terminal: File,
    before: Termios,
}

impl Restore {
    /// Lets keys come one by one, without being shown.
    fn silent() -> Option<Self> {
        let terminal = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
        let before = tcgetattr(&terminal).ok()?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
        tcsetattr(&terminal, OptionalActions::Now, &silent).ok()?;
        Some(Self { terminal, before })
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _gone = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}
