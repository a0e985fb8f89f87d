//! What programs are told of lists that are watched: one value for each change.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use wakeful_link::{DataStatus, shell::ShellList};
use wakeful_wire::{
    HostId,
    rpc::{ShellRow, ThreadId},
};

use super::{
    super::hosts::{HostView, View, connection_json, connection_value, platform_json},
    Watched,
};

/// What was told.
#[derive(Debug)]
pub(super) struct Told {
    what: Watched,
    hosts: BTreeMap<HostId, Last>,
    platforms: BTreeMap<String, Value>,
}

/// What was told of one host.
#[derive(Debug, Default)]
struct Last {
    name: Value,
    connection: Value,
    status: DataStatus,
    list: Option<ShellList>,
}

impl Told {
    /// Nothing yet.
    pub(super) const fn of(what: Watched) -> Self {
        Self { what, hosts: BTreeMap::new(), platforms: BTreeMap::new() }
    }

    /// What is new, each with the host that it is of: `connection`, `removed`, and, where lists are
    /// watched, what a list's own subscription would bring (`snapshot`, `changes`, `synchronized`).
    pub(super) fn lines(&mut self, view: &View) -> Vec<Value> {
        let mut lines = Vec::new();
        for platform in &view.platforms {
            let mut told = platform_json(platform, view.now);
            let whole = told.clone();
            // Which time is left is told with what changed, and is no change.
            if let Some(told) = told.as_object_mut() {
                told.remove("retry_in_ms");
            }
            let address = platform.address.as_str().to_owned();
            if self.platforms.get(&address) != Some(&told) {
                lines.push(json!({ "type": "platform", "platform": whole }));
                self.platforms.insert(address, told);
            }
        }
        let gone = |host: &HostId| !view.hosts.iter().any(|one| one.host == *host);
        for (host, last) in self.hosts.extract_if(.., |host, _| gone(host)) {
            lines.push(json!({ "id": host, "name": last.name, "type": "removed" }));
        }
        for host in &view.hosts {
            self.host(host, view, &mut lines);
        }
        lines
    }

    fn host(&mut self, host: &HostView, view: &View, lines: &mut Vec<Value>) {
        let mut connection = connection_value(&host.connection);
        connection["data_error"] = host.error.as_ref().map(|error| &*error.detail).into();
        let before = self.hosts.get(&host.host);
        let name = name(host);
        if before.is_none_or(|last| last.connection != connection || last.name != name["name"]) {
            let told = json!({ "connection": connection_json(host, view.now) });
            lines.push(line(&name, "connection", told));
        }
        if let Watched::Connections(_) = self.what {
            let last = Last { name: name["name"].clone(), connection, ..Last::default() };
            self.hosts.insert(host.host, last);
            return;
        }
        let held = before.and_then(|last| last.list.as_ref());
        if let Some(list) = &host.list
            && held != Some(list)
        {
            match held.filter(|held| held.cursor().epoch == list.cursor().epoch) {
                Some(held) => {
                    let (rows, removed) = difference(held, list);
                    if !rows.is_empty() || !removed.is_empty() {
                        let seq = list.cursor().seq;
                        let told = json!({ "seq": seq, "rows": rows, "removed": removed });
                        lines.push(line(&name, "changes", told));
                    }
                }
                None => {
                    let told = json!({ "snapshot": list.to_snapshot() });
                    lines.push(line(&name, "snapshot", told));
                }
            }
        }
        let was_live = before.is_some_and(|last| last.status == DataStatus::Live);
        if host.is_live() && !was_live {
            let cursor = host.list.as_ref().map(ShellList::cursor);
            lines.push(line(&name, "synchronized", json!({ "cursor": cursor })));
        }
        let last = Last {
            name: name["name"].clone(),
            connection,
            status: host.status,
            list: host.list.clone(),
        };
        self.hosts.insert(host.host, last);
    }
}

/// The host that a line is of.
fn name(host: &HostView) -> Value {
    let mut name = json!({ "id": host.host, "name": host.name });
    if let Some(env) = host.env {
        name["environment"] = json!(env);
    }
    name
}

fn line(name: &Value, kind: &str, told: Value) -> Value {
    let mut line = json!({ "type": kind });
    for part in [told, name.clone()] {
        if let (Some(line), Value::Object(part)) = (line.as_object_mut(), part) {
            line.extend(part);
        }
    }
    line
}

/// The rows that are new or other, and the threads that have none any more.
fn difference(before: &ShellList, after: &ShellList) -> (Vec<Arc<ShellRow>>, Vec<ThreadId>) {
    let changed = after.rows().filter(|row| before.row(row.id) != Some(*row));
    let gone = before.rows().filter(|row| after.row(row.id).is_none());
    (changed.cloned().collect(), gone.map(|row| row.id).collect())
}

#[cfg(test)]
mod tests {
    use wakeful_link::{ConnectionPhase, Instant};

    use super::{super::super::hosts::testing::host, *};

    fn kinds(lines: &[Value]) -> Vec<&str> {
        lines.iter().map(|line| line["type"].as_str().unwrap()).collect()
    }

    #[test]
    fn each_change_is_told_once_with_its_host() {
        let mut told = Told::of(Watched::Lists);
        let mut view =
            View { now: Instant(0), hosts: vec![host("Site/dev")], platforms: Vec::new() };
        view.hosts[0].status = DataStatus::Synchronizing;
        let first = told.lines(&view);
        assert_eq!(kinds(&first), ["connection", "snapshot"]);
        assert!(first.iter().all(|line| line["name"] == "Site/dev"), "{first:?}");
        assert!(first.iter().all(|line| line["environment"].is_string()), "{first:?}");
        assert!(told.lines(&view).is_empty());
        view.hosts[0].status = DataStatus::Live;
        assert_eq!(kinds(&told.lines(&view)), ["synchronized"]);
        assert!(told.lines(&view).is_empty());
        view.hosts[0].connection.phase = ConnectionPhase::Backoff;
        view.hosts[0].connection.retry_at = Some(Instant(9_000));
        let lost = told.lines(&view);
        assert_eq!(kinds(&lost), ["connection"]);
        assert_eq!(lost[0]["connection"]["retry_in_ms"], 9_000);
        view.now = Instant(1_000);
        assert!(told.lines(&view).is_empty(), "time that passes is no change");
        view.hosts.clear();
        assert_eq!(kinds(&told.lines(&view)), ["removed"]);
        assert!(told.lines(&view).is_empty());
    }
}
