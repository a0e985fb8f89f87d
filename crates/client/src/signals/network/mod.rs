//! Whether there is a network, and by which way.
//!
//! The kernel is asked to tell of changes to devices, addresses and routes. What exactly it tells is
//! not relied on, because it leaves things out (routes that go with their address, what did not fit
//! into the queue): when changes have settled, the whole picture is read anew and compared.

mod message;
mod picture;
mod routing_socket;
mod settling;
mod told;

use std::{io, time::Duration};

use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use self::{
    message::Table,
    picture::{Facts, Picture},
    routing_socket::RoutingSocket,
    told::Told,
};
use super::Signal;

/// How long after a failure the kernel is asked again.
const AGAIN: Duration = Duration::from_secs(60);
/// How long reading the picture may take.
const READ_TIME: Duration = Duration::from_secs(5);

/// Says what becomes of the network, until nobody listens.
pub(super) async fn watch(says: mpsc::Sender<Signal>) {
    let mut told = Told::default();
    loop {
        let Err(error) = follow(&mut told, &says).await else { return };
        // Where it never could be, nothing was ever said that is wrong now.
        let Some(signal) = told.lose() else {
            tracing::debug!(%error, "the network of this machine cannot be watched");
            sleep(AGAIN).await;
            continue;
        };
        tracing::warn!(%error, "the network of this machine cannot be watched any more");
        if says.send(signal).await.is_err() {
            return;
        }
        sleep(AGAIN).await;
    }
}

async fn follow(told: &mut Told, says: &mpsc::Sender<Signal>) -> io::Result<()> {
    // Before the first look, so that no change falls in between.
    let mut changes = RoutingSocket::of_changes()?;
    loop {
        let picture = timeout(READ_TIME, look()).await.map_err(io::Error::other)??;
        if let Some(signal) = told.look(picture)
            && says.send(signal).await.is_err()
        {
            return Ok(());
        }
        settling::settled(&mut changes).await?;
    }
}

async fn look() -> io::Result<Picture> {
    let mut facts = Facts::default();
    for table in [Table::Devices, Table::Addresses, Table::Routes] {
        // A dump that a change ran across may be torn. The change is told of, and another look
        // follows.
        let dump = RoutingSocket::of_table(table)?;
        dump.read_table(|message| facts.take(message)).await?;
    }
    Ok(facts.picture())
}
