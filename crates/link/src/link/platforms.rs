//! Platforms: which environments there are, and what they are doing.

use wakeful_wire::{EnvId, HostId, Phase, UserName, api::Project};

use super::Link;
use crate::{
    Failure, Instant,
    effect::{AskId, Change, Effect, Way},
    http::{Proof, Reply, Request, Side},
    platform::{Action, Listed, Platform, PlatformState, StreamId},
    registry::{Account, Entry, ScopeId, Target},
    route::Address,
    supervisor::Input,
};

/// A platform that is followed.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) platform: Platform,
    user: UserName,
}

/// So many streams, as a power of two, one sign-in at a platform may see.
const STREAM_BITS: u32 = 24;

/// Requests to a platform belong to no scope.
const NO_SCOPE: ScopeId = ScopeId(u64::MAX);

impl Link {
    pub(super) fn follow_platform(&mut self, now: Instant, account: Account) {
        self.drawn += 1;
        let first = StreamId(self.drawn << STREAM_BITS);
        let mut platform = Platform::new(self.chance.split()).numbered_from(first);
        platform.handle_network(now, self.network);
        platform.handle_wanted(now);
        self.platforms.insert(account.platform, Followed { platform, user: account.user });
    }

    /// Nobody is signed in at a platform any more, or somebody else is: what is under way for
    /// whoever was is given up.
    pub(super) fn leave_platform(&mut self, now: Instant, address: &Address) {
        let Some(mut before) = self.platforms.remove(address) else { return };
        before.platform.handle_unwanted();
        while let Some(action) = before.platform.poll_action() {
            self.carry_platform(now, address, action);
        }
        let of_platform = |(number, (platform, _)): (&u64, &(Address, StreamId))| {
            (platform == address).then_some(*number)
        };
        for number in self.lists.iter().filter_map(of_platform).collect::<Vec<_>>() {
            self.lists.remove(&number);
            let ask = AskId { scope: NO_SCOPE, number };
            self.effects.push_back(Effect::Withdraw { ask });
        }
    }

    pub(super) fn next_of_platforms(&mut self) -> Option<(Address, Action)> {
        self.platforms.iter_mut().find_map(|(address, followed)| {
            followed.platform.poll_action().map(|action| (address.clone(), action))
        })
    }

    pub(super) fn carry_platform(&mut self, now: Instant, address: &Address, action: Action) {
        match action {
            Action::Follow(stream) => {
                self.effects.push_back(Effect::Follow { platform: address.clone(), stream });
            }
            Action::Unfollow(stream) => {
                self.effects.push_back(Effect::Unfollow { platform: address.clone(), stream });
            }
            Action::List(stream) => self.ask_for_list(address, stream),
            Action::Listed(listed) => {
                self.listed(now, address, listed);
                self.tell(Change::Platform(address.clone()));
            }
            Action::Phase(env, phase) => {
                let host = HostId::from(env);
                self.with(now, host, |link| link.supervise(now, Input::Environment(phase)));
            }
            Action::Changed => {
                let following = self.platforms.get(address).is_some_and(|followed| {
                    matches!(followed.platform.state(), PlatformState::Following)
                });
                if following {
                    self.signal_platform(now, address, None, &Input::Reachable);
                }
                self.tell(Change::Platform(address.clone()));
            }
        }
    }

    fn ask_for_list(&mut self, address: &Address, stream: StreamId) {
        self.drawn += 1;
        self.lists.insert(self.drawn, (address.clone(), stream));
        let ask = AskId { scope: NO_SCOPE, number: self.drawn };
        let way = Way { address: address.clone(), platform: Some(address.clone()) };
        let request = Request::get("/api/projects", Proof::None);
        self.effects.push_back(Effect::Ask { ask, way, request });
    }

    /// A request has been answered, or has failed.
    pub fn handle_reply(&mut self, now: Instant, ask: AskId, reply: Reply) {
        if ask.scope == NO_SCOPE {
            if let Some((address, stream)) = self.lists.remove(&ask.number) {
                let listed = reply.read::<Vec<Project>>(Side::Platform).map(listed);
                if let Some(followed) = self.platforms.get_mut(&address) {
                    followed.platform.handle_listed(now, stream, listed);
                }
            }
            self.settle(now);
        } else if let Some(at) = self.host_of(ask.scope) {
            self.with_scope(now, at, |link| link.handle_reply(now, ask.number, reply));
        }
    }

    fn listed(&mut self, now: Instant, address: &Address, listed: Vec<Listed>) {
        let Some(followed) = self.platforms.get(address) else { return };
        let user = followed.user.clone();
        let phases: Vec<_> = listed.iter().map(|one| (one.env, one.phase)).collect();
        let list = listed.into_iter().map(|one| (one.env, one.label)).collect();
        // Not running any more: then nobody needs the list.
        let _ended = self.registry.reconcile(address, &user, list);
        for (env, phase) in phases {
            let host = HostId::from(env);
            self.with(now, host, |link| link.supervise(now, Input::Environment(phase)));
        }
    }

    /// What is known of an environment's phase.
    pub(super) fn phase_of(&self, entry: &Entry) -> Option<Phase> {
        match &entry.target {
            Target::Environment { account, env } => {
                self.platforms.get(&account.platform)?.platform.phase(*env)
            }
            Target::Paired { .. } => None,
        }
    }

    /// Tells every host of a platform something, but for one.
    pub(super) fn signal_platform(
        &mut self,
        now: Instant,
        platform: &Address,
        but: Option<HostId>,
        input: &Input,
    ) {
        let of_platform = |entry: &&Entry| {
            entry.target.account().is_some_and(|account| account.platform == *platform)
        };
        let hosts: Vec<HostId> =
            self.registry.entries().filter(of_platform).map(|entry| entry.host).collect();
        for host in hosts {
            if Some(host) != but {
                self.with(now, host, |link| link.supervise(now, input.clone()));
            }
        }
    }

    /// The stream of a platform is open.
    pub fn handle_events_opened(&mut self, now: Instant, platform: &Address, stream: StreamId) {
        if let Some(followed) = self.platforms.get_mut(platform) {
            followed.platform.handle_opened(now, stream);
        }
        self.settle(now);
    }

    /// Something came by the stream of a platform, if only to say that it lives.
    pub fn handle_events_heard(&mut self, now: Instant, platform: &Address, stream: StreamId) {
        if let Some(followed) = self.platforms.get_mut(platform) {
            followed.platform.handle_heard(now, stream);
        }
    }

    /// The stream of a platform says what an environment is doing.
    pub fn handle_environment(
        &mut self,
        now: Instant,
        platform: &Address,
        stream: StreamId,
        env: EnvId,
        phase: Phase,
    ) {
        if let Some(followed) = self.platforms.get_mut(platform) {
            followed.platform.handle_environment(now, stream, env, phase);
        }
        self.settle(now);
    }

    /// The stream of a platform has ended, or could not be opened.
    pub fn handle_events_ended(
        &mut self,
        now: Instant,
        platform: &Address,
        stream: StreamId,
        failure: Failure,
    ) {
        if let Some(followed) = self.platforms.get_mut(platform) {
            followed.platform.handle_ended(now, stream, failure);
        }
        self.settle(now);
    }

    /// What the connection to a platform is doing.
    #[must_use]
    pub fn platform(&self, address: &Address) -> Option<&PlatformState> {
        self.platforms.get(address).map(|followed| followed.platform.state())
    }

    /// The environments that a platform has, once its list was read on the present stream. The
    /// entries of new ones follow when they are kept.
    #[must_use]
    pub fn listed_by(&self, address: &Address) -> Option<Vec<EnvId>> {
        self.platforms.get(address)?.platform.listed().map(Iterator::collect)
    }

    /// The platforms that are followed.
    pub fn platforms(&self) -> impl Iterator<Item = &Address> {
        self.platforms.keys()
    }
}

fn listed(projects: Vec<Project>) -> Vec<Listed> {
    let of_project = |project: Project| {
        let title = project.title;
        project.environments.into_iter().map(move |environment| Listed {
            env: environment.id,
            label: format!("{title}/{}", environment.slug),
            phase: environment.phase,
        })
    };
    projects.into_iter().flat_map(of_project).collect()
}
