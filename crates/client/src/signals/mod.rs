//! What this machine says of itself: its network, and that it or this process was suspended.
//!
//! Signals are reasons to look and nothing more; what follows from one is decided by the link. Where
//! a system has no watch here, nothing is ever said, and the link goes by what its sockets tell it.

#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod readable;
#[cfg(target_os = "linux")]
mod suspension;

use std::time::Duration;

use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};
use wakeful_link::{Instant, Link, Network, supervisor::Foreground};

use crate::runtime::Client;

/// How many signals may wait to be taken. A watch waits at the bound and then looks anew, so what
/// it says next is the present state.
const WAITING_MAX: usize = 16;

/// The machine said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Whether there is a network besides the machine itself. The present state comes first; the
    /// same is never said twice in a row.
    Network(Network),
    /// There is a network as before, but the way into it is another one: an address, a tunnel or a
    /// default route came or went.
    PathChanged,
    /// The machine slept, or this process was stopped, for at least so long. Said after the end.
    Suspended(Duration),
}

/// Watches this machine for as long as it lives.
#[derive(Debug)]
pub struct Signals {
    said: mpsc::Receiver<Signal>,
    /// End with this.
    _watches: JoinSet<()>,
}

impl Signals {
    /// Begins to watch.
    ///
    /// # Panics
    /// Outside of a tokio runtime with IO and time.
    #[must_use]
    pub fn watch() -> Self {
        let (says, said) = mpsc::channel(WAITING_MAX);
        Self { said, _watches: watches(&says) }
    }

    /// The next signal. Waits for ever where there is nothing to watch. Nothing is lost if this is
    /// dropped while it waits.
    pub async fn next(&mut self) -> Signal {
        match self.said.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }
}

#[cfg(target_os = "linux")]
fn watches(says: &mpsc::Sender<Signal>) -> JoinSet<()> {
    let mut watches = JoinSet::new();
    watches.spawn(network::watch(says.clone()));
    watches.spawn(suspension::watch(says.clone()));
    watches
}

#[cfg(not(target_os = "linux"))]
fn watches(_says: &mpsc::Sender<Signal>) -> JoinSet<()> {
    JoinSet::new()
}

/// Watches for a client, which keeps running meanwhile. Dropped, the watches end.
#[derive(Debug)]
#[must_use = "the watches end when this is dropped"]
pub struct Guard(AbortHandle);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Lets a client know what this machine says, for as long as the guard lives.
///
/// # Panics
/// Outside of a tokio runtime with IO and time.
pub fn attach(client: &Client) -> Guard {
    let client = client.clone();
    let mut signals = Signals::watch();
    let telling = async move {
        loop {
            let signal = signals.next().await;
            tracing::debug!(?signal, "the machine says");
            client.with(|link, now| tell(link, now, signal));
        }
    };
    Guard(tokio::spawn(telling).abort_handle())
}

fn tell(link: &mut Link, now: Instant, signal: Signal) {
    match signal {
        Signal::Network(network) => link.handle_network(now, network),
        Signal::PathChanged => link.handle_path_changed(now),
        Signal::Suspended(suspended) => link.handle_foreground(now, Foreground::after(suspended)),
    }
}

#[cfg(test)]
mod tests;
