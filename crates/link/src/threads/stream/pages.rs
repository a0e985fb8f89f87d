//! Older pages of one stream.

use wakeful_wire::rpc::{Page, PageCursor};

use super::{Around, Stream};
use crate::{
    Failure,
    threads::{
        action::{Action, FetchId},
        older::Answered,
    },
};

impl Stream {
    /// Asks for an older page, if there is one and none is on its way. Returns whether it does.
    pub(in crate::threads) fn load_older(&mut self, around: &mut Around<'_>) -> bool {
        let before = self.older.may_begin(self.state.held.as_ref());
        if let Some(before) = before {
            self.fetch(before, around);
        }
        self.publish(false, around);
        before.is_some()
    }

    fn fetch(&mut self, before: PageCursor, around: &mut Around<'_>) {
        let fetch = FetchId(around.out.draw());
        self.older.begun(around.now, fetch, before);
        around.out.push(Action::FetchPage { fetch, thread: self.id.thread, before });
    }

    /// A page has come, or has not.
    pub(in crate::threads) fn handle_page(
        &mut self,
        fetch: FetchId,
        answer: Result<Page, Failure>,
        around: &mut Around<'_>,
    ) {
        match self.older.handle(fetch, self.state.held.as_mut(), answer) {
            Answered::Ignored => return,
            Answered::Done => self.loaded = true,
            Answered::Over => {}
            Answered::Anew(before) => self.fetch(before, around),
        }
        self.publish(true, around);
    }

    /// Whether this page is awaited.
    pub(in crate::threads) fn awaits(&self, fetch: FetchId) -> bool {
        self.older.awaits(fetch)
    }

    /// Ends the load of a page, if one runs.
    pub(in crate::threads) fn cancel_older(&mut self, around: &mut Around<'_>) {
        self.cancel_page(around);
        self.publish(false, around);
    }

    pub(super) fn cancel_page(&mut self, around: &mut Around<'_>) {
        if let Some(fetch) = self.older.cancel() {
            around.out.push(Action::CancelFetch { fetch });
        }
    }

    pub(super) fn end_late_page(&mut self, around: &mut Around<'_>) {
        if let Some(fetch) = self.older.handle_timeout(around.now) {
            around.out.push(Action::CancelFetch { fetch });
        }
    }
}
