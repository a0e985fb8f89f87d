//! `send`: a prompt for an agent.
//!
//! To an environment it goes by its control plane, which keeps it, wakes the environment and
//! delivers it; to a paired host directly. On both ways it has an id that is drawn here and sent
//! with every try, so it is taken once.

mod direct;
mod kept;

use std::{
    io::{self, Read as _},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use uuid::Uuid;
use wakeful_wire::{
    api::KeepPrompt,
    rpc::{Call, ClientId, Prompt, ThreadCreate, ThreadId, ThreadPrompt},
};

use super::{
    args::SendArgs,
    attach::{AttachArgs, attach},
    threads,
    which::{self, Chosen},
};
use crate::{
    client::Client,
    connect::Reached,
    output::{Output, to_stderr},
};

/// The longest prompt, in bytes.
const TEXT_MAX: usize = 128 * 1024;

/// `wakeful send`.
pub(super) async fn send(
    url: Option<&str>,
    client: impl FnOnce() -> anyhow::Result<Client>,
    options: SendArgs,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let text = text(&options.text, io::stdin())?;
    let chosen = which::choose(client, &options.env).await?;
    let thread = match &options.thread {
        Some(thread) => {
            let place = (chosen.id(), chosen.name());
            Some(threads::find_unlisted(url, place, &options.env, thread).await?)
        }
        None => None,
    };
    let goes_on = options.wait || options.attach;
    // What the server keeps and delivers needs no connection of ours.
    let reached = match &chosen {
        Chosen::Environment { .. } if !goes_on => None,
        Chosen::Environment { .. } | Chosen::Paired(_) => Some(chosen.reach(url).await?),
    };
    let sending = Sending { url, chosen: &chosen, reached: reached.as_ref(), output };
    let ended = sending.run(options, text, thread).await;
    if let Some(reached) = reached {
        reached.client.close().await;
    }
    ended
}

/// A prompt on its way.
struct Sending<'a> {
    url: Option<&'a str>,
    chosen: &'a Chosen,
    /// There for a paired host, and to follow the thread afterwards.
    reached: Option<&'a Reached>,
    output: Output,
}

impl Sending<'_> {
    async fn run(
        &self,
        options: SendArgs,
        text: String,
        thread: Option<ThreadId>,
    ) -> anyhow::Result<ExitCode> {
        let output = self.output;
        let (wait, goes_on) = (options.wait, options.wait || options.attach);
        let (thread, sent) = self.hand_over(options, text, thread).await?;
        match (output.json, goes_on) {
            (true, true) => output.line(&sent.to_string())?,
            (_, false) => output.print(&sent, |_| thread.to_string())?,
            // What happens in the thread is what is asked for.
            (false, true) => to_stderr(&format!("thread {thread}")),
        }
        let Some(reached) = self.reached.filter(|_| goes_on) else {
            return Ok(ExitCode::SUCCESS);
        };
        let how = AttachArgs { wake: true, until_idle: wait, ..AttachArgs::default() };
        attach(output, self.url, reached, Some(&thread.to_string()), &how).await
    }

    /// Brings the prompt to its host, and says what became of it.
    async fn hand_over(
        &self,
        options: SendArgs,
        text: String,
        thread: Option<ThreadId>,
    ) -> anyhow::Result<(ThreadId, Value)> {
        let id = ClientId::from_uuid(fresh()?);
        match (self.chosen, self.reached) {
            (Chosen::Environment { client, env, .. }, _) => {
                let SendArgs { agent, title, directory, .. } = options;
                let prompt =
                    KeepPrompt { client: id, text, thread, agent, project: directory, title };
                let kept = kept::keep(client, env.id, &prompt).await?;
                let kept = kept::delivered(client, env.id, kept, self.output).await?;
                Ok((kept.thread, json!(kept)))
            }
            (Chosen::Paired(host), Some(reached)) => {
                let (thread, call) = call(options, thread, Prompt::text(id, text))?;
                let taken = direct::call(reached, &call).await?;
                let sent = json!({
                    "client": id, "thread": thread, "state": "delivered", "seq": taken.seq,
                    "host": host.name,
                });
                Ok((thread, sent))
            }
            (Chosen::Paired(host), None) => bail!("{} is not connected to", host.name),
        }
    }
}

/// The thread and the call that hands the prompt to a host.
fn call(
    options: SendArgs,
    thread: Option<ThreadId>,
    prompt: Prompt,
) -> anyhow::Result<(ThreadId, Call)> {
    if let Some(thread) = thread {
        return Ok((thread, Call::ThreadPrompt(ThreadPrompt { thread, prompt })));
    }
    let thread = ThreadId::from_uuid(fresh()?);
    let create = ThreadCreate {
        thread,
        parent: None,
        project: options.directory.unwrap_or_default(),
        agent: options.agent,
        title: options.title,
        prompt: Some(prompt),
    };
    Ok((thread, Call::ThreadCreate(create)))
}

/// The prompt as it was given, or all of the input for `-`, without the line end behind it.
fn text(given: &str, input: impl io::Read) -> anyhow::Result<String> {
    let mut text = String::new();
    if given == "-" {
        input
            .take(TEXT_MAX as u64 + 2)
            .read_to_string(&mut text)
            .context("standard input cannot be read as text")?;
        if text.ends_with('\n') {
            text.pop();
        }
    } else {
        given.clone_into(&mut text);
    }
    if text.trim().is_empty() {
        bail!("the prompt is empty");
    }
    if text.len() > TEXT_MAX {
        bail!("the prompt is longer than {TEXT_MAX} bytes: upload it as a file and name that");
    }
    Ok(text)
}

fn fresh() -> anyhow::Result<Uuid> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).context("this system gives no random numbers")?;
    Ok(uuid::Builder::from_random_bytes(bytes).into_uuid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_what_was_given_or_all_of_the_input() {
        let read = |given: &str, input: &str| text(given, input.as_bytes()).ok();
        assert_eq!(read("Fix it\n", "other").as_deref(), Some("Fix it\n"));
        assert_eq!(read("-", "one\ntwo\n").as_deref(), Some("one\ntwo"));
        let longest = "x".repeat(TEXT_MAX);
        assert_eq!(read("-", &format!("{longest}\n")), Some(longest.clone()));
        assert_eq!(read(&longest, "").as_deref(), Some(longest.as_str()));
        let table = ["", " \n", "\n\n", &format!("{longest}xx"), &format!("{longest}é")];
        for input in table {
            assert_eq!(read("-", input), None, "{} bytes", input.len());
        }
        assert_eq!(read(&format!("{longest}x"), ""), None);
        assert!(text("-", &[0xff, 0xfe][..]).is_err(), "no UTF-8");
    }

    #[test]
    fn a_paired_host_gets_a_new_thread_or_a_prompt_for_one() {
        let options = || SendArgs {
            env: "lab".to_owned(),
            text: "x".to_owned(),
            thread: None,
            agent: Some("coder".to_owned()),
            title: None,
            directory: Some("web".to_owned()),
            wait: false,
            attach: false,
        };
        let prompt = Prompt::text(ClientId::from_uuid(fresh().unwrap()), "x");
        let (thread, made) = call(options(), None, prompt.clone()).unwrap();
        let Call::ThreadCreate(create) = made else { panic!("{made:?}") };
        assert_eq!((create.thread, create.project.as_str()), (thread, "web"));
        assert_eq!((create.agent.as_deref(), create.prompt), (Some("coder"), Some(prompt.clone())));
        let (same, made) = call(options(), Some(thread), prompt.clone()).unwrap();
        assert_eq!(same, thread);
        assert_eq!(made, Call::ThreadPrompt(ThreadPrompt { thread, prompt }));
    }
}
