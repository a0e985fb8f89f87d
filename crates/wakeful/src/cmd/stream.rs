//! `logs`, `events` and `openapi`: what is passed on as it comes.

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::{Context as _, bail};
use futures::StreamExt as _;
use reqwest::{Method, header};
use serde_json::Value;
use wakeful_client::http::sse;
use wakeful_wire::api::Environment;

use super::{args::LogsArgs, select};
use crate::{
    client::Client,
    output::{Output, printable},
};

/// `wakeful logs`.
pub(super) async fn logs(
    client: &Client,
    options: LogsArgs,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let env = select::find_environment(client, &options.env).await?;
    let mut query = Vec::new();
    if let Some(surface) = &options.surface {
        query.push(("surface", surface.clone()));
    }
    if let Some(tail) = options.tail {
        query.push(("tail", tail.to_string()));
    }
    if options.follow {
        query.push(("follow", "true".to_owned()));
    }
    let id = env.id.to_string();
    let request = client
        .request_with(Method::GET, ["api", "environments", &id, "logs"], &query)
        .header(header::ACCEPT, "text/plain, application/problem+json");
    let mut chunks = client.send(request).await?.bytes_stream();
    let mut lines = Lines::default();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.context("the log broke off")?;
        if output.json {
            for line in lines.push(&chunk) {
                output.line(&serde_json::json!({ "line": line }).to_string())?;
            }
        } else {
            output.raw(&chunk)?;
        }
    }
    if output.json
        && let Some(line) = lines.rest()
    {
        output.line(&serde_json::json!({ "line": line }).to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The longest line that is kept whole; longer ones come in parts.
const LINE_MAX: usize = 1 << 20;

/// Parts bytes into lines.
#[derive(Debug, Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for byte in bytes {
            if *byte == b'\n' || self.0.len() >= LINE_MAX {
                lines.push(String::from_utf8_lossy(&std::mem::take(&mut self.0)).into_owned());
            }
            if *byte != b'\n' {
                self.0.push(*byte);
            }
        }
        lines
    }

    fn rest(self) -> Option<String> {
        (!self.0.is_empty()).then(|| String::from_utf8_lossy(&self.0).into_owned())
    }
}

/// `wakeful events`.
pub(super) async fn events(
    client: &Client,
    project: Option<String>,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let request = match project {
        Some(project) => {
            let id = select::find_project(client, &project).await?.id.to_string();
            client.request(Method::GET, ["api", "projects", &id, "events"])
        }
        None => client.request(Method::GET, ["api", "events"]),
    };
    let request = request.header(header::ACCEPT, "text/event-stream, application/problem+json");
    let mut chunks = client.send(request).await?.bytes_stream();
    let mut reader = sse::Reader::default();
    while let Some(chunk) = chunks.next().await {
        for event in reader.push(&chunk.context("the stream broke off")?)? {
            let data: Value =
                serde_json::from_str(&event.data).unwrap_or_else(|_| event.data.clone().into());
            if output.json {
                let line = serde_json::json!({ "event": event.kind, "data": data });
                output.line(&line.to_string())?;
            } else {
                output.line(&describe(&event.kind, &data))?;
            }
        }
    }
    bail!("the server ended the stream")
}

/// One event in a line.
fn describe(kind: &str, data: &Value) -> String {
    if kind == "environment"
        && let Ok(env) = serde_json::from_value::<Environment>(data.clone())
    {
        let reason = env.failure.map(|failure| format!(": {}", printable(&failure.reason)));
        return format!("{} {} {}{}", env.id, env.slug, env.phase, reason.unwrap_or_default());
    }
    if kind == "job" {
        let text = |name: &str| printable(data[name].as_str().unwrap_or("?"));
        let amount = match (data["done"].as_u64(), data["total"].as_u64()) {
            (Some(done), Some(total)) => format!(" {done}/{total}"),
            (Some(done), None) => format!(" {done}"),
            (None, _) => String::new(),
        };
        return format!("{} {} {}{amount}", text("kind"), text("step"), text("state"));
    }
    printable(&format!("{kind} {data}"))
}

/// `wakeful openapi`.
pub(super) async fn openapi(
    url: Option<&str>,
    variables: &BTreeMap<String, String>,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let client = Client::perhaps_signed_in(url, variables)?;
    let document: Value = client.get(&["api", "openapi.json"]).await?;
    output.line(&serde_json::to_string_pretty(&document)?)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_the_bytes_are_cut() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(b"one\ntw"), ["one"]);
        assert_eq!(lines.push(b"o\n\nthree"), ["two", ""]);
        assert_eq!(lines.rest().as_deref(), Some("three"));
    }

    #[test]
    fn a_job_is_told_in_a_line() {
        let data = serde_json::json!({
            "id": "1", "kind": "upload", "step": "write", "done": 3, "total": 9, "state": "running"
        });
        assert_eq!(describe("job", &data), "upload write running 3/9");
        assert_eq!(describe("other", &serde_json::json!(1)), "other 1");
    }
}
