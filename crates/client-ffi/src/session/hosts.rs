//! Hosts: which there are, and what a person wants of them.

use wakeful_client::pairing::Pairing;
use wakeful_link::{
    authorization,
    registry::Entry,
    route::{Address, Route, Routes},
};
use wakeful_wire::HostId;

use super::ClientSession;
use crate::{
    error::{ClientError, id},
    view::host::{Agent, Connection, Host, ServerState},
};

#[uniffi::export]
impl ClientSession {
    /// Pairs with the host at an address by the code that it shows, keeps it, and begins to
    /// connect to it. `name` is what it is called here; absent: as it calls itself. One that is
    /// paired with already is paired anew, with what is cached of it.
    ///
    /// # Errors
    /// [`ClientError::CodeRefused`], [`ClientError::Unreachable`], [`ClientError::Storage`],
    /// [`ClientError::Invalid`] for an address that is none, [`ClientError::NotDone`] where there
    /// are as many hosts as a client can have, [`ClientError::Closed`].
    #[uniffi::method(default(name = None))]
    pub async fn pair(
        &self,
        address: String,
        code: String,
        name: Option<String>,
    ) -> Result<Host, ClientError> {
        self.run(|live| async move {
            let pairing =
                Pairing { hosts: &live.paired, key: &live.key, label: live.label.clone() };
            let paired = pairing.enter(&address, code.trim(), name.as_deref()).await;
            let paired = paired.map_err(|error| ClientError::pairing(&error))?;
            let address = Address::new(&paired.address)
                .map_err(|error| ClientError::invalid(&format!("An address {error}.")))?;
            let routes = Routes::of(Route::new(address));
            let entry = Entry::paired(paired.host, paired.name, routes);
            let secret = || authorization::Secret::new(paired.refresh_token.clone());
            if live.client.with(|link, _| link.entry(entry.host).is_some()) {
                // The connection that there is stands on the pairing before.
                let apart = Entry { enabled: false, ..entry.clone() };
                live.operate(|link, now| link.register(now, apart, secret()).map(Some)).await?;
            }
            let host = Host::of(&entry);
            live.operate(|link, now| link.register(now, entry, secret()).map(Some)).await?;
            Ok(host)
        })
        .await
    }

    /// The hosts that are known: paired ones, and the environments of the accounts.
    ///
    /// # Errors
    /// [`ClientError::Closed`].
    pub fn hosts(&self) -> Result<Vec<Host>, ClientError> {
        Ok(self.live()?.client.with(|link, _| link.entries().map(Host::of).collect()))
    }

    /// What a host's connection is doing. Absent while a host has none, such as one that takes no
    /// part.
    ///
    /// # Errors
    /// [`ClientError::NoSuchHost`], [`ClientError::Invalid`], [`ClientError::Closed`].
    pub fn connection(&self, host: &str) -> Result<Option<Connection>, ClientError> {
        let host = id("host", host)?;
        self.live()?.with_host(host, |link, now| {
            link.connection(host).map(|state| Connection::of(state, now))
        })
    }

    /// What the connections to the servers of the accounts are doing.
    ///
    /// # Errors
    /// [`ClientError::Closed`].
    pub fn servers(&self) -> Result<Vec<ServerState>, ClientError> {
        Ok(self.live()?.client.with(|link, _| {
            let state = |server| Some(ServerState::of(server, link.platform(server)?));
            link.platforms().filter_map(state).collect()
        }))
    }

    /// The agents that threads of a host can be made with, as it last said.
    ///
    /// # Errors
    /// [`ClientError::NoSuchHost`], [`ClientError::Invalid`], [`ClientError::Closed`].
    pub fn agents(&self, host: &str) -> Result<Vec<Agent>, ClientError> {
        let host = id("host", host)?;
        self.live()?
            .with_host(host, |link, _| link.config(host).map(Agent::all).unwrap_or_default())
    }

    /// A person needs a host: one that sleeps is woken.
    ///
    /// # Errors
    /// [`ClientError::NoSuchHost`], [`ClientError::Invalid`], [`ClientError::Closed`].
    pub fn wake(&self, host: &str) -> Result<(), ClientError> {
        let host = id("host", host)?;
        let known = self.live()?.with_host(host, |link, now| link.intend(now, host))?;
        if known { Ok(()) } else { Err(apart()) }
    }

    /// Tries a host again now. Nothing is woken by it.
    ///
    /// # Errors
    /// [`ClientError::NotDone`] for one that is paused, [`ClientError::NoSuchHost`],
    /// [`ClientError::Invalid`], [`ClientError::Closed`].
    pub fn retry(&self, host: &str) -> Result<(), ClientError> {
        let host = id("host", host)?;
        let tried = self.live()?.with_host(host, |link, now| link.retry(now, host))?;
        if tried { Ok(()) } else { Err(apart()) }
    }

    /// A person does something with a host: its environment counts as in use. To be said as often
    /// as one likes.
    ///
    /// # Errors
    /// [`ClientError::NoSuchHost`], [`ClientError::Invalid`], [`ClientError::Closed`].
    pub fn active(&self, host: &str) -> Result<(), ClientError> {
        let host = id("host", host)?;
        self.live()?.with_host(host, |link, now| link.handle_active(now, host))
    }

    /// No connection to a host until it is resumed, also over a new start. What is cached stays.
    ///
    /// # Errors
    /// [`ClientError::NoSuchHost`], [`ClientError::Storage`] where it holds and is not kept,
    /// [`ClientError::Invalid`], [`ClientError::Closed`].
    pub async fn pause(&self, host: String) -> Result<(), ClientError> {
        let host: HostId = id("host", &host)?;
        self.run(|live| async move { live.operate(|link, now| link.pause(now, host)).await }).await
    }

    /// Connects to a paused host again.
    ///
    /// # Errors
    /// As [`Self::pause`].
    pub async fn resume(&self, host: String) -> Result<(), ClientError> {
        let host: HostId = id("host", &host)?;
        self.run(|live| async move { live.operate(|link, now| link.resume(now, host)).await }).await
    }

    /// Removes a paired host with its credentials and everything that is cached of it. The session
    /// on its side stays until somebody ends it there.
    ///
    /// # Errors
    /// [`ClientError::NotDone`] for an environment, which comes and goes with its server's list;
    /// [`ClientError::NoSuchHost`], [`ClientError::Storage`], [`ClientError::Invalid`],
    /// [`ClientError::Closed`].
    pub async fn remove(&self, host: String) -> Result<(), ClientError> {
        let host: HostId = id("host", &host)?;
        self.run(|live| async move {
            live.operate(|link, now| link.remove(now, host)).await?;
            live.opened.lock().retain(|(of, _), _| *of != host);
            Ok(())
        })
        .await
    }
}

fn apart() -> ClientError {
    ClientError::not_done("This host is paused or takes no part at the moment.")
}
