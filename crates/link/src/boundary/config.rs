//! One feed of a host's configuration for everybody in this process.

use std::sync::Arc;

use wakeful_wire::rpc::HostConfig;

/// The newest configuration of a host. It comes with the hello and with each change on the same
/// socket, always whole: nobody subscribes to it, there is nothing to replay, and no reader can
/// hold anybody up. A reader that was slow finds the newest one and has missed nothing, deletions
/// included.
///
/// It is kept while there is no session, so that what was known can still be shown.
#[derive(Debug, Default)]
pub struct ConfigFeed {
    latest: Option<Arc<HostConfig>>,
    /// One more with each change. Not the host's revision, which begins anew with each of its
    /// starts.
    version: u64,
}

/// How far one reader of a [`ConfigFeed`] is.
#[derive(Debug, Clone, Default)]
pub struct ConfigReader {
    seen: u64,
}

impl ConfigFeed {
    /// A session is ready, with this configuration. It is taken whatever its revision is: the host
    /// may have been started anew.
    pub fn handle_ready(&mut self, config: HostConfig) {
        if self.latest.as_deref() != Some(&config) {
            self.replace(config);
        }
    }

    /// The configuration has changed during a session. One that is not newer changes nothing.
    pub fn handle_config(&mut self, config: HostConfig) {
        if self.latest.as_ref().is_none_or(|latest| latest.revision < config.revision) {
            self.replace(config);
        }
    }

    fn replace(&mut self, config: HostConfig) {
        self.latest = Some(Arc::new(config));
        self.version += 1;
    }

    /// The newest configuration; none before the first session.
    #[must_use]
    pub const fn latest(&self) -> Option<&Arc<HostConfig>> {
        self.latest.as_ref()
    }

    /// The newest configuration, if this reader has not had it.
    pub fn read(&self, reader: &mut ConfigReader) -> Option<Arc<HostConfig>> {
        if reader.seen == self.version {
            return None;
        }
        reader.seen = self.version;
        self.latest.clone()
    }
}

#[cfg(test)]
mod tests {
    use wakeful_wire::rpc::AgentView;

    use super::*;

    fn config(revision: u64, agents: &[&str]) -> HostConfig {
        let agents =
            agents.iter().map(|name| AgentView { name: (*name).to_owned(), title: None }).collect();
        HostConfig { revision, agents, default_agent: None }
    }

    #[test]
    fn every_reader_gets_the_newest_configuration_once() {
        let mut feed = ConfigFeed::default();
        let (mut one, mut other) = (ConfigReader::default(), ConfigReader::default());
        assert_eq!(feed.read(&mut one), None);
        feed.handle_ready(config(1, &["shell"]));
        let (first, second) = (feed.read(&mut one).unwrap(), feed.read(&mut other).unwrap());
        assert!(Arc::ptr_eq(&first, &second), "they share one value");
        assert_eq!(feed.read(&mut one), None);
    }

    #[test]
    fn a_slow_reader_finds_the_whole_value_and_so_the_deletions_that_it_missed() {
        let mut feed = ConfigFeed::default();
        let mut slow = ConfigReader::default();
        feed.handle_ready(config(1, &["shell", "opencode"]));
        assert_eq!(*feed.read(&mut slow).unwrap(), config(1, &["shell", "opencode"]));
        for revision in 2..1_000 {
            feed.handle_config(config(revision, &["shell", "opencode", "passing"]));
        }
        feed.handle_config(config(1_000, &["shell"]));
        assert_eq!(*feed.read(&mut slow).unwrap(), config(1_000, &["shell"]));
        assert_eq!(feed.read(&mut slow), None);
    }

    #[test]
    fn within_a_session_an_older_revision_changes_nothing() {
        let mut feed = ConfigFeed::default();
        let mut reader = ConfigReader::default();
        feed.handle_ready(config(5, &["shell"]));
        assert!(feed.read(&mut reader).is_some());
        for revision in [4, 5] {
            feed.handle_config(config(revision, &[]));
        }
        assert_eq!(feed.read(&mut reader), None);
        assert_eq!(feed.latest().unwrap().revision, 5);
    }

    #[test]
    fn a_host_that_was_started_anew_counts_from_the_beginning() {
        let mut feed = ConfigFeed::default();
        let mut reader = ConfigReader::default();
        feed.handle_ready(config(7, &["shell"]));
        assert!(feed.read(&mut reader).is_some());
        feed.handle_ready(config(1, &["opencode"]));
        assert_eq!(feed.read(&mut reader).unwrap().revision, 1);
        feed.handle_ready(config(1, &["opencode"]));
        assert_eq!(feed.read(&mut reader), None, "it is the same as before");
    }
}
