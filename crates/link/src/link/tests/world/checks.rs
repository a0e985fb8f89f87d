//! What must hold after each step.

use wakeful_wire::HostId;

use super::World;
use crate::{ConnectionPhase, DataStatus, effect::At};

impl World {
    /// A socket is about to be opened: there is no other, or it replaces one that is doubted.
    pub(super) fn check_lines(&self, at: At) {
        let lines = self.open_lines(at.host);
        assert!(
            lines.iter().all(|(held, _)| *held == at),
            "a socket of an earlier scope: {lines:?}"
        );
        let state = self.state(at.host);
        let most = if state.verifying { 2 } else { 1 };
        assert!(lines.len() <= most, "{} sockets of one host: {state:?}", lines.len());
    }

    pub(super) fn check(&mut self) {
        let hosts: Vec<HostId> = self.hosts.keys().copied().collect();
        for host in &hosts {
            self.check_host(*host);
        }
        if self.steps.is_multiple_of(self.check_each) {
            self.check_data();
        }
    }

    fn check_host(&self, host: HostId) {
        let name = self.hosts[&host].name;
        let Some(state) = self.link.connection(host) else {
            assert_eq!(self.open_lines(host).len(), 0, "{name}: a socket without a scope");
            return;
        };
        let lines = self.open_lines(host).len();
        let allowed = match state.phase {
            ConnectionPhase::Connected if state.verifying => 1..=2,
            ConnectionPhase::Connected => 1..=1,
            ConnectionPhase::Connecting => 0..=1,
            ConnectionPhase::Available
            | ConnectionPhase::Offline
            | ConnectionPhase::Backoff
            | ConnectionPhase::Blocked
            | ConnectionPhase::Asleep => 0..=0,
        };
        assert!(allowed.contains(&lines), "{name}: {lines} sockets: {state:?}");
        let retries = state.phase == ConnectionPhase::Backoff;
        assert_eq!(state.retry_at.is_some(), retries, "{name}: {state:?}");
        let connected = state.phase == ConnectionPhase::Connected;
        if let Some(shell) = self.link.shell(host) {
            assert!(
                connected || shell.status != DataStatus::Live,
                "{name}: live without a session"
            );
            assert!(connected || !shell.verified, "{name}: confirmed without a session");
            assert!(!shell.verified || shell.generation > 0, "{name}: confirmed as number nought");
        }
    }

    /// Whatever has changed since the last check is what the hosts wrote.
    pub(super) fn check_data(&mut self) {
        for (host, thread) in std::mem::take(&mut self.dirty) {
            let served = &self.hosts[&host];
            match thread {
                None => {
                    let list = self.link.shell(host).and_then(|shell| shell.list.as_ref());
                    if let Some(list) = list {
                        served.log.check_list(list.cursor(), list.rows());
                    }
                }
                Some(thread) => {
                    let Some(state) = self.link.thread(host, thread) else { continue };
                    let connected = self.phase(host) == ConnectionPhase::Connected;
                    assert!(
                        connected || state.status != DataStatus::Live,
                        "live without a session"
                    );
                    if let Some(held) = &state.held {
                        served.log.check_thread(held);
                    }
                }
            }
        }
    }

    /// Everything that is shown is live and is what the hosts have, once no more is under way.
    pub(in crate::link::tests) fn check_all_is_shown(&self, host: HostId) {
        let served = &self.hosts[&host];
        let shell = self.link.shell(host).expect("a list");
        assert_eq!(shell.status, DataStatus::Live, "{}: {:?}", served.name, self.state(host));
        let list = shell.list.as_ref().expect("rows");
        let head = served.log.head();
        served.log.check_list(head, list.rows());
        for thread in served.log.threads() {
            let Some(state) = self.link.thread(host, thread) else { continue };
            let now = served.log.thread(thread).expect("a known thread");
            let gone = state.status == DataStatus::Deleted;
            if now.deleted || gone {
                assert!(gone && served.log.was_deleted(thread), "{:?}", state.status);
                continue;
            }
            assert_eq!(state.status, DataStatus::Live, "{:?}", state.error);
            let held = state.held.as_ref().expect("something is held");
            assert_eq!(held.detail.thread, *now, "all of it");
            assert_eq!(held.cursor.epoch, head.epoch);
            served.log.check_thread(held);
        }
    }

    /// Whatever is stored is what a host wrote up to the place that is stored with it.
    pub(in crate::link::tests) fn check_store(&self) {
        for (host, cached) in &self.store.lists {
            if !cached.partial {
                let log = &self.hosts[host].log;
                log.check_list(cached.snapshot.cursor, cached.snapshot.rows.iter());
            }
        }
        for ((host, _), held) in &self.store.threads {
            self.hosts[host].log.check_thread(held);
        }
    }
}
