//! Pairing with a host: its short code becomes lasting access.

use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::Url;
use wakeful_wire::host::{
    DESCRIPTOR_PATH, Descriptor, TOKEN_PATH, TokenError, TokenRequest, TokenResponse,
};

use crate::{
    clock,
    credentials::{ClientKey, PairedHost, PairedHosts},
    http::{body, http_client},
};

/// Why a pairing came to nothing, where a program may want to know. Found in the error of
/// [`Pairing::enter`] by its type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotPaired {
    /// That is no address.
    #[error("that is no address")]
    Address,
    /// Nobody answers at that address.
    #[error("{0} cannot be reached")]
    Unreachable(String),
    /// Whoever answers there is no host.
    #[error("{0} is no host of Wakeful")]
    NoHost(String),
    /// The host does not take the code, in its own words.
    #[error("{0}")]
    Refused(String),
}

/// How long a host may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Who pairs.
#[derive(Debug)]
pub struct Pairing<'a> {
    /// Where the host is to be kept.
    pub hosts: &'a PairedHosts,
    /// This installation's key.
    pub key: &'a ClientKey,
    /// What this client calls itself in the host's list of sessions.
    pub label: String,
}

impl Pairing<'_> {
    /// Pairs with the host at an address by the code that it shows. `name` is what it is called
    /// here; where absent it is called as it calls itself.
    ///
    /// # Errors
    /// The host cannot be reached, does not take the code ([`NotPaired`] says which), or cannot be
    /// kept. Words of the host are in the text: whoever shows it makes it printable.
    pub async fn enter(
        &self,
        address: &str,
        code: &str,
        name: Option<&str>,
    ) -> anyhow::Result<PairedHost> {
        let address = address.trim().trim_end_matches('/');
        let address =
            if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
        let http = http_client(&Url::parse(&address).context(NotPaired::Address)?)?;
        let unreachable = || NotPaired::Unreachable(address.clone());
        let descriptor = http.get(format!("{address}{DESCRIPTOR_PATH}")).timeout(ANSWER_TIME);
        let descriptor = descriptor.send().await.with_context(unreachable)?;
        let descriptor: Descriptor = serde_json::from_slice(&body(descriptor).await?)
            .with_context(|| NotPaired::NoHost(address.clone()))?;
        let endpoint = format!("{address}{TOKEN_PATH}");
        let request =
            TokenRequest::Pairing { code: code.to_owned(), label: Some(self.label.clone()) };
        let answer = http
            .post(&endpoint)
            .timeout(ANSWER_TIME)
            .header("dpop", self.key.proof("POST", &endpoint, None, clock::seconds()))
            .json(&request)
            .send()
            .await
            .with_context(unreachable)?;
        let status = answer.status();
        let answer = body(answer).await?;
        if !status.is_success() {
            let error: TokenError = serde_json::from_slice(&answer)
                .with_context(|| format!("{address} answered {status}"))?;
            bail!(NotPaired::Refused(error.error_description));
        }
        let answer: TokenResponse =
            serde_json::from_slice(&answer).context("its answer cannot be read")?;
        let Some(refresh_token) = answer.refresh_token else {
            bail!("{address} gave no lasting access");
        };
        let wanted = name.unwrap_or(&descriptor.label);
        self.hosts.keep(wanted, &address, descriptor.id, refresh_token)
    }
}
