//! The environments of platforms: taken as a set, as their list says, for one user at a time.

use std::collections::{BTreeMap, BTreeSet};

use wakeful_wire::{EnvId, HostId, UserName};

use super::{Account, Change, Entry, HOSTS_MAX, Refusal, Registry, Slot, operation::Wish};
use crate::route::Address;

impl Registry {
    /// Takes a platform's list of environments, whole, for the user who is signed in there.
    ///
    /// Those that are new are registered, those that are called otherwise get their label, and
    /// those that the list has no longer are torn down with everything that is kept of them, as are
    /// all of another user. Whether an environment is enabled or paused is a person's, and stays. A
    /// host that was paired and is in the list is the environment from now on; its own credentials
    /// are deleted. A list that could not be read, or not whole, is not handed in.
    ///
    /// What does not fit below [`HOSTS_MAX`], and what another platform already has, is left out and
    /// told by [`Change::LeftOut`].
    ///
    /// # Errors
    /// [`Refusal::NotRunning`].
    pub fn reconcile(
        &mut self,
        platform: &Address,
        user: &UserName,
        list: Vec<(EnvId, String)>,
    ) -> Result<(), Refusal> {
        self.running()?;
        self.accounts.insert(platform.clone(), user.clone());
        let account = Account { platform: platform.clone(), user: user.clone() };
        let listed: BTreeMap<HostId, (EnvId, String)> =
            list.into_iter().map(|(env, label)| (env.into(), (env, label))).collect();
        self.give_up(platform, |host| listed.contains_key(&host));
        let (mut over_limit, mut contested) = (0, BTreeSet::new());
        for (host, (env, label)) in listed {
            let known = self.slots.get(&host);
            let holder = known.and_then(Slot::claim);
            if holder.is_some_and(|holder| holder.platform != *platform) {
                contested.insert(host);
            } else if known.is_none() && self.slots.len() >= HOSTS_MAX {
                over_limit += 1;
            } else {
                let entry = Entry::environment(account.clone(), env, label).bounded();
                let slot = self.slots.entry(host).or_insert_with(|| Slot::new(host));
                slot.wish(Wish::Present(Box::new(entry)), &mut self.shared);
            }
        }
        if over_limit > 0 || !contested.is_empty() {
            let platform = Some(platform.clone());
            self.shared.publish(Change::LeftOut { platform, over_limit, contested });
        }
        Ok(())
    }

    /// The user has signed out of a platform. Its environments go with everything that is kept of
    /// them; paired hosts and other platforms are not touched.
    ///
    /// # Errors
    /// [`Refusal::NotRunning`].
    pub fn sign_out(&mut self, platform: &Address) -> Result<(), Refusal> {
        self.running()?;
        self.accounts.remove(platform);
        self.give_up(platform, |_| false);
        Ok(())
    }

    /// Who is signed in at a platform.
    #[must_use]
    pub fn user(&self, platform: &Address) -> Option<&UserName> {
        self.accounts.get(platform)
    }

    fn give_up(&mut self, platform: &Address, is_listed: impl Fn(HostId) -> bool) {
        let gone: Vec<HostId> = self
            .slots
            .iter()
            .filter(|(host, slot)| {
                !is_listed(**host) && slot.claim().is_some_and(|one| one.platform == *platform)
            })
            .map(|(host, _)| *host)
            .collect();
        for host in gone {
            if let Some(slot) = self.slots.get_mut(&host) {
                slot.wish(Wish::Absent, &mut self.shared);
            }
            self.forget_if_vacant(host);
        }
    }
}
