//! The client runtime of a command: with this user's key, accounts, paired hosts and cache.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use serde::Deserialize;
use wakeful_client::{
    cache::Cache,
    credentials::{ClientKey, PairedHosts},
    runtime::{self, Setup, Terms},
};
use wakeful_link::{registry::Account, route::Address};
use wakeful_wire::{HostId, UserName};

use crate::{
    client::{Client, ClientError, credentials::Credentials, credentials_file},
    env,
    output::to_stderr,
};

/// How long a server may take to say whose the token is.
const WHO_TIME: Duration = Duration::from_secs(10);
/// The longest name of this machine that hosts are told, in characters.
const MACHINE_MAX: usize = 64;

/// What a command needs of the runtime.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The server, as `--url` names it. Else the one of [`env::URL`], else the one signed in to
    /// last. Other servers' environments take no part.
    pub url: Option<String>,
    /// If there, only these hosts are connected to.
    pub focus: Option<Vec<HostId>>,
    /// Whether running threads are followed although nobody looks at them: for a view that lasts.
    pub keep_alive: bool,
    /// Whether hosts leave nothing out of their lists. Nothing is cached then.
    pub whole_lists: bool,
}

/// Starts a runtime. Who is not signed in has the paired hosts alone; so has, after a warning, who
/// brings a token of which its server does not say whose it is.
///
/// # Errors
/// A file of this user cannot be read or made.
pub async fn client(options: Options) -> anyhow::Result<runtime::Client> {
    let variables = env::snapshot();
    let who = Who::find(options.url.as_deref(), &variables).await?;
    let cached = who.is_stored && !options.whole_lists;
    let cache = if cached { env::cache_dir(&variables) } else { None };
    let setup = Setup {
        key: Arc::new(key()?),
        paired: paired()?,
        cache,
        accounts: who.here.into_iter().collect(),
        label: label(),
        focus: options.focus,
        keep_alive: options.keep_alive,
    };
    let terms = Terms { others: who.others, whole_lists: options.whole_lists };
    runtime::Client::start_with(setup, terms).await
}

/// A runtime that is connected to one host alone.
#[derive(Debug, Clone)]
pub struct Reached {
    /// The runtime. Whoever holds it last ends it by [`runtime::Client::close`].
    pub client: runtime::Client,
    /// The host. The runtime may not know it yet: an environment comes with its server's list.
    pub host: HostId,
    /// What it is called. Another side's words may be in it.
    pub name: String,
}

impl Reached {
    /// Starts a runtime for one host.
    ///
    /// # Errors
    /// Like [`client`].
    pub async fn host(url: Option<&str>, host: HostId, name: String) -> anyhow::Result<Self> {
        let options =
            Options { url: url.map(str::to_owned), focus: Some(vec![host]), ..Options::default() };
        Ok(Self { client: client(options).await?, host, name })
    }
}

/// Who takes part, and who else is signed in here.
#[derive(Debug)]
struct Who {
    /// With the token.
    here: Option<(Account, String)>,
    others: Vec<Account>,
    /// Whether it is the user who is logged in here, or nobody: what the cache holds is theirs.
    is_stored: bool,
}

impl Who {
    async fn find(url: Option<&str>, variables: &BTreeMap<String, String>) -> anyhow::Result<Self> {
        let stored =
            credentials_file(variables).map(|file| Credentials::load(&file)).transpose()?;
        let stored = stored.unwrap_or_default();
        let client = match Client::signed_in(url, variables) {
            Ok(client) => client,
            Err(error) if is_not_signed_in(&error) => return Ok(Self::nobody(&stored)),
            Err(error) => return Err(error),
        };
        let Some(token) = client.token().map(str::to_owned) else {
            return Ok(Self::nobody(&stored));
        };
        let server = client.server();
        let known = stored.servers.get(&server);
        let user = match known.filter(|known| known.token == token) {
            Some(known) => known.user.clone(),
            None => match whose(&client).await {
                Ok(user) => user,
                // With nothing else to work with, this is what a command comes to.
                Err(error) if paired()?.list()?.is_empty() => return Err(error),
                Err(error) => {
                    to_stderr(&format!("warning: environments are left out: {error:#}"));
                    return Ok(Self::nobody(&stored));
                }
            },
        };
        let is_stored = known.is_some_and(|known| known.user == user);
        let others = accounts(&stored).filter(|(origin, _)| **origin != server);
        let others = others.map(|(_, account)| account).collect();
        Ok(Self { here: Some((account(&server, &user)?, token)), others, is_stored })
    }

    fn nobody(stored: &Credentials) -> Self {
        let others = accounts(stored).map(|(_, account)| account).collect();
        Self { here: None, others, is_stored: true }
    }
}

/// Whether nobody is signed in, which is no fault of who has paired hosts.
pub fn is_not_signed_in(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<ClientError>(), Some(ClientError::NotSignedIn))
}

/// Whose the client's token is, as the server says.
async fn whose(client: &Client) -> anyhow::Result<String> {
    #[derive(Deserialize)]
    struct Me {
        user: String,
    }
    let asking = client.get::<Me>(&["api", "me"]);
    let me = tokio::time::timeout(WHO_TIME, asking).await;
    let me = me.map_err(|_| anyhow::anyhow!("{} does not answer", client.server()))??;
    Ok(me.user)
}

/// The accounts of the credentials file. One that no release of this program wrote is left out.
fn accounts(stored: &Credentials) -> impl Iterator<Item = (&String, Account)> {
    stored.servers.iter().filter_map(|(server, known)| {
        account(server, &known.user).ok().map(|account| (server, account))
    })
}

fn account(server: &str, user: &str) -> anyhow::Result<Account> {
    let platform = Address::new(server).with_context(|| format!("{server} is no address"))?;
    let user: UserName = user.parse().context("the server's name for this user is none")?;
    Ok(Account { platform, user })
}

/// The directory of this user's keys and credentials.
fn directory() -> anyhow::Result<PathBuf> {
    let file = credentials_file(&env::snapshot());
    let directory = file.as_deref().and_then(Path::parent).map(PathBuf::from);
    directory.context("there is no place for keys: set HOME or XDG_CONFIG_HOME")
}

/// The hosts that this installation is paired with.
///
/// # Errors
/// There is no place for them.
pub fn paired() -> anyhow::Result<PairedHosts> {
    Ok(PairedHosts::in_directory(directory()?))
}

/// Deletes what is cached of a host that was forgotten.
pub async fn clear(host: HostId) {
    let Some(directory) = env::cache_dir(&env::snapshot()) else { return };
    let cleared = async {
        let cache = Cache::open(&directory).await?;
        cache.clear(host).await?;
        cache.close().await;
        anyhow::Ok(())
    };
    if let Err(error) = cleared.await {
        to_stderr(&format!("warning: copies of its lists and threads are still there: {error:#}"));
    }
}

/// This installation's key.
///
/// # Errors
/// It cannot be read or made.
pub fn key() -> anyhow::Result<ClientKey> {
    ClientKey::open(&directory()?.join("host-key"))
}

/// What this client calls itself.
#[must_use]
pub fn label() -> String {
    let name = rustix::system::uname();
    let machine: String = name.nodename().to_string_lossy().chars().take(MACHINE_MAX).collect();
    format!("terminal on {machine}")
}

#[cfg(test)]
mod tests {
    use crate::client::credentials;

    use super::*;

    fn stored(accounts: &[(&str, &str)]) -> Credentials {
        let one = |(server, user): &(&str, &str)| {
            let account =
                credentials::Account { user: (*user).to_owned(), token: "wk_t".to_owned() };
            ((*server).to_owned(), account)
        };
        Credentials { current: None, servers: accounts.iter().map(one).collect() }
    }

    #[test]
    fn whoever_is_signed_in_elsewhere_keeps_what_is_cached() {
        let file = stored(&[("http://a.example", "ada"), ("http://b.example:81", "bob")]);
        let nobody = Who::nobody(&file);
        let others: Vec<_> = nobody.others.iter().map(|one| one.platform.to_string()).collect();
        assert_eq!(others, ["http://a.example", "http://b.example:81"]);
        assert!(nobody.here.is_none() && nobody.is_stored);
        let broken = stored(&[("no address", "ada"), ("http://a.example", "NO NAME")]);
        assert!(Who::nobody(&broken).others.is_empty());
    }
}
