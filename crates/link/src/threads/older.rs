//! Older pages: one load at a time, asked for by a person.

use std::time::Duration;

use wakeful_wire::rpc::{Page, PageCursor, Prepended};

use super::{Held, action::FetchId};
use crate::{Failure, FailureReason, Instant};

/// How long a page is waited for: longer than an HTTP request takes on a bad way, so it ends only
/// what nobody answers.
pub const PAGE_WAIT: Duration = Duration::from_secs(60);
/// How often a page that does not fit is asked for anew. One that was read too early fits at the
/// second time; a thread that outruns three pages in a row is left alone.
pub const STALE_MAX: u32 = 3;
/// Most segments in a window that a person has made longer; more are not loaded, and of more the
/// oldest go.
pub const LOADED_SEGMENTS_MAX: usize = 2_000;
/// Most bytes of JSON in a window; more is not loaded.
pub const LOADED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The load of one older page.
#[derive(Debug, Default)]
pub(super) struct Older {
    running: Option<Load>,
    error: Option<Failure>,
}

#[derive(Debug)]
struct Load {
    fetch: FetchId,
    asked: PageCursor,
    /// How often a page did not fit.
    stale: u32,
    until: Instant,
}

/// What an answer led to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// It belongs to no load that still runs.
    Ignored,
    /// The load is over: the page is in.
    Done,
    /// The load is over without one.
    Over,
    /// The page did not fit; it is to be asked for anew.
    Anew(PageCursor),
}

impl Older {
    /// Whether a load runs.
    pub(super) const fn is_loading(&self) -> bool {
        self.running.is_some()
    }

    /// Whether this answer is awaited.
    pub(super) fn awaits(&self, fetch: FetchId) -> bool {
        self.running.as_ref().is_some_and(|load| load.fetch == fetch)
    }

    /// Why the last load failed.
    pub(super) const fn error(&self) -> Option<&Failure> {
        self.error.as_ref()
    }

    /// Where a load may begin; nothing while one runs, at the beginning of the thread, and where
    /// the window is too large already, which is then the error.
    pub(super) fn may_begin(&mut self, held: Option<&Held>) -> Option<PageCursor> {
        let held = held.filter(|_| self.running.is_none())?;
        let before = held.before()?;
        if held.segments() >= LOADED_SEGMENTS_MAX || held.weight() >= LOADED_BYTES_MAX {
            let detail = "Too much of this thread is loaded for more of it.";
            self.error = Some(Failure::new(FailureReason::Overloaded, detail));
            return None;
        }
        Some(before)
    }

    /// A page was asked for; anew, if a load runs.
    pub(super) fn begun(&mut self, now: Instant, fetch: FetchId, asked: PageCursor) {
        let stale = self.running.as_ref().map_or(0, |load| load.stale + 1);
        self.error = None;
        self.running = Some(Load { fetch, asked, stale, until: now.after(PAGE_WAIT) });
    }

    /// Takes in an answer. The page goes into the window only where that still begins where it was
    /// asked for.
    pub(super) fn handle(
        &mut self,
        fetch: FetchId,
        held: Option<&mut Held>,
        answer: Result<Page, Failure>,
    ) -> Answered {
        let Some(load) = self.running.take_if(|load| load.fetch == fetch) else {
            return Answered::Ignored;
        };
        let page = match answer {
            Ok(page) => page,
            Err(failure) => {
                self.error = Some(failure);
                return Answered::Over;
            }
        };
        let Some(held) = held.filter(|held| held.before() == Some(load.asked)) else {
            return Answered::Over;
        };
        let asked = load.asked;
        match held.prepend(asked, page) {
            Prepended::Done => Answered::Done,
            Prepended::Stale if load.stale < STALE_MAX => {
                self.running = Some(load);
                Answered::Anew(asked)
            }
            Prepended::Stale => {
                let detail = "The thread changes faster than its older content can be read.";
                self.error = Some(Failure::new(FailureReason::Remote, detail));
                Answered::Over
            }
        }
    }

    /// Ends the load, if one runs. Returns its request.
    pub(super) fn cancel(&mut self) -> Option<FetchId> {
        self.error = None;
        self.running.take().map(|load| load.fetch)
    }

    /// When the page is no longer waited for.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.running.as_ref().map(|load| load.until)
    }

    /// Ends the load if its time is up. Returns its request.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Option<FetchId> {
        let late = self.running.take_if(|load| load.until <= now)?;
        let detail = "The host did not send the older content in time.";
        self.error = Some(Failure::new(FailureReason::Timeout, detail));
        Some(late.fetch)
    }
}
