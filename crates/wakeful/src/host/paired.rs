//! The hosts that this installation is paired with, in a file that only its owner may read.

use std::{fmt, path::PathBuf};

use anyhow::{Context as _, bail};
use reqwest::Method;
use serde::{Deserialize, Serialize};
use wakeful_wire::{
    HostId,
    host::{DESCRIPTOR_PATH, Descriptor, TOKEN_PATH, TokenError, TokenRequest, TokenResponse},
};

use super::{directory, http_of, key, seconds};
use wakeful_client::credentials::private_file;

/// The longest name, in bytes.
const NAME_MAX: usize = 64;

/// A host that this installation is paired with.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairedHost {
    /// What it is called here.
    pub name: String,
    /// Where it is, without a slash at the end.
    pub address: String,
    /// Its id.
    pub host: HostId,
    /// Gives access tokens to the holder of this installation's key. A secret.
    pub refresh_token: String,
}

impl fmt::Debug for PairedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairedHost")
            .field("name", &self.name)
            .field("address", &self.address)
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Hosts {
    #[serde(default)]
    hosts: Vec<PairedHost>,
}

fn file() -> anyhow::Result<PathBuf> {
    Ok(directory()?.join("paired-hosts.json"))
}

fn load() -> anyhow::Result<Hosts> {
    let file = file()?;
    match private_file::read(&file)? {
        None => Ok(Hosts::default()),
        Some(text) => serde_json::from_slice(&text)
            .with_context(|| format!("{} cannot be read", file.display())),
    }
}

fn store(hosts: &Hosts) -> anyhow::Result<()> {
    private_file::write(&file()?, serde_json::to_string_pretty(hosts)?.as_bytes())
}

/// The paired hosts, in the order in which they were paired with.
///
/// # Errors
/// The file cannot be read.
pub fn list() -> anyhow::Result<Vec<PairedHost>> {
    Ok(load()?.hosts)
}

/// The host of a name.
///
/// # Errors
/// The file cannot be read.
pub fn find(name: &str) -> anyhow::Result<Option<PairedHost>> {
    Ok(load()?.hosts.into_iter().find(|host| host.name == name))
}

/// Forgets a host. False if none has that name.
///
/// # Errors
/// The file cannot be read or written.
pub fn forget(name: &str) -> anyhow::Result<bool> {
    let mut hosts = load()?;
    let before = hosts.hosts.len();
    hosts.hosts.retain(|host| host.name != name);
    let changed = hosts.hosts.len() < before;
    if changed {
        store(&hosts)?;
    }
    Ok(changed)
}

/// Keeps what a renewal brought, if the host has not been forgotten meanwhile.
pub(super) fn renew(host: &PairedHost) -> anyhow::Result<()> {
    let mut hosts = load()?;
    let Some(known) = hosts.hosts.iter_mut().find(|known| known.host == host.host) else {
        return Ok(());
    };
    known.refresh_token.clone_from(&host.refresh_token);
    store(&hosts)
}

/// Keeps a host; it replaces the one of the same id.
fn keep(host: &PairedHost) -> anyhow::Result<()> {
    let mut hosts = load()?;
    match hosts.hosts.iter_mut().find(|known| known.host == host.host) {
        Some(known) => known.clone_from(host),
        None => hosts.hosts.push(host.clone()),
    }
    store(&hosts)
}

/// Pairs with a host by the code that it shows. `label` is what it is called here; where absent it
/// is called as it calls itself.
///
/// # Errors
/// The host cannot be reached, does not take the code, or cannot be kept.
pub async fn pair(address: &str, code: &str, label: Option<&str>) -> anyhow::Result<PairedHost> {
    let address = address.trim().trim_end_matches('/');
    let address =
        if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let (http, key) = (http_of(&address)?, key()?);
    let unreachable = || format!("{address} cannot be reached");
    let descriptor: Descriptor = http
        .get(format!("{address}{DESCRIPTOR_PATH}"))
        .timeout(super::ANSWER_TIME)
        .send()
        .await
        .with_context(unreachable)?
        .json()
        .await
        .with_context(|| format!("{address} is no host of Wakeful"))?;
    let request = TokenRequest::Pairing {
        code: code.to_owned(),
        label: Some(format!("terminal on {}", super::machine())),
    };
    let endpoint = format!("{address}{TOKEN_PATH}");
    let answer = http
        .request(Method::POST, &endpoint)
        .timeout(super::ANSWER_TIME)
        .header("dpop", key.proof("POST", &endpoint, None, seconds()))
        .json(&request)
        .send()
        .await
        .with_context(unreachable)?;
    if !answer.status().is_success() {
        let status = answer.status();
        let error: TokenError =
            answer.json().await.with_context(|| format!("{address} answered {status}"))?;
        bail!("{}", crate::output::printable(&error.error_description));
    }
    let answer: TokenResponse = answer.json().await.context("its answer cannot be read")?;
    let Some(refresh_token) = answer.refresh_token else {
        bail!("{address} gave no lasting access");
    };
    let name = unique(label.unwrap_or(&descriptor.label), descriptor.id)?;
    let host = PairedHost { name, address, host: descriptor.id, refresh_token };
    keep(&host)?;
    Ok(host)
}

/// A name that no other host has.
fn unique(wanted: &str, id: HostId) -> anyhow::Result<String> {
    let wanted: String = wanted
        .chars()
        .map(|letter| if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '-' })
        .take(NAME_MAX)
        .collect();
    let wanted = if wanted.is_empty() { "host".to_owned() } else { wanted };
    let hosts = load()?;
    let taken = |name: &str| hosts.hosts.iter().any(|host| host.name == name && host.host != id);
    let numbered = (2..).map(|number| format!("{wanted}-{number}"));
    let mut names = std::iter::once(wanted.clone()).chain(numbered);
    Ok(names.find(|name| !taken(name)).unwrap_or(wanted))
}
