//! Permissions that an agent waits for.

use std::collections::VecDeque;

use serde_json::Value;
use wakeful_wire::rpc::{RequestId, ToolKind, ToolPatch, ToolStatus};

/// How many requests of one session are open at once; the agent is refused a further one.
const OPEN_MAX: usize = 64;
/// Of how many tool calls the kind is remembered, for the questions about them.
const KINDS_MAX: usize = 1024;

/// One open request.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) request: RequestId,
    /// The agent's id of its question.
    pub(super) rpc: Value,
    tool: Option<String>,
}

/// The open requests of a session, and what they are about.
#[derive(Debug, Default)]
pub(super) struct Permissions {
    open: Vec<Open>,
    kinds: VecDeque<(String, ToolKind)>,
}

impl Permissions {
    /// Whether one more can be asked.
    pub(super) const fn has_room(&self) -> bool {
        self.open.len() < OPEN_MAX
    }

    pub(super) fn ask(&mut self, request: RequestId, rpc: Value, tool: Option<String>) {
        self.open.push(Open { request, rpc, tool });
    }

    /// Takes a request out, to answer it.
    pub(super) fn take(&mut self, request: RequestId) -> Option<Open> {
        let place = self.open.iter().position(|open| open.request == request)?;
        Some(self.open.remove(place))
    }

    /// Takes all of them out.
    pub(super) fn take_all(&mut self) -> Vec<Open> {
        std::mem::take(&mut self.open)
    }

    /// Takes in what is known of a tool. Returns the requests that this settles: a tool that has
    /// ended waits for nobody, so somebody answered elsewhere.
    pub(super) fn tool(&mut self, patch: &ToolPatch) -> Vec<Open> {
        if let Some(kind) = patch.kind {
            self.kinds.retain(|(id, _)| *id != patch.id);
            self.kinds.push_back((patch.id.clone(), kind));
            if self.kinds.len() > KINDS_MAX {
                self.kinds.pop_front();
            }
        }
        if !matches!(patch.status, Some(ToolStatus::Completed | ToolStatus::Failed)) {
            return Vec::new();
        }
        let about = |open: &mut Open| open.tool.as_deref() == Some(patch.id.as_str());
        self.open.extract_if(.., about).collect()
    }

    /// The kind of a tool call, as far as the agent has said it.
    pub(super) fn kind(&self, tool: &str) -> Option<ToolKind> {
        self.kinds.iter().rev().find(|(id, _)| id == tool).map(|(_, kind)| *kind)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn patch(id: &str, kind: Option<ToolKind>, status: Option<ToolStatus>) -> ToolPatch {
        ToolPatch { id: id.to_owned(), kind, status, ..ToolPatch::default() }
    }

    #[test]
    fn a_tool_that_ended_settles_its_own_questions_only() {
        let mut permissions = Permissions::default();
        let requests: Vec<_> =
            (1..4).map(|number| RequestId::from_uuid(Uuid::from_u128(number))).collect();
        for (request, tool) in requests.iter().zip([Some("a"), Some("b"), None]) {
            permissions.ask(*request, Value::Null, tool.map(str::to_owned));
        }
        assert!(permissions.tool(&patch("a", None, Some(ToolStatus::InProgress))).is_empty());
        let settled = permissions.tool(&patch("a", None, Some(ToolStatus::Completed)));
        assert_eq!(settled.len(), 1);
        assert_eq!(settled[0].request, requests[0]);
        assert!(permissions.take(requests[0]).is_none());
        assert!(permissions.take(requests[1]).is_some());
        assert_eq!(permissions.take_all().len(), 1);
    }

    #[test]
    fn the_newest_kind_of_a_reused_id_counts() {
        let mut permissions = Permissions::default();
        permissions.tool(&patch("a", Some(ToolKind::Read), None));
        permissions.tool(&patch("a", Some(ToolKind::Execute), None));
        assert_eq!(permissions.kind("a"), Some(ToolKind::Execute));
        for number in 0..2 * KINDS_MAX {
            permissions.tool(&patch(&number.to_string(), Some(ToolKind::Edit), None));
        }
        assert_eq!(permissions.kind("a"), None);
        assert!(permissions.kinds.len() <= KINDS_MAX);
    }
}
