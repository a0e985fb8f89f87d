//! What a call means for threads.
//!
//! Only what a person may ask for is a call. Whatever an agent reports, the host's own start and
//! its ticks never come over a socket, and no call makes a deleted thread anew.

use wakeful_wire::{
    Code, Problem,
    rpc::{Call, HostConfig, ThreadCreate, ThreadForget},
    template::SHELL_AGENT,
};

use crate::thread::command::{Command, Create, Place};

/// The command of a call.
///
/// # Errors
/// If the call is no command, or names an agent that the host does not have.
pub(super) fn of(call: Call, config: &HostConfig) -> Result<Command, Problem> {
    Ok(match call {
        Call::ThreadCreate(create) => Command::Create(created(create, config)?),
        Call::ThreadRename(call) => Command::Rename { thread: call.thread, title: call.title },
        Call::ThreadPin(call) => Command::Pin { thread: call.thread, pinned: call.pinned },
        Call::ThreadSnooze(call) => Command::Snooze { thread: call.thread, until: call.until },
        Call::ThreadSettle(call) => Command::Settle { thread: call.thread, settled: call.settled },
        Call::ThreadArchive(call) => Command::Archive { thread: call.thread },
        Call::ThreadRestore(call) => Command::Restore { thread: call.thread },
        Call::ThreadDelete(call) => Command::Delete { thread: call.thread },
        Call::ThreadPrompt(call) => Command::Prompt { thread: call.thread, prompt: call.prompt },
        Call::ThreadUnqueue(call) => Command::Unqueue { thread: call.thread, client: call.client },
        Call::ThreadRelease(call) => Command::Release { thread: call.thread },
        Call::ThreadCancel(call) => Command::Cancel { thread: call.thread, turn: call.turn },
        Call::ThreadAnswer(call) => Command::Answer {
            thread: call.thread,
            request: call.request,
            option: call.option,
            remember: call.remember,
        },
        Call::ThreadForget(ThreadForget::Thread { thread, key }) => {
            Command::Forget { place: Place::Thread(thread), key }
        }
        Call::ThreadForget(ThreadForget::Project { project, agent, key }) => {
            Command::Forget { place: Place::Project { project, agent }, key }
        }
        Call::ThreadMode(call) => Command::SetMode { thread: call.thread, mode: call.mode },
        Call::ShellSubscribe(_)
        | Call::ThreadSubscribe(_)
        | Call::SessionSubscribe(_)
        | Call::Activity(_)
        | Call::SessionRevoke(_)
        | Call::SessionRevokeOthers(_) => return Err(Problem::new(Code::Unsupported)),
    })
}

fn created(create: ThreadCreate, config: &HostConfig) -> Result<Create, Problem> {
    let default = || config.default_agent.clone().unwrap_or_else(|| SHELL_AGENT.to_owned());
    let agent = create.agent.unwrap_or_else(default);
    if !config.agents.iter().any(|known| known.name == agent) {
        let known: Vec<_> = config.agents.iter().map(|agent| agent.name.as_str()).collect();
        let shown: String = agent.chars().take(64).collect();
        return Err(Problem::new(Code::Invalid)
            .field("agent")
            .detail(format!("There is no agent `{shown}` here. There is: {}.", known.join(", "))));
    }
    Ok(Create {
        thread: Some(create.thread),
        parent: create.parent,
        project: create.project,
        agent,
        title: create.title,
        prompt: create.prompt,
        anew: false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wakeful_wire::rpc::{AgentView, ThreadId};

    use super::*;

    fn config() -> HostConfig {
        let agent = |name: &str| AgentView { name: name.to_owned(), title: None };
        HostConfig {
            revision: 1,
            agents: vec![agent("helper"), agent("shell")],
            default_agent: Some("helper".to_owned()),
        }
    }

    const THREAD: &str = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e50";

    #[test]
    fn a_thread_gets_the_default_agent_and_never_comes_back_from_the_dead() {
        let call = Call::read("thread.create", json!({ "thread": THREAD, "anew": true })).unwrap();
        let Command::Create(create) = of(call, &config()).unwrap() else { panic!("no thread") };
        let thread: ThreadId = THREAD.parse().unwrap();
        assert_eq!((create.thread, create.agent.as_str()), (Some(thread), "helper"));
        assert!(!create.anew);
    }

    #[test]
    fn an_agent_that_is_not_there_is_refused_with_those_that_are() {
        let params = json!({ "thread": THREAD, "agent": "ghost" });
        let call = Call::read("thread.create", params).unwrap();
        let problem = of(call, &config()).unwrap_err();
        assert_eq!(problem.code, Code::Invalid);
        assert!(problem.detail.unwrap().contains("helper, shell"));
    }
}
