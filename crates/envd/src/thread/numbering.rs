//! Which item of the newest segment an agent's update belongs to.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use wakeful_wire::rpc::{EventBody, Role};

use super::limits::{KEYS_MAX, TEXT_ITEM_MAX};

/// What is needed to number the next item of a thread's newest segment. Derived from the thread's
/// events, like the thread itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Numbering {
    next: u32,
    /// The text that could go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    open: Option<OpenText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<u32>,
    /// Shared, because it is copied with every decision and seldom changes.
    #[serde(default)]
    tools: Arc<BTreeMap<String, u32>>,
    #[serde(default)]
    terminals: Arc<BTreeMap<String, (u32, u64)>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OpenText {
    item: u32,
    role: Role,
    message: Option<String>,
    bytes: usize,
    /// Whether another kind of item came since.
    passed: bool,
}

impl Numbering {
    /// The next new item.
    pub(crate) const fn next(&self) -> u32 {
        self.next
    }

    /// The item for a piece of text.
    pub(crate) fn text(&self, role: Role, message: Option<&str>, bytes: usize) -> u32 {
        let goes_on = |open: &&OpenText| {
            let same = match (&open.message, message) {
                (Some(held), Some(given)) => held == given,
                (None, None) => !open.passed,
                (Some(_), None) | (None, Some(_)) => false,
            };
            same && open.role == role && open.bytes.saturating_add(bytes) <= TEXT_ITEM_MAX
        };
        self.open.as_ref().filter(goes_on).map_or(self.next, |open| open.item)
    }

    /// The item of a tool call.
    pub(crate) fn tool(&self, id: &str) -> u32 {
        self.tools.get(id).copied().unwrap_or(self.next)
    }

    /// The item of a terminal, and how many bytes it has had.
    pub(crate) fn terminal(&self, id: &str) -> (u32, u64) {
        self.terminals.get(id).copied().unwrap_or((self.next, 0))
    }

    /// The item of the plan.
    pub(crate) fn plan(&self) -> u32 {
        self.plan.unwrap_or(self.next)
    }

    /// Takes in an event of the thread.
    pub(crate) fn apply(&mut self, body: &EventBody) {
        if matches!(body, EventBody::TurnStarted { .. } | EventBody::ThreadCreated { .. }) {
            *self = Self::default();
        }
        let Some(item) = body.item() else { return };
        let opens = item >= self.next;
        self.next = self.next.max(item.saturating_add(1));
        if let EventBody::Text { role, text, message, .. } = body {
            match &mut self.open {
                Some(open) if open.item == item => open.bytes += text.len(),
                open => {
                    *open = Some(OpenText {
                        item,
                        role: *role,
                        message: message.clone(),
                        bytes: text.len(),
                        passed: false,
                    });
                }
            }
            return;
        }
        if opens && let Some(open) = &mut self.open {
            open.passed = true;
        }
        if let EventBody::Tool { tool, .. } = body {
            remember(&mut self.tools, &tool.id, item, |held| *held);
        } else if let EventBody::Terminal { terminal, text, .. } = body {
            let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
            let (_, had) = self.terminal(terminal);
            let now = (item, had.saturating_add(bytes));
            remember(&mut self.terminals, terminal, now, |held| held.0);
        } else if matches!(body, EventBody::Plan { .. }) {
            self.plan = Some(item);
        }
    }
}

/// Puts a key in; when there are too many, the one with the oldest item goes.
fn remember<V: Copy + PartialEq>(
    held: &mut Arc<BTreeMap<String, V>>,
    key: &str,
    value: V,
    item: impl Fn(&V) -> u32,
) {
    if held.get(key) == Some(&value) {
        return;
    }
    let held = Arc::make_mut(held);
    held.insert(key.to_owned(), value);
    if held.len() > KEYS_MAX {
        let oldest = held.iter().min_by_key(|(_, value)| item(value)).map(|(key, _)| key.clone());
        if let Some(oldest) = oldest {
            held.remove(&oldest);
        }
    }
}
