//! The person at the terminal: lines, the end of lines, interrupts, another size.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

use super::session::Input;

/// A longer line, in bytes, comes in parts.
const LINE_MAX: u64 = 128 * 1024;
/// How many inputs may wait; then reading pauses.
const WAITING_MAX: usize = 16;

/// What a person does, and whether one is there.
#[derive(Debug)]
pub(super) struct Terminal {
    /// Whether standard output is a terminal.
    pub(super) shows: bool,
    /// Whether somebody types.
    pub(super) types: bool,
    /// What they do. Interrupts come in any case.
    pub(super) inputs: mpsc::Receiver<Input>,
}

impl Terminal {
    /// Listens; to lines only if standard input is a terminal and `talks`.
    pub(super) fn open(talks: bool) -> Self {
        let (sender, inputs) = mpsc::channel(WAITING_MAX);
        let mut types = talks && io::stdin().is_terminal();
        if types {
            let sender = sender.clone();
            // It stays in its read until the process ends, which no task of the runtime may.
            let reader = std::thread::Builder::new().name("terminal".to_owned());
            types = reader.spawn(move || read_lines(&sender)).is_ok();
        }
        let resized = sender.clone();
        tokio::spawn(async move {
            let Ok(mut windows) = signal(SignalKind::window_change()) else { return };
            while windows.recv().await.is_some() {
                if resized.send(Input::Resized).await.is_err() {
                    return;
                }
            }
        });
        let ended = sender.clone();
        tokio::spawn(async move {
            let Ok(mut ends) = signal(SignalKind::terminate()) else { return };
            if ends.recv().await.is_some() {
                // Nobody takes it any more: then it has ended.
                let _gone = ended.send(Input::Terminated).await;
            }
        });
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                if sender.send(Input::Interrupt).await.is_err() {
                    return;
                }
            }
            // Where no interrupts can be had, their end is nobody's wish to leave.
            std::future::pending::<()>().await;
        });
        Self { shows: io::stdout().is_terminal(), types, inputs }
    }
}

fn read_lines(sender: &mpsc::Sender<Input>) {
    loop {
        let mut line = Vec::new();
        let read = io::stdin().lock().take(LINE_MAX).read_until(b'\n', &mut line);
        let input = match read {
            Ok(0) | Err(_) => Input::End,
            Ok(_) => Input::Line(String::from_utf8_lossy(&line).into_owned()),
        };
        let ends = input == Input::End;
        if sender.blocking_send(input).is_err() || ends {
            return;
        }
    }
}
