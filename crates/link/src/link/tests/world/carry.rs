//! Effects, carried out.

use super::{Happening, Line, World, requests::Arrived, store::Job};
use crate::{Change, Effect};

impl World {
    /// Carries out whatever the link wants.
    pub(super) fn carry(&mut self) {
        while let Some(effect) = self.link.poll_effect() {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Open { at, attempt, way, wake, enter, known } => {
                let host = self.host_at(way.address.as_str());
                self.trace.open(self.time, self.hosts[&at.host].name, attempt, wake);
                self.drawn += 1;
                let line = self.drawn;
                self.lines.insert(line, Line::dialling(at, attempt, host, wake, (enter, known)));
                self.check_lines(at);
                let after = self.way();
                self.later(after, Happening::Dial(line));
            }
            Effect::Send { at, attempt, text } => {
                let name = self.hosts[&at.host].name;
                self.trace.sends(self.time, name, attempt, &text);
                self.send(at, attempt, text);
            }
            Effect::Close { at, attempt } => {
                self.trace.close(self.time, self.hosts[&at.host].name, attempt);
                self.give_up(at, attempt);
            }
            Effect::Ask { ask, way, request } => {
                self.trace.ask(self.time, &request);
                assert!(self.asks.insert(ask), "a request is sent once");
                let user = self.platform.user.clone();
                let address = way.address.as_str().to_owned();
                let after = self.way();
                let sent = self.time;
                self.later(
                    after,
                    Happening::Arrives(Arrived { ask, address, request, user, sent }),
                );
            }
            Effect::Withdraw { ask } => {
                self.asks.remove(&ask);
            }
            Effect::Follow { stream, .. } => {
                self.platform.wanted = Some(stream);
                let after = self.way();
                self.later(after, Happening::Follows(stream));
            }
            Effect::Unfollow { stream, .. } => {
                if self.platform.wanted == Some(stream) {
                    self.platform.wanted = None;
                }
            }
            Effect::LoadShell { at } => self.job(Job::LoadShell(at)),
            Effect::SaveShell { at, shell } => self.job(Job::SaveShell(at, shell)),
            Effect::LoadThread { at, stream } => self.job(Job::LoadThread(at, stream)),
            Effect::SaveThread { at, write, thread, held } => {
                self.job(Job::SaveThread(at, write, thread, held));
            }
            Effect::ForgetThread { at, write, thread } => {
                self.job(Job::ForgetThread(at, write, thread));
            }
            Effect::StoreRefresh { at, renewal, refresh_token } => {
                self.job(Job::StoreRefresh(at, renewal, refresh_token));
            }
            Effect::ForgetRefresh { at } => self.job(Job::ForgetRefresh(at)),
            Effect::Persist { token, entry, drop_credentials } => {
                self.job(Job::Persist(token, entry, drop_credentials));
            }
            Effect::Unpersist { token } => self.job(Job::Unpersist(token)),
            Effect::Clear { token } => self.job(Job::Clear(token)),
            Effect::Tell(change) => self.tell(change),
        }
    }

    fn tell(&mut self, change: Change) {
        match &change {
            Change::Connection(host) => {
                let name = self.hosts[host].name;
                let state = self.state(*host);
                self.trace.connection(self.time, name, &state);
            }
            Change::Shell(host) => {
                self.dirty.insert((*host, None));
                if let Some(shell) = self.link.shell(*host) {
                    self.trace.list(self.time, self.hosts[host].name, shell);
                }
            }
            Change::Thread { host, thread } => {
                self.dirty.insert((*host, Some(*thread)));
                if let Some(state) = self.link.thread(*host, *thread) {
                    self.trace.thread(self.time, self.hosts[host].name, *thread, state);
                }
            }
            Change::Hosts(_)
            | Change::Operation { .. }
            | Change::Platform(_)
            | Change::Configuration(_)
            | Change::Lists
            | Change::Rows(_)
            | Change::Absence { .. }
            | Change::Answered { .. } => {}
        }
        self.told.push(change);
    }
}
