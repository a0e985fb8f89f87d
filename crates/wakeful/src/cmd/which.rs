//! Which host a person means: an environment's, as [`select`] finds it, or one that this machine is
//! paired with, by its name or `host:NAME`.

use std::time::Duration;

use anyhow::{Context as _, bail};
use wakeful_client::credentials::PairedHost;
use wakeful_wire::{HostId, api::Environment};

use super::select;
use crate::{
    client::Client,
    connect::{self, Reached},
    output::printable,
};

/// What begins the name of a paired host and of nothing else.
pub(super) const PAIRED: &str = "host:";
/// How long a server may take to say whether a paired host's name is an environment's as well.
const DOUBT_TIME: Duration = Duration::from_secs(3);

/// A host that was chosen.
#[derive(Debug)]
pub(super) enum Chosen {
    /// An environment's.
    Environment {
        /// Its server.
        client: Client,
        /// The environment.
        env: Box<Environment>,
        /// What it is called.
        name: String,
    },
    /// A paired one.
    Paired(PairedHost),
}

impl Chosen {
    /// What it is called, for people.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Environment { name, .. } => name.clone(),
            Self::Paired(host) => format!("{PAIRED}{}", host.name),
        }
    }

    /// Its id.
    pub(super) fn id(&self) -> HostId {
        match self {
            Self::Environment { env, .. } => env.id.into(),
            Self::Paired(host) => host.host,
        }
    }

    /// A running client that is connected to it alone.
    ///
    /// # Errors
    /// A file of this user cannot be read or made.
    pub(super) async fn reach(&self, url: Option<&str>) -> anyhow::Result<Reached> {
        Reached::host(url, self.id(), self.name()).await
    }
}

/// Finds what `text` names. A name that fits both an environment and a paired host names neither.
///
/// # Errors
/// Nothing fits, or two do; for an environment also whatever keeps the server from being asked.
pub(super) async fn choose(
    client: impl FnOnce() -> anyhow::Result<Client>,
    text: &str,
) -> anyhow::Result<Chosen> {
    if let Some(name) = text.strip_prefix(PAIRED) {
        let host = connect::paired()?.find(name)?;
        return host.map(Chosen::Paired).with_context(|| {
            format!(
                "no paired host is called `{}`; `wakeful pair --list` lists them",
                printable(name)
            )
        });
    }
    let paired = connect::paired()?.find(text)?;
    let client = client();
    let Some(host) = paired else {
        let client = client?;
        let projects = select::projects(&client).await?;
        return Ok(environment(client, &projects, text)?);
    };
    // Where no server is or answers, nothing can be meant but the paired host.
    if let Ok(client) = client
        && let Ok(Ok(projects)) = tokio::time::timeout(DOUBT_TIME, select::projects(&client)).await
        && let Ok(env) = select::environment(&projects, text)
    {
        bail!(
            "`{0}` is an environment and a paired host: say {1} or {PAIRED}{0}",
            printable(text),
            env.id
        );
    }
    Ok(Chosen::Paired(host))
}

fn environment(
    client: Client,
    projects: &[wakeful_wire::api::Project],
    text: &str,
) -> Result<Chosen, select::SelectError> {
    let env = select::environment(projects, text)?;
    let name = name(projects, env);
    Ok(Chosen::Environment { client, env: Box::new(env.clone()), name })
}

/// `PROJECT/SLUG`.
fn name(projects: &[wakeful_wire::api::Project], env: &Environment) -> String {
    let project = projects.iter().find(|project| project.id == env.project);
    let title = project.map_or_else(|| env.project.to_string(), |project| project.title.clone());
    format!("{title}/{}", env.slug)
}
