//! A prompt that an environment's control plane keeps until it is delivered.

use std::time::Duration;

use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::{Method, StatusCode};
use tokio::time::Instant;
use wakeful_wire::{
    Code, EnvId, Phase, Problem,
    api::{KeepPrompt, KeptPrompt, PromptState},
};

use super::super::backoff::{Backoff, chance};
use crate::{
    client::{Client, ClientError},
    output::{Output, printable},
};

/// How often a request that may have been lost is sent again: over some twenty seconds.
const TRIES: u32 = 8;
/// The longest pause between two tries.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long the server may hold one question for what became of the prompt.
const HOLD: Duration = Duration::from_secs(20);
/// How often it is asked at most, should it not hold.
const LOOK: Duration = Duration::from_millis(300);
/// How long a delivery is waited for.
const DELIVERY_MAX: Duration = Duration::from_secs(300);
/// How long a failure that was there before the prompt may still show.
const OLD_FAILURE: Duration = Duration::from_secs(3);

/// Hands a prompt over. It is sent again, with its id, where it is not known whether it arrived; the
/// server takes it once.
pub(super) async fn keep(
    client: &Client,
    env: EnvId,
    prompt: &KeepPrompt,
) -> Result<KeptPrompt, ClientError> {
    let env = env.to_string();
    again(patience(), async || client.post(&["api", "environments", &env, "prompts"], prompt).await)
        .await
}

/// Waits until the host has the prompt.
///
/// # Errors
/// It is refused, or does not arrive for minutes: it is then still kept.
pub(super) async fn delivered(
    client: &Client,
    env: EnvId,
    mut kept: KeptPrompt,
    output: Output,
) -> anyhow::Result<KeptPrompt> {
    let bar =
        if output.shows_progress() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    bar.set_style(ProgressStyle::default_spinner());
    bar.enable_steady_tick(Duration::from_millis(120));
    let began = Instant::now();
    let (env, id) = (env.to_string(), kept.client.to_string());
    loop {
        match kept.state {
            PromptState::Delivered => break,
            PromptState::Refused => {
                bar.finish_and_clear();
                let refused = || {
                    let why = "The host refused the prompt and did not say why.";
                    Problem::new(Code::Conflict).detail(why)
                };
                let problem = kept.problem.unwrap_or_else(refused);
                return Err(ClientError::Problem(Box::new(problem)).into());
            }
            PromptState::Waiting | PromptState::Other => {}
        }
        let waited = began.elapsed();
        let failed = matches!(kept.phase, Phase::Failed | Phase::Disabled | Phase::Deleted);
        if waited >= DELIVERY_MAX || (failed && waited >= OLD_FAILURE) {
            bar.finish_and_clear();
            bail!("{}", undelivered(&kept));
        }
        bar.set_message(waiting(&kept));
        let asked = Instant::now();
        let wait = [("wait", HOLD.as_secs().to_string())];
        let path = ["api", "environments", &env, "prompts", &id];
        kept = again(patience(), async || {
            client.json(client.request_with(Method::GET, path, &wait)).await
        })
        .await?;
        if kept.state != PromptState::Delivered {
            tokio::time::sleep_until(asked + LOOK).await;
        }
    }
    bar.finish_and_clear();
    Ok(kept)
}

const fn patience() -> Backoff {
    Backoff::tries(TRIES, PAUSE_MAX)
}

/// Tries until there is an answer, or a refusal, or enough tries.
async fn again<T>(
    mut backoff: Backoff,
    mut ask: impl AsyncFnMut() -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    loop {
        match ask().await {
            Err(error) if is_passing(&error) => match backoff.pause(chance()) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(error),
            },
            answer => return answer,
        }
    }
}

/// Whether the same request may work a moment later: nothing came back, or nothing of the server.
fn is_passing(error: &ClientError) -> bool {
    let on_the_way = |status: u16| (502..=504).contains(&status);
    match error {
        ClientError::Unreachable { .. } | ClientError::Garbled(_) => true,
        ClientError::Problem(problem) => problem.retry || on_the_way(problem.status),
        ClientError::Unexpected { status, .. } => {
            on_the_way(status.as_u16()) || *status == StatusCode::TOO_MANY_REQUESTS
        }
        ClientError::NotSignedIn | ClientError::Address(_) | ClientError::Unreadable { .. } => {
            false
        }
    }
}

fn why(kept: &KeptPrompt) -> String {
    let problem = kept.problem.as_ref();
    let why = problem.map(|problem| problem.detail.as_deref().unwrap_or(&problem.title));
    why.map(|why| format!(": {}", printable(why))).unwrap_or_default()
}

/// What a person who waits wants to read.
fn waiting(kept: &KeptPrompt) -> String {
    let what = match kept.phase {
        Phase::Ready => "delivering…",
        Phase::Suspending => "falling asleep, to be woken again…",
        Phase::Suspended | Phase::Starting | Phase::Frozen => "waking…",
        Phase::Failed | Phase::Disabled | Phase::Publishing | Phase::Deleted => kept.phase.as_str(),
    };
    format!("{what}{}", why(kept))
}

fn undelivered(kept: &KeptPrompt) -> String {
    format!(
        "the environment is {}{}. The prompt is kept, and delivered to thread {} once it is awake",
        kept.phase,
        why(kept),
        kept.thread
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_have_been_lost_is_sent_again() {
        let problem = |code: Code| ClientError::Problem(Box::new(Problem::new(code)));
        let unexpected = |status: u16| ClientError::Unexpected {
            status: StatusCode::from_u16(status).unwrap(),
            text: String::new(),
        };
        let table = [
            (unexpected(502), true),
            (unexpected(503), true),
            (unexpected(429), true),
            (unexpected(500), false),
            (unexpected(404), false),
            (problem(Code::Starting), true),
            (problem(Code::NotFound), false),
            (problem(Code::Conflict), false),
            (ClientError::NotSignedIn, false),
        ];
        for (error, expected) in table {
            assert_eq!(is_passing(&error), expected, "{error}");
        }
    }

    #[tokio::test]
    async fn tries_end() {
        let mut tries = 0;
        let backoff = Backoff::tries(1, PAUSE_MAX);
        let answer: Result<(), _> = again(backoff, async || {
            tries += 1;
            Err(ClientError::Unexpected { status: StatusCode::BAD_GATEWAY, text: String::new() })
        })
        .await;
        assert!(answer.is_err());
        assert_eq!(tries, 2);
    }
}
