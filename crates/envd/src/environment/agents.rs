//! The agents of a host.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use wakeful_wire::{
    rpc::{AgentView, HostConfig},
    template::Agent as Named,
};

use crate::agent::{AcpAgent, Agent, AgentLimits, AgentSpec, SHELL, ShellAgent, Surroundings};

/// Agents by the names that threads ask for.
pub(crate) type Agents = BTreeMap<String, Arc<dyn Agent>>;

/// The built-in shell and those that are named, of which one named `shell` stands in its place. A
/// turn that is longer than `turn` is cancelled: it would not keep its environment awake any more.
pub(crate) fn agents(
    named: &BTreeMap<String, Named>,
    surroundings: &Surroundings,
    turn: Duration,
) -> Agents {
    let limits = AgentLimits { turn, ..AgentLimits::default() };
    let shell = ShellAgent::new(surroundings.clone(), limits.clone());
    let mut agents: Agents =
        BTreeMap::from([(SHELL.to_owned(), Arc::new(shell) as Arc<dyn Agent>)]);
    for (name, agent) in named {
        let spec = AgentSpec { name: name.clone(), command: agent.command.clone() };
        let acp = AcpAgent::new(spec, surroundings.clone(), limits.clone());
        agents.insert(name.clone(), Arc::new(acp));
    }
    agents
}

/// What clients are told of them. A default that is not among them is the shell.
pub(crate) fn config(named: &BTreeMap<String, Named>, default: Option<&str>) -> HostConfig {
    let title = |agent: &Named| agent.title.clone();
    let mut titles: BTreeMap<&str, Option<String>> = BTreeMap::from([(SHELL, None)]);
    titles.extend(named.iter().map(|(name, agent)| (name.as_str(), title(agent))));
    let default = default.filter(|name| titles.contains_key(name)).unwrap_or(SHELL).to_owned();
    let view = |(name, title): (&str, _)| AgentView { name: name.to_owned(), title };
    HostConfig {
        revision: 1,
        agents: titles.into_iter().map(view).collect(),
        default_agent: Some(default),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(all: &[(&str, Option<&str>)]) -> BTreeMap<String, Named> {
        let agent = |title: &Option<&str>| Named {
            command: "true".to_owned(),
            title: title.map(str::to_owned),
        };
        all.iter().map(|(name, title)| ((*name).to_owned(), agent(title))).collect()
    }

    #[test]
    fn clients_are_told_of_every_agent_in_order_and_of_one_that_is_there_as_default() {
        let named = named(&[("zed", None), ("coder", Some("The coder"))]);
        let told = config(&named, Some("coder"));
        let names: Vec<_> = told.agents.iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names, ["coder", "shell", "zed"]);
        assert_eq!(told.agents[0].title.as_deref(), Some("The coder"));
        assert_eq!(told.default_agent.as_deref(), Some("coder"));
        for absent in [None, Some("ghost")] {
            assert_eq!(config(&named, absent).default_agent.as_deref(), Some("shell"));
        }
    }

    #[test]
    fn a_named_shell_stands_in_place_of_the_built_in_one() {
        let scratch = tempfile::tempdir().unwrap();
        let surroundings = Surroundings {
            program: "/proc/self/exe".into(),
            env: Vec::new(),
            workspace: scratch.path().into(),
            scratch: scratch.path().into(),
        };
        let built_in = agents(&BTreeMap::new(), &surroundings, Duration::from_secs(60));
        assert!(format!("{:?}", built_in["shell"]).starts_with("ShellAgent"));
        let named = named(&[("shell", Some("A better one"))]);
        let replaced = agents(&named, &surroundings, Duration::from_secs(60));
        assert_eq!(replaced.len(), 1);
        assert!(format!("{:?}", replaced["shell"]).starts_with("AcpAgent"));
        assert_eq!(config(&named, None).agents.len(), 1);
    }
}
