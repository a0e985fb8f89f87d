//! A log to follow, for tests.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use uuid::Uuid;
use wakeful_link::{
    DataStatus,
    threads::{Held, ThreadState},
};
use wakeful_wire::{
    Timestamp,
    rpc::{
        ClientId, Cursor, Detail, Epoch, Event, EventBody, Outcome, Page, PageCursor,
        PermissionOption, PermissionOptionKind, Prompt, RequestId, Role, Seq, ShellRow, StopReason,
        Thread, ThreadId, ThreadItem, ToolPatch, ToolStatus, TurnId,
    },
};

use super::screen::Sink;

pub(super) fn thread() -> ThreadId {
    ThreadId::from_uuid(Uuid::from_u128(1))
}

pub(super) fn client(number: u32) -> ClientId {
    ClientId::from_uuid(Uuid::from_u128(0x1_0000 + u128::from(number)))
}

pub(super) fn turn(number: u32) -> TurnId {
    TurnId::from_uuid(Uuid::from_u128(0x2_0000 + u128::from(number)))
}

pub(super) fn request(number: u32) -> RequestId {
    RequestId::from_uuid(Uuid::from_u128(0x3_0000 + u128::from(number)))
}

pub(super) const DONE: Outcome = Outcome::Completed { reason: StopReason::EndTurn };

/// A log of one thread.
#[derive(Debug, Clone)]
pub(super) struct Log(pub(super) Vec<Event>);

impl Log {
    /// With the thread's creation.
    pub(super) fn new() -> Self {
        let mut log = Self(Vec::new());
        log.push(EventBody::ThreadCreated {
            parent: None,
            root: thread(),
            project: String::new(),
            agent: "shell".to_owned(),
            title: None,
        });
        log
    }

    /// Numbers have gaps, as other threads' events make them.
    pub(super) fn push(&mut self, body: EventBody) -> &mut Self {
        let seq = Seq(self.0.len() as u64 * 3 + 5);
        self.0.push(Event { seq, at: Timestamp(seq.0 * 1_000), thread: Some(thread()), body });
        self
    }

    pub(super) fn begin(&mut self, number: u32, text: &str) -> &mut Self {
        let prompt = Prompt::text(client(number), text);
        self.push(EventBody::PromptQueued { prompt: prompt.clone() });
        self.push(EventBody::TurnStarted { turn: turn(number), segment: number, prompt })
    }

    /// A prompt that waits.
    pub(super) fn queue(&mut self, number: u32, text: &str) -> &mut Self {
        self.push(EventBody::PromptQueued { prompt: Prompt::text(client(number), text) })
    }

    pub(super) fn end(&mut self, number: u32, outcome: Outcome) -> &mut Self {
        self.push(EventBody::TurnEnded { turn: turn(number), outcome })
    }

    pub(super) fn text(&mut self, item: u32, text: &str) -> &mut Self {
        let text = text.to_owned();
        self.push(EventBody::Text { item, role: Role::Agent, text, message: None })
    }

    pub(super) fn tool(&mut self, item: u32, title: &str, status: ToolStatus) -> &mut Self {
        let tool = ToolPatch {
            id: format!("tool-{item}"),
            title: Some(title.to_owned()),
            status: Some(status),
            ..ToolPatch::default()
        };
        self.push(EventBody::Tool { item, tool })
    }

    pub(super) fn ask(&mut self, item: u32, number: u32) -> &mut Self {
        self.push(EventBody::PermissionRequested {
            item,
            request: request(number),
            tool: None,
            title: format!("question {number}"),
            options: options(),
            key: Some("key".to_owned()),
        })
    }

    pub(super) fn answer(&mut self, item: u32, number: u32, option: &str) -> &mut Self {
        self.push(EventBody::PermissionAnswered {
            item,
            request: request(number),
            option: option.to_owned(),
            by: wakeful_wire::rpc::AnsweredBy::Hand,
            remember: None,
            allow: None,
        })
    }

    /// The thread after the first `count` events.
    pub(super) fn detail(&self, count: usize) -> Detail {
        let made = Thread::created(&self.0[0]).unwrap();
        let mut detail = Detail::new(made, Page::default());
        for event in &self.0[..count] {
            detail.apply(event);
        }
        detail
    }

    /// What a client knows of it then.
    pub(super) fn state(&self, count: usize, status: DataStatus) -> ThreadState {
        self.state_of(self.detail(count), count, status)
    }

    /// The same with only so many of the newest segments.
    pub(super) fn cut(&self, count: usize, segments: usize, status: DataStatus) -> ThreadState {
        let mut detail = self.detail(count);
        let page = &mut detail.page;
        page.segments.drain(..page.segments.len() - segments);
        let first = page.segments.first().unwrap();
        let created = detail.thread.created;
        page.before = Some(PageCursor { created, segment: first.number, item: 0 });
        let mut state = self.state_of(detail, count, status);
        state.page.has_more = true;
        state
    }

    fn state_of(&self, detail: Detail, count: usize, status: DataStatus) -> ThreadState {
        let held = Held { detail: Arc::new(detail), cursor: self.cursor(count, 1) };
        ThreadState { held: Some(held), status, ..ThreadState::default() }
    }

    pub(super) fn cursor(&self, count: usize, epoch: u64) -> Cursor {
        Cursor { epoch: Epoch(epoch), seq: self.0[count - 1].seq }
    }

    pub(super) fn snapshot(&self, count: usize, epoch: u64) -> ThreadItem {
        let detail = Box::new(self.detail(count));
        ThreadItem::Snapshot { cursor: self.cursor(count, epoch), detail }
    }

    pub(super) fn events(&self, range: std::ops::Range<usize>) -> ThreadItem {
        ThreadItem::Events { events: self.0[range].to_vec() }
    }

    pub(super) fn synchronized(&self, count: usize, epoch: u64) -> ThreadItem {
        ThreadItem::Synchronized { cursor: self.cursor(count, epoch) }
    }

    pub(super) fn resumed(&self, count: usize, epoch: u64) -> ThreadItem {
        ThreadItem::Resumed { cursor: self.cursor(count, epoch) }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A row of an idle thread in which something happened at this second.
pub(super) fn row(id: ThreadId, second: u64) -> ShellRow {
    ShellRow {
        id,
        seq: Seq(second),
        created_at: Timestamp(0),
        active_at: Timestamp(second * 1_000),
        parent: None,
        root: id,
        project: String::new(),
        agent: "shell".to_owned(),
        title: None,
        pinned: false,
        snoozed_until: None,
        settled: None,
        running_since: None,
        cancelling: false,
        last_outcome: None,
        queued: 0,
        held: false,
        pending: 0,
        background: false,
        mode: None,
    }
}

pub(super) fn options() -> Vec<PermissionOption> {
    [("yes", PermissionOptionKind::AllowOnce), ("no", PermissionOptionKind::RejectOnce)]
        .map(|(id, kind)| PermissionOption { id: id.to_owned(), name: format!("say {id}"), kind })
        .to_vec()
}

/// What was printed.
#[derive(Debug, Clone, Default)]
pub(super) struct Printed {
    pub(super) out: Rc<RefCell<String>>,
    pub(super) notes: Rc<RefCell<Vec<String>>>,
}

impl Sink for Printed {
    fn out(&mut self, text: &str) -> anyhow::Result<()> {
        self.out.borrow_mut().push_str(text);
        Ok(())
    }

    fn note(&mut self, text: &str) {
        self.notes.borrow_mut().push(text.to_owned());
    }
}

/// Chance that a seed decides.
#[derive(Debug)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((bits ^ (bits >> 31)) % bound as u64).unwrap()
    }
}
