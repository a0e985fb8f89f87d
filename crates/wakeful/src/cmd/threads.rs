//! `threads`: what is in the lists of hosts.

mod list;
mod state;
mod table;
mod watch;

use std::{process::ExitCode, sync::Arc};

use futures::StreamExt as _;
use serde::Serialize;
use wakeful_client::clock::now;
use wakeful_wire::{
    EnvId, Phase, Timestamp,
    rpc::{Cursor, OlderSettled, ShellRow, ShellSnapshot, ThreadId},
};

pub(super) use self::state::{ago, coarse};
use super::{
    args::ThreadsArgs,
    short,
    which::{self, Chosen},
};
use crate::{
    client::Client,
    host::{HostClient, HostError},
    output::{Output, printable},
};

/// How many hosts are asked at the same time.
const TOGETHER: usize = 8;

/// What `threads --json` prints.
#[derive(Debug, Serialize)]
struct Lists {
    environments: Vec<HostList>,
}

/// The list of one host, or why there is none.
#[derive(Debug, Serialize)]
struct HostList {
    /// The environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<EnvId>,
    /// The paired host.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    /// For people.
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<Phase>,
    /// Why there is no list, although it is not for sleep.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<Cursor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<Arc<ShellRow>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    older_settled: Option<OlderSettled>,
}

/// `wakeful threads`.
pub(super) async fn threads(
    client: impl FnOnce() -> anyhow::Result<Client>,
    options: ThreadsArgs,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let Some(text) = &options.env else {
        return everywhere(client, options.all, output).await;
    };
    let chosen = which::choose(client, text).await?;
    if options.watch {
        return watch::watch(&chosen, options.all, options.wake, output).await;
    }
    let mut list = HostList::of(&chosen);
    match read(&chosen.host()?, options.all, options.wake).await {
        Err(error) if !matches!(error, HostError::Asleep { .. }) => return Err(error.into()),
        answer => list.take(answer),
    }
    show(vec![list], output)?;
    Ok(ExitCode::SUCCESS)
}

/// The lists of all hosts. One that cannot be asked says so, and hides no other.
async fn everywhere(
    client: impl FnOnce() -> anyhow::Result<Client>,
    all: bool,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let (chosen, missing) = which::all(client).await?;
    if let Some(error) = missing {
        // With nothing else to show, this is what the command comes to.
        if chosen.is_empty() {
            return Err(error);
        }
        if !which::is_not_signed_in(&error) {
            crate::output::to_stderr(&format!("warning: environments are left out: {error:#}"));
        }
    }
    let asked = chosen.iter().map(|chosen| async move {
        let mut list = HostList::of(chosen);
        // Nobody asks whom the platform knows to be asleep.
        if list.phase.is_none_or(may_answer) {
            match chosen.host() {
                Ok(host) => list.take(read(&host, all, false).await),
                Err(error) => list.error = Some(format!("{error:#}")),
            }
        }
        list
    });
    let lists = futures::stream::iter(asked).buffered(TOGETHER).collect().await;
    show(lists, output)?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a host of this phase can answer without being woken.
const fn may_answer(phase: Phase) -> bool {
    !matches!(phase, Phase::Suspended | Phase::Failed | Phase::Disabled | Phase::Deleted)
}

/// Asks for a list.
async fn read(host: &HostClient, all: bool, wake: bool) -> Result<ShellSnapshot, HostError> {
    let omitted = list::omissions(all);
    let (families, older) = (omitted.families, omitted.older_settled);
    host.get(&format!("/shell?families={families}&older_settled={older}"), wake).await
}

/// The thread that `text` is the id of, or the beginning of one. A whole id is not looked up.
///
/// # Errors
/// The list cannot be had, or no thread fits, or several do.
pub(super) async fn find(
    host: &HostClient,
    env: &str,
    text: &str,
    wake: bool,
) -> anyhow::Result<ThreadId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let listed = read(host, true, wake).await?;
    let list = format!("wakeful threads {env} --all");
    short::find(listed.rows.iter().map(|row| row.id), text, "thread", &list)
}

impl HostList {
    fn of(chosen: &Chosen) -> Self {
        let (phase, host) = match chosen {
            Chosen::Environment { env, .. } => (Some(env.phase), None),
            Chosen::Paired(host) => (None, Some(host.name.clone())),
        };
        Self {
            environment: chosen.env(),
            host,
            name: chosen.name(),
            phase,
            error: None,
            cursor: None,
            rows: None,
            older_settled: None,
        }
    }

    fn take(&mut self, answer: Result<ShellSnapshot, HostError>) {
        match answer {
            Ok(snapshot) => {
                // It answered, whatever the platform said a moment ago.
                self.phase = self.phase.map(|_| Phase::Ready);
                self.cursor = Some(snapshot.cursor);
                self.rows = Some(snapshot.rows);
                self.older_settled = snapshot.older_settled;
            }
            Err(HostError::Asleep { phase }) => {
                self.phase = phase.or(self.phase).filter(|phase| *phase != Phase::Ready);
                self.phase.get_or_insert(Phase::Suspended);
            }
            Err(error) => self.error = Some(error.to_string()),
        }
    }

    fn text(&self, now: Timestamp) -> String {
        let name = printable(&self.name);
        match (&self.rows, &self.error, self.phase) {
            (Some(rows), _, _) => {
                let table = table::table(rows, self.older_settled.as_ref(), now);
                format!("{name}\n{}", indented(&table))
            }
            (None, Some(error), _) => format!("{name}\n  {}\n", printable(error)),
            (None, None, Some(Phase::Suspended) | None) => {
                format!("{name}\n  asleep; `wakeful threads '{name}' --wake` wakes it\n")
            }
            (None, None, Some(phase)) => format!("{name}\n  {phase}\n"),
        }
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

fn show(lists: Vec<HostList>, output: Output) -> anyhow::Result<()> {
    output.print(&Lists { environments: lists }, |lists| {
        if lists.environments.is_empty() {
            return "no environments and no paired hosts".to_owned();
        }
        let now = now();
        let texts: Vec<_> = lists.environments.iter().map(|list| list.text(now)).collect();
        texts.join("\n")
    })
}

#[cfg(test)]
mod tests {
    use wakeful_wire::rpc::Seq;

    use super::*;

    pub(super) const NOW: Timestamp = Timestamp(1_800_000_000_000);

    pub(super) fn id(number: u8) -> ThreadId {
        format!("{number:08x}-0000-4000-8000-000000000000").parse().unwrap()
    }

    /// An idle thread.
    pub(super) fn row(number: u8) -> ShellRow {
        ShellRow {
            id: id(number),
            seq: Seq(1),
            created_at: Timestamp(0),
            active_at: Timestamp(0),
            parent: None,
            root: id(number),
            project: String::new(),
            agent: "shell".to_owned(),
            title: None,
            pinned: false,
            snoozed_until: None,
            settled: None,
            running_since: None,
            cancelling: false,
            last_outcome: None,
            queued: 0,
            held: false,
            pending: 0,
            background: false,
            mode: None,
        }
    }

    fn list(phase: Option<Phase>) -> HostList {
        HostList {
            environment: None,
            host: None,
            name: "Site/dev".to_owned(),
            phase,
            error: None,
            cursor: None,
            rows: None,
            older_settled: None,
        }
    }

    #[test]
    fn a_host_without_a_list_says_why() {
        let mut asleep = list(Some(Phase::Ready));
        asleep.take(Err(HostError::Asleep { phase: None }));
        assert_eq!(asleep.phase, Some(Phase::Suspended), "it sleeps by now");
        assert!(asleep.text(NOW).contains("asleep"), "{}", asleep.text(NOW));
        let mut starting = list(Some(Phase::Suspended));
        starting.take(Err(HostError::Asleep { phase: Some(Phase::Starting) }));
        assert!(starting.text(NOW).ends_with("  starting\n"), "{}", starting.text(NOW));
        let mut broken = list(None);
        broken.take(Err(HostError::Unreachable("no connection".to_owned())));
        assert!(broken.text(NOW).ends_with("  no connection\n"), "{}", broken.text(NOW));
    }

    #[test]
    fn a_list_names_its_host_and_its_threads() {
        let mut ready = list(Some(Phase::Starting));
        let rows = vec![Arc::new(row(0x1f))];
        ready.take(Ok(ShellSnapshot { rows, ..ShellSnapshot::default() }));
        assert_eq!(ready.phase, Some(Phase::Ready));
        let text = ready.text(NOW);
        assert!(text.starts_with("Site/dev\n  THREAD"), "{text}");
        assert!(text.contains("  0000001f  untitled  shell  idle"), "{text}");
    }
}
