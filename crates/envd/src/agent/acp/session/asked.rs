//! What an agent asks of the host.

use agent_client_protocol::v1::schema::{
    CreateTerminalRequest, ReadTextFileRequest, RequestPermissionOutcome,
    RequestPermissionResponse, SelectedPermissionOutcome, ToolCallUpdate, WriteTextFileRequest,
};
use serde_json::{Value, json};
use uuid::Uuid;
use wakeful_wire::rpc::{NoticeLevel, RequestId, WithdrawnWhy};

use super::{Acp, Over, opening::params, written};
use crate::{
    agent::{
        acp::{
            terminals::{Wanted, exit_status},
            update::{key, options, tool_change},
        },
        limits::{NAME, cut_end},
    },
    thread::command::AgentUpdate,
};

const NOT_FOUND: i64 = -32601;
const INVALID: i64 = -32602;
const FAILED: i64 = -32603;

impl Acp {
    pub(super) async fn asked(
        &mut self,
        id: Value,
        method: &str,
        params: Value,
    ) -> Result<(), Over> {
        match method {
            "session/request_permission" => self.permission(id, params).await,
            "fs/read_text_file" | "fs/write_text_file" => self.file(id, method, params),
            _ if method.starts_with("terminal/") => self.terminal(&id, method, &params),
            _ => written(self.process.outbox.refuse(&id, NOT_FOUND, "there is no such method")),
        }
    }

    async fn permission(&mut self, id: Value, mut params: Value) -> Result<(), Over> {
        let offered = options(params.get("options").unwrap_or(&Value::Null));
        let about = params.get_mut("toolCall").map(Value::take).unwrap_or_default();
        if offered.is_empty() {
            let text = "the agent asked for a permission without an answer to choose";
            self.pen.notice(NoticeLevel::Warning, text).await?;
            return written(self.process.outbox.refuse(&id, INVALID, "no options to choose from"));
        }
        if !self.permissions.has_room() {
            let text = "too many questions are open";
            return written(self.process.outbox.refuse(&id, FAILED, text));
        }
        let tool = serde_json::from_value::<ToolCallUpdate>(about).ok().map(tool_change);
        if let Some(tool) = &tool {
            let _none_is_open = self.permissions.tool(tool);
        }
        let kind = tool.as_ref().and_then(|tool| self.permissions.kind(&tool.id));
        let title = tool
            .as_ref()
            .and_then(|tool| tool.title.clone())
            .unwrap_or_else(|| "the agent asks for a permission".to_owned());
        let request = RequestId::from_uuid(Uuid::new_v4());
        self.permissions.ask(request, id, tool.as_ref().map(|tool| tool.id.clone()));
        let asked = AgentUpdate::Permission {
            request,
            tool: tool.map(crate::agent::limits::bound_tool),
            title: cut_end(title, NAME),
            options: offered,
            key: kind.and_then(key).map(str::to_owned),
        };
        Ok(self.pen.say(asked).await?)
    }

    /// Gives the agent the answer that it waits for.
    pub(super) async fn answer(
        &mut self,
        request: RequestId,
        option: Option<String>,
    ) -> Result<(), Over> {
        let Some(open) = self.permissions.take(request) else { return Ok(()) };
        let outcome = match &option {
            Some(option) => {
                RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.clone()))
            }
            None => RequestPermissionOutcome::Cancelled,
        };
        let answer = params(&RequestPermissionResponse::new(outcome));
        written(self.process.outbox.answer(&open.rpc, &answer))?;
        if option.is_none() {
            let why = WithdrawnWhy::TurnEnded;
            self.pen.say(AgentUpdate::Withdrawn { request, why }).await?;
        }
        Ok(())
    }

    /// Files are read and written on a thread of their own: a slow disk must not hold the session.
    fn file(&mut self, id: Value, method: &str, params: Value) -> Result<(), Over> {
        let Ok(permit) = std::sync::Arc::clone(&self.served).try_acquire_owned() else {
            return self.busy(&id);
        };
        let (files, outbox) = (self.files.clone(), self.process.outbox.clone());
        let work: Box<dyn FnOnce() -> std::io::Result<Value> + Send> = match method {
            "fs/read_text_file" => {
                let Ok(wanted) = serde_json::from_value::<ReadTextFileRequest>(params) else {
                    return self.invalid(&id);
                };
                Box::new(move || {
                    let text = files.read(&wanted.path, wanted.line, wanted.limit)?;
                    Ok(json!({ "content": text }))
                })
            }
            _ => {
                let Ok(wanted) = serde_json::from_value::<WriteTextFileRequest>(params) else {
                    return self.invalid(&id);
                };
                Box::new(move || {
                    files.write(&wanted.path, &wanted.content)?;
                    Ok(json!({}))
                })
            }
        };
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            // An agent that is gone, or reads nothing, is noticed by the next message to it.
            let _gone = match work() {
                Ok(result) => outbox.answer(&id, &result),
                Err(error) => outbox.refuse(&id, FAILED, &error.to_string()),
            };
        });
        Ok(())
    }

    fn terminal(&mut self, id: &Value, method: &str, params: &Value) -> Result<(), Over> {
        let outbox = &self.process.outbox;
        if method == "terminal/create" {
            let Ok(request) = serde_json::from_value::<CreateTerminalRequest>(params.clone())
            else {
                return self.invalid(id);
            };
            let wanted = Wanted {
                command: request.command,
                args: request.args,
                env: request.env.into_iter().map(|pair| (pair.name, pair.value)).collect(),
                dir: request.cwd,
                kept: request.output_byte_limit,
            };
            return written(match self.terminals.create(wanted) {
                Ok(terminal) => outbox.answer(id, &json!({ "terminalId": terminal })),
                Err(error) => outbox.refuse(id, FAILED, &error.to_string()),
            });
        }
        let terminal = params.get("terminalId").and_then(Value::as_str).unwrap_or_default();
        let result = match method {
            "terminal/output" => self.terminals.output(terminal),
            "terminal/kill" => self.terminals.kill(terminal).then(|| json!({})),
            "terminal/release" => self.terminals.release(terminal).then(|| json!({})),
            "terminal/wait_for_exit" => {
                let Some(mut exit) = self.terminals.exit(terminal) else {
                    return written(outbox.refuse(id, INVALID, "there is no such terminal"));
                };
                let Ok(permit) = std::sync::Arc::clone(&self.served).try_acquire_owned() else {
                    return self.busy(id);
                };
                let (outbox, id) = (outbox.clone(), id.clone());
                tokio::spawn(async move {
                    let _permit = permit;
                    let exit = exit.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
                    let _gone = match exit {
                        Some(exit) => outbox.answer(&id, &exit_status(&exit)),
                        None => outbox.refuse(&id, INVALID, "the terminal was released"),
                    };
                });
                return Ok(());
            }
            _ => return written(outbox.refuse(id, NOT_FOUND, "there is no such method")),
        };
        written(match result {
            Some(result) => outbox.answer(id, &result),
            None => outbox.refuse(id, INVALID, "there is no such terminal"),
        })
    }

    fn busy(&self, id: &Value) -> Result<(), Over> {
        written(self.process.outbox.refuse(id, FAILED, "too many requests are being served"))
    }

    fn invalid(&self, id: &Value) -> Result<(), Over> {
        written(self.process.outbox.refuse(id, INVALID, "the parameters cannot be read"))
    }
}
