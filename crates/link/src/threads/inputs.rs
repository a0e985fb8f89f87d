//! What happens to the threads of a host, and to which stream it goes.

use std::sync::Arc;

use wakeful_wire::rpc::{Cursor, Page, ShellRow, ThreadId, ThreadItem, ThreadSubscribe};

use super::{
    Held, Threads,
    action::{FetchId, StreamId, WriteId},
    stream::{Around, Link, Stream},
};
use crate::{Failure, Instant};

impl Threads {
    /// Lets the stream of that scope take something in; nothing if it is of the past.
    fn with<R>(
        &mut self,
        now: Instant,
        id: StreamId,
        take: impl FnOnce(&mut Stream, &mut Around<'_>) -> R,
    ) -> Option<R> {
        let stream = self.streams.get_mut(&id.thread).filter(|stream| stream.id() == id)?;
        let (link, out, writes) = (self.link, &mut self.out, &mut self.writes);
        let taken = take(stream, &mut Around { now, link, out, writes });
        if stream.is_over() {
            self.retained.drop(id.thread);
            if let Some(consumer) = self.keep_alive.handle_removed(id.thread) {
                self.leave(now, consumer);
            }
        }
        self.tend(now);
        Some(taken)
    }

    fn with_thread<R>(
        &mut self,
        now: Instant,
        thread: ThreadId,
        take: impl FnOnce(&mut Stream, &mut Around<'_>) -> R,
    ) -> Option<R> {
        let id = self.streams.get(&thread)?.id();
        self.with(now, id, take)
    }

    /// Lets every stream take something in.
    pub(super) fn each(&mut self, now: Instant, take: impl Fn(&mut Stream, &mut Around<'_>)) {
        for stream in self.streams.values_mut() {
            let (link, out, writes) = (self.link, &mut self.out, &mut self.writes);
            take(stream, &mut Around { now, link, out, writes });
        }
        self.tend(now);
    }

    /// An attempt to connect is under way.
    pub fn handle_connecting(&mut self, now: Instant) {
        if self.link == Link::Down {
            self.handle_link(now, Link::Connecting);
        }
    }

    /// A session is ready. The subscriptions follow it by themselves.
    pub fn handle_connected(&mut self, now: Instant) {
        self.handle_link(now, Link::Up);
    }

    /// The session is gone, or has been replaced: in that case [`Self::handle_connected`] follows.
    /// What is held stays, and is not known to be current.
    pub fn handle_disconnected(&mut self, now: Instant) {
        self.handle_link(now, Link::Down);
    }

    fn handle_link(&mut self, now: Instant, link: Link) {
        self.link = link;
        self.each(now, Stream::handle_link);
    }

    /// The cached copy was read: nothing if there is none, or it is unreadable.
    pub fn handle_cached(&mut self, now: Instant, stream: StreamId, cached: Option<Held>) {
        self.with(now, stream, |stream, around| stream.handle_cached(cached, around));
    }

    /// A write of the cache is over, whether it worked or not.
    pub fn handle_written(&mut self, write: WriteId) {
        self.writes.handle_written(write, &mut self.out);
    }

    /// A subscription begins on a session: what it is to begin with. Nothing if the stream has
    /// ended or the thread is gone; then the subscription is to be closed.
    pub fn subscription_input(
        &mut self,
        now: Instant,
        stream: StreamId,
    ) -> Option<ThreadSubscribe> {
        self.with(now, stream, Stream::subscription_input).flatten()
    }

    /// An item of a subscription.
    pub fn handle_item(&mut self, now: Instant, stream: StreamId, item: ThreadItem) {
        self.with(now, stream, |stream, around| stream.handle_item(item, around));
    }

    /// An item of a subscription that could not be read. What follows it is not taken in before a
    /// snapshot has closed the gap.
    pub fn handle_unreadable(&mut self, now: Instant, stream: StreamId) {
        self.with(now, stream, Stream::handle_unreadable);
    }

    /// A subscription failed on its session. When it begins anew is the boundary's to decide.
    pub fn handle_failed(&mut self, now: Instant, stream: StreamId, failure: Failure) {
        self.with(now, stream, |stream, around| stream.handle_failed(failure, around));
    }

    /// The host has said of this stream's thread that it is gone or was never there, in answer to
    /// its subscription or to a read of it. Final for the stream; its cached copy is removed.
    pub fn handle_gone(&mut self, now: Instant, stream: StreamId) {
        self.with(now, stream, Stream::handle_gone);
    }

    /// A person wants older content of a thread. Returns whether a page is asked for now: not while
    /// one is on its way, and not at the beginning of the thread.
    pub fn load_older(&mut self, now: Instant, thread: ThreadId) -> bool {
        self.with_thread(now, thread, Stream::load_older).unwrap_or_default()
    }

    /// A person no longer waits for it.
    pub fn cancel_older(&mut self, now: Instant, thread: ThreadId) {
        self.with_thread(now, thread, Stream::cancel_older);
    }

    /// The stream that a page was asked for by, while it is awaited: for a host that answers that
    /// the thread is gone ([`Self::handle_gone`]).
    #[must_use]
    pub fn awaiting(&self, fetch: FetchId) -> Option<StreamId> {
        self.streams.values().find(|stream| stream.awaits(fetch)).map(Stream::id)
    }

    /// A page has come, or has not.
    pub fn handle_page(&mut self, now: Instant, fetch: FetchId, answer: Result<Page, Failure>) {
        let Some(id) = self.awaiting(fetch) else { return };
        self.with(now, id, |stream, around| stream.handle_page(fetch, answer, around));
    }

    /// The list says this of a thread.
    pub fn handle_shell_row(&mut self, now: Instant, row: &ShellRow) {
        if self.options.keep_alive {
            self.keep_alive.handle_row(row);
        }
        self.with_thread(now, row.id, |stream, around| stream.handle_row(row, around));
        self.tend(now);
    }

    /// The list is this, whole: a snapshot of it. That a thread is not in it proves nothing but
    /// that it does not run.
    pub fn handle_shell(&mut self, now: Instant, rows: &[Arc<ShellRow>]) {
        if self.options.keep_alive {
            self.keep_alive.handle_list(rows.iter().map(Arc::as_ref));
        }
        for row in rows {
            if let Some(stream) = self.streams.get_mut(&row.id) {
                let (link, out, writes) = (self.link, &mut self.out, &mut self.writes);
                stream.handle_row(row, &mut Around { now, link, out, writes });
            }
        }
        self.tend(now);
    }

    /// A thread left the list: it was archived or deleted. It is not kept alive any more; whoever
    /// looks at it goes on looking, and its own stream says whether it is gone.
    pub fn handle_shell_removed(&mut self, now: Instant, thread: ThreadId) {
        if let Some(consumer) = self.keep_alive.handle_removed(thread) {
            self.leave(now, consumer);
        }
        self.tend(now);
    }

    /// The host's newest event, as an answer to a probe or a heartbeat says it. It counts the
    /// events of all threads, so it shows only of which start of the host it speaks; whether a
    /// thread has changed, its row says. So a client that comes back asks for what is behind and
    /// for nothing else.
    pub fn handle_head(&mut self, now: Instant, head: Cursor) {
        self.each(now, |stream, around| stream.handle_head(head, around));
    }
}
