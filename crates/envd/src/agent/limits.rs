//! How much of what an agent says is kept.
//!
//! A bound cuts the middle or the rest, says so in the text, and never fails a turn.

use serde_json::Value;
use wakeful_wire::rpc::{Location, ToolContent, ToolPatch};

/// The longest text of one event, in bytes; a longer one is said in pieces.
pub(super) const PIECE: usize = 64 * 1024;
/// The longest text that a tool shows, in bytes; of a longer one the two ends are kept.
pub(super) const TOOL_TEXT: usize = 64 * 1024;
/// The longest side of a diff, in bytes; of a longer one the two ends are kept.
pub(super) const DIFF_SIDE: usize = 256 * 1024;
/// How many pieces of content, and how many locations, a tool call keeps.
pub(super) const TOOL_PARTS: usize = 64;
/// All the content of one tool call's event, in bytes; what is over is left out whole.
pub(super) const TOOL_ALL: usize = 1024 * 1024;
/// The longest raw input or output of a tool, in bytes of JSON; a longer one is kept as a text that
/// has been cut.
pub(super) const RAW: usize = 64 * 1024;
/// The longest title, path, name or id, in bytes.
pub(super) const NAME: usize = 4 * 1024;
/// How many lines a plan keeps.
pub(super) const PLAN_LINES: usize = 256;
/// How much text and terminal output one turn, or what is between two turns, adds to the log, in
/// bytes. What is over is counted, and said once at the end.
pub(super) const FLOOD: usize = 8 * 1024 * 1024;

/// At most `max` bytes of `text`: its two ends, with a marker between them.
pub(super) fn cut_middle(text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    let side = max / 2;
    let head = floor(&text, side);
    let tail = ceil(&text, text.len() - side);
    format!("{}\n[… {} bytes left out …]\n{}", &text[..head], tail - head, &text[tail..])
}

/// At most `max` bytes of `text`, with an ellipsis where it was cut.
pub(super) fn cut_end(mut text: String, max: usize) -> String {
    if text.len() > max {
        text.truncate(floor(&text, max));
        text.push('…');
    }
    text
}

/// The last place up to `at` that is between characters.
pub(super) fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The first place from `at` that is between characters.
pub(super) fn ceil(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// Brings a tool call within the bounds.
pub(super) fn bound_tool(patch: ToolPatch) -> ToolPatch {
    ToolPatch {
        id: cut_end(patch.id, NAME),
        title: patch.title.map(|title| cut_end(title, NAME)),
        content: patch.content.map(bound_content),
        locations: patch.locations.map(|locations| {
            let bound = |place: Location| Location { path: cut_end(place.path, NAME), ..place };
            locations.into_iter().take(TOOL_PARTS).map(bound).collect()
        }),
        raw_input: patch.raw_input.map(bound_raw),
        raw_output: patch.raw_output.map(bound_raw),
        kind: patch.kind,
        status: patch.status,
    }
}

fn bound_content(content: Vec<ToolContent>) -> Vec<ToolContent> {
    let mut left = TOOL_ALL;
    let mut kept = Vec::new();
    let mut dropped = 0_usize;
    for part in content {
        let (part, size) = match part {
            ToolContent::Text { text } => {
                let text = cut_middle(text, TOOL_TEXT);
                let size = text.len();
                (ToolContent::Text { text }, size)
            }
            ToolContent::Diff { path, old, new } => {
                let path = cut_end(path, NAME);
                let old = old.map(|old| cut_middle(old, DIFF_SIDE));
                let new = cut_middle(new, DIFF_SIDE);
                let size = old.as_ref().map_or(0, String::len) + new.len() + path.len();
                (ToolContent::Diff { path, old, new }, size)
            }
            ToolContent::Terminal { terminal } => {
                let terminal = cut_end(terminal, NAME);
                let size = terminal.len();
                (ToolContent::Terminal { terminal }, size)
            }
            ToolContent::Other => (ToolContent::Other, 0),
        };
        if kept.len() < TOOL_PARTS && size <= left {
            left -= size;
            kept.push(part);
        } else {
            dropped += 1;
        }
    }
    if dropped > 0 {
        kept.push(ToolContent::Text { text: format!("[… {dropped} more parts left out …]") });
    }
    kept
}

fn bound_raw(value: Value) -> Value {
    let text = value.to_string();
    if text.len() <= RAW { value } else { Value::String(cut_middle(text, RAW)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_two_ends_and_says_how_much_is_missing() {
        let text = format!("{}{}", "a".repeat(50), "z".repeat(50));
        let cut = cut_middle(text, 20);
        assert_eq!(cut, format!("{}\n[… 80 bytes left out …]\n{}", "a".repeat(10), "z".repeat(10)));
        assert_eq!(cut_middle("short".to_owned(), 20), "short");
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        for max in 0..12 {
            let _whole = cut_middle("äöüßé€".to_owned(), max);
            let _whole = cut_end("äöüßé€".to_owned(), max);
        }
    }

    #[test]
    fn a_tools_content_stays_within_every_bound() {
        let big = "x".repeat(10 * TOOL_TEXT);
        let patch = ToolPatch {
            id: "t".to_owned(),
            title: Some(big.clone()),
            content: Some(
                (0..500)
                    .map(|_| ToolContent::Diff {
                        path: "p".to_owned(),
                        old: Some(big.clone()),
                        new: big.clone(),
                    })
                    .collect(),
            ),
            locations: Some(vec![Location { path: big.clone(), line: None }; 500]),
            raw_output: Some(Value::String(big)),
            ..ToolPatch::default()
        };
        let bound = bound_tool(patch);
        let size = serde_json::to_string(&bound).unwrap().len();
        assert!(size < TOOL_ALL + RAW + TOOL_PARTS * (NAME + 64) + 64 * 1024, "{size}");
        assert!(serde_json::to_string(&bound).unwrap().contains("more parts left out"));
    }
}
