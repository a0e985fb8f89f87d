//! Every bound of threads, with what happens at it.

/// Most bytes of one prompt. More is refused.
pub const PROMPT_MAX: usize = 256 * 1024;
/// Most pieces of one prompt. More is refused.
pub const PROMPT_PARTS_MAX: usize = 64;
/// Most prompts that wait in one thread. More is refused.
pub const QUEUE_MAX: usize = 32;
/// Longest title, in bytes; a person's is refused, an agent's cut.
pub const TITLE_MAX: usize = 512;
/// Longest name of an agent, a mode, a session, a tool call or a terminal, in bytes; from people
/// refused, from agents cut.
pub const NAME_MAX: usize = 256;
/// Longest project path, in bytes. More is refused.
pub const PROJECT_MAX: usize = 1_024;
/// Most threads of a host, deleted ones included. More is refused.
pub const THREADS_MAX: usize = 100_000;
/// How deep subagents may nest. Deeper is refused.
pub const DEPTH_MAX: usize = 8;
/// Most bytes of text in one event. Longer texts become several events.
pub const CHUNK_MAX: usize = 32 * 1024;
/// Most bytes of one text item. What follows opens another item.
pub const TEXT_ITEM_MAX: usize = 128 * 1024;
/// Most bytes of one terminal's output in one segment. What follows is left out, and said so once.
pub const TERMINAL_MAX: u64 = 4 * 1024 * 1024;
/// Most bytes of one text in a tool call, a diff's side, a plan's line or a notice. Longer ones are
/// cut and end in `…`.
pub const PART_MAX: usize = 128 * 1024;
/// Most bytes of a tool call's raw input or output, as JSON. Larger ones are left out, and said so.
pub const RAW_MAX: usize = 128 * 1024;
/// Most pieces of content or locations in a tool call. Further ones are left out.
pub const TOOL_PARTS_MAX: usize = 64;
/// Most lines of a plan. Further ones are left out.
pub const PLAN_MAX: usize = 256;
/// Most permissions that wait in one thread. More is refused to the agent.
pub const PERMISSIONS_MAX: usize = 64;
/// Most options of a permission. Further ones are left out.
pub const OPTIONS_MAX: usize = 32;
/// Most answers that are remembered for whole projects, over all of them; at more, the first in
/// order is forgotten.
pub const REMEMBERED_MAX: usize = 1_024;
/// Most tool calls and terminals of one segment that can still be changed. At more, the oldest can
/// no longer: what comes for it opens a new item.
pub const KEYS_MAX: usize = 4_096;
/// Most updates of one append. More is refused.
pub const APPEND_MAX: usize = 1_024;
/// Most threads that one tick settles or brings back; the next tick goes on.
pub const TICK_MAX: usize = 200;
/// Removed threads that a shell cursor can still be told of. An older cursor gets a snapshot.
pub const TOMBSTONES_MAX: usize = 4_096;

/// A resume that would bring more changed rows, or more events of a thread, gets a snapshot.
pub const GAP_MAX: usize = 1_000;
/// The same in bytes, as JSON.
pub const GAP_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most rows or events of one item of a subscription.
pub const ITEM_MAX: usize = 256;
/// Most bytes of one item of a subscription; one row or event may exceed it.
pub const ITEM_BYTES_MAX: usize = 512 * 1024;
/// Newest events that are kept in memory for subscribers, in bytes over all threads.
pub const TAIL_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Turns on the first page of a thread, if they fit.
pub const FIRST_PAGE_TURNS: usize = 10;
/// Turns on a further page.
pub const PAGE_TURNS: usize = 20;
/// Most turns on any page.
pub const PAGE_TURNS_MAX: usize = 150;
/// Bytes at which a page ends, as JSON; one item may exceed it.
pub const PAGE_BYTES_MAX: usize = 1024 * 1024;
/// Most rows of one page of settled or archived threads, or of one search.
pub const ROWS_PAGE_MAX: usize = 100;
/// Longest search text, in bytes. More is refused.
pub const SEARCH_MAX: usize = 512;
