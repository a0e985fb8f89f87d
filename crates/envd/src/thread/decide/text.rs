//! How what agents send is cut to size.

use wakeful_wire::rpc::{PlanEntry, ToolContent, ToolPatch};

use crate::thread::limits::{NAME_MAX, PART_MAX, PLAN_MAX, RAW_MAX, TITLE_MAX, TOOL_PARTS_MAX};

/// The largest boundary between characters at or below `at`.
pub(super) fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The text, cut to `max` bytes and marked if it is longer.
pub(super) fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let mark = "…";
    let mut kept = text[..boundary(text, max.saturating_sub(mark.len()))].to_owned();
    kept.push_str(mark);
    kept
}

/// Pieces of at most `max` bytes, cut between characters. `max` is at least 4.
pub(super) fn pieces(text: &str, max: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, after) = rest.split_at(boundary(rest, max));
        rest = after;
        Some(piece)
    })
}

fn content(part: &ToolContent) -> ToolContent {
    match part {
        ToolContent::Text { text } => ToolContent::Text { text: cut(text, PART_MAX) },
        ToolContent::Diff { path, old, new } => ToolContent::Diff {
            path: cut(path, PART_MAX),
            old: old.as_ref().map(|old| cut(old, PART_MAX)),
            new: cut(new, PART_MAX),
        },
        ToolContent::Terminal { terminal } => {
            ToolContent::Terminal { terminal: cut(terminal, NAME_MAX) }
        }
        ToolContent::Other => ToolContent::Other,
    }
}

/// The value, or what stands in its place if it is too large.
fn raw(value: &serde_json::Value) -> serde_json::Value {
    let size = serde_json::to_string(value).map_or(0, |text| text.len());
    if size <= RAW_MAX { value.clone() } else { serde_json::json!({ "left_out_bytes": size }) }
}

/// A tool call cut to size.
pub(super) fn tool(patch: &ToolPatch) -> ToolPatch {
    let list = |parts: &Vec<ToolContent>| parts.iter().take(TOOL_PARTS_MAX).map(content).collect();
    ToolPatch {
        id: cut(&patch.id, NAME_MAX),
        title: patch.title.as_ref().map(|title| cut(title, TITLE_MAX)),
        kind: patch.kind,
        status: patch.status,
        content: patch.content.as_ref().map(list),
        locations: patch.locations.as_ref().map(|locations| {
            let mut locations: Vec<_> = locations.iter().take(TOOL_PARTS_MAX).cloned().collect();
            for location in &mut locations {
                location.path = cut(&location.path, PART_MAX);
            }
            locations
        }),
        raw_input: patch.raw_input.as_ref().map(raw),
        raw_output: patch.raw_output.as_ref().map(raw),
    }
}

/// A plan cut to size.
pub(super) fn plan(entries: &[PlanEntry]) -> Vec<PlanEntry> {
    let line = |entry: &PlanEntry| PlanEntry { text: cut(&entry.text, TITLE_MAX * 4), ..*entry };
    entries.iter().take(PLAN_MAX).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("aéz", 10), "aéz");
        assert_eq!(cut("aéaéaé", 6), "aé…");
        let text = "é".repeat(10);
        let parts: Vec<_> = pieces(&text, 5).collect();
        assert!(parts.iter().all(|part| part.len() <= 5 && !part.is_empty()));
        assert_eq!(parts.concat(), text);
        assert_eq!(pieces("", 5).count(), 0);
    }
}
