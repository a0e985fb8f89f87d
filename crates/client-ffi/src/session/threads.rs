//! Threads: reading them, and what a person does in them.

use uuid::Uuid;
use wakeful_wire::{
    HostId,
    rpc::{
        AnswerPermission, Call, ClientId, Prompt, Remember, RequestId, Taken, ThreadCancel,
        ThreadCreate, ThreadId, ThreadPrompt, TurnId,
    },
};

use super::ClientSession;
use crate::{
    error::{ClientError, id},
    view::thread::{ThreadList, ThreadRow, ThreadView},
};

/// What a thread is made with. Everything may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, uniffi::Record)]
pub struct NewThread {
    /// Its id, a UUID in lower case. Given again, the same thread is meant and none is made twice.
    /// Absent: one is drawn.
    #[uniffi(default = None)]
    pub id: Option<String>,
    /// The agent's name; absent: the host's default.
    #[uniffi(default = None)]
    pub agent: Option<String>,
    /// The directory of the workspace that it works in; absent: the workspace itself.
    #[uniffi(default = None)]
    pub project: Option<String>,
    /// Its title.
    #[uniffi(default = None)]
    pub title: Option<String>,
    /// Its first prompt.
    #[uniffi(default = None)]
    pub prompt: Option<String>,
}

/// How far an answer is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, uniffi::Enum)]
pub enum Remembered {
    /// In this thread.
    Thread,
    /// In every thread of the same project and agent.
    Project,
}

impl From<Remembered> for Remember {
    fn from(remembered: Remembered) -> Self {
        match remembered {
            Remembered::Thread => Self::Thread,
            Remembered::Project => Self::Project,
        }
    }
}

#[uniffi::export]
impl ClientSession {
    /// A host's list, as it is shown beside those of others: it stays as it is while several of
    /// them are brought up to date, and then moves once. Readable without a connection.
    ///
    /// # Errors
    /// [`ClientError::NoSuchHost`], [`ClientError::Invalid`], [`ClientError::Closed`].
    pub fn threads(&self, host: &str) -> Result<ThreadList, ClientError> {
        let host = id("host", host)?;
        let live = self.live()?;
        let live_at = live.client.cached_at(host);
        let (state, rows, settled) = live.with_host(host, |link, _| {
            let state = link.shell(host).cloned().unwrap_or_default();
            // Shared with the link, and ordered when nobody waits for its lock.
            let rows = link.shown(host).or(state.list.as_ref()).cloned();
            (state, rows, link.settled_count(host).unwrap_or_default())
        })?;
        let rows = rows.map(|rows| rows.newest_first()).unwrap_or_default();
        Ok(ThreadList::of(&state, &rows, live_at, settled))
    }

    /// The row of one thread as it is known at this moment, also where lists wait. Absent does not
    /// show that the thread is gone.
    ///
    /// # Errors
    /// [`ClientError::NoSuchHost`], [`ClientError::Invalid`], [`ClientError::Closed`].
    pub fn thread_row(&self, host: &str, thread: &str) -> Result<Option<ThreadRow>, ClientError> {
        let (host, thread) = (id("host", host)?, id("thread", thread)?);
        self.live()?.with_host(host, |link, _| link.row(host, thread).map(|row| ThreadRow::of(row)))
    }

    /// Opens a thread: it is followed until it is closed as often as it was opened, and what is
    /// kept of it can be read at once.
    ///
    /// # Errors
    /// [`ClientError::NotDone`] where too many are open, [`ClientError::NoSuchHost`],
    /// [`ClientError::Invalid`], [`ClientError::Closed`].
    pub fn open_thread(&self, host: &str, thread: &str) -> Result<(), ClientError> {
        let (host, thread) = (id("host", host)?, id("thread", thread)?);
        let live = self.live()?;
        let mut opened = live.opened.lock();
        let consumer = live.with_host(host, |link, now| link.mount(now, host, thread))??;
        opened.entry((host, thread)).or_default().push(consumer);
        Ok(())
    }

    /// Closes a thread that was opened. It is kept at hand for five minutes. Harmless for one that
    /// is not open.
    ///
    /// # Errors
    /// [`ClientError::Invalid`], [`ClientError::Closed`].
    pub fn close_thread(&self, host: &str, thread: &str) -> Result<(), ClientError> {
        let (host, thread): (HostId, ThreadId) = (id("host", host)?, id("thread", thread)?);
        let live = self.live()?;
        let mut opened = live.opened.lock();
        let Some(consumers) = opened.get_mut(&(host, thread)) else { return Ok(()) };
        let consumer = consumers.pop();
        if consumers.is_empty() {
            opened.remove(&(host, thread));
        }
        if let Some(consumer) = consumer {
            live.client.with(|link, now| link.unmount(now, host, consumer));
        }
        Ok(())
    }

    /// A thread that is open. Absent for one that is not.
    ///
    /// # Errors
    /// [`ClientError::NoSuchHost`], [`ClientError::Invalid`], [`ClientError::Closed`].
    pub fn thread(&self, host: &str, thread: &str) -> Result<Option<ThreadView>, ClientError> {
        let (host, thread) = (id("host", host)?, id("thread", thread)?);
        let state = self.live()?.with_host(host, |link, _| link.thread(host, thread).cloned())?;
        state.map(|state| ThreadView::of(&state).map_err(|_| ClientError::Internal)).transpose()
    }

    /// Asks for older content of an open thread. Whether some is on its way now.
    ///
    /// # Errors
    /// [`ClientError::NoSuchHost`], [`ClientError::Invalid`], [`ClientError::Closed`].
    pub fn load_older(&self, host: &str, thread: &str) -> Result<bool, ClientError> {
        let (host, thread) = (id("host", host)?, id("thread", thread)?);
        self.live()?.with_host(host, |link, now| link.load_older(now, host, thread))
    }

    /// Makes a thread, with its first prompt if there is one. Returns its id. It is asked for once,
    /// over the connection that there is.
    ///
    /// # Errors
    /// [`ClientError::NotDone`] where there is no connection or the host refuses,
    /// [`ClientError::Uncertain`], [`ClientError::NoSuchHost`], [`ClientError::Invalid`],
    /// [`ClientError::Closed`].
    pub async fn create_thread(
        &self,
        host: String,
        thread: NewThread,
    ) -> Result<String, ClientError> {
        let host: HostId = id("host", &host)?;
        let new: ThreadId = given_or_drawn("thread", thread.id.as_deref(), ThreadId::from_uuid)?;
        let call = Call::ThreadCreate(ThreadCreate {
            thread: new,
            parent: None,
            project: thread.project.unwrap_or_default(),
            agent: thread.agent,
            title: thread.title,
            prompt: thread.prompt.map(|text| Prompt::text(drawn(), text)),
        });
        self.run(|live| async move { live.ask::<Taken>(host, call).await }).await?;
        Ok(new.to_string())
    }

    /// Sends a prompt. `client` names it: sent again with the same one, it is taken once. Absent:
    /// one is drawn. Returns it.
    ///
    /// # Errors
    /// As [`Self::create_thread`]. To be able to send again after [`ClientError::Uncertain`], give
    /// `client`.
    #[uniffi::method(default(client = None))]
    pub async fn send_prompt(
        &self,
        host: String,
        thread: String,
        text: String,
        client: Option<String>,
    ) -> Result<String, ClientError> {
        let (host, thread): (HostId, ThreadId) = (id("host", &host)?, id("thread", &thread)?);
        let client: ClientId = given_or_drawn("prompt", client.as_deref(), ClientId::from_uuid)?;
        let prompt = Prompt::text(client, text);
        let call = Call::ThreadPrompt(ThreadPrompt { thread, prompt });
        self.run(|live| async move { live.ask::<Taken>(host, call).await }).await?;
        Ok(client.to_string())
    }

    /// Answers a permission that an agent asks for. `request` and `option` are of the permission in
    /// the thread's content.
    ///
    /// # Errors
    /// As [`Self::create_thread`].
    #[uniffi::method(default(remember = None))]
    pub async fn answer(
        &self,
        host: String,
        thread: String,
        request: String,
        option: String,
        remember: Option<Remembered>,
    ) -> Result<(), ClientError> {
        let (host, thread): (HostId, ThreadId) = (id("host", &host)?, id("thread", &thread)?);
        let request: RequestId = id("permission", &request)?;
        let remember = remember.map(Into::into);
        let answer = AnswerPermission { thread, request, option, remember };
        let call = Call::ThreadAnswer(answer);
        self.run(|live| async move { live.ask::<Taken>(host, call).await }).await?;
        Ok(())
    }

    /// Asks a turn to end; absent: whichever runs when the host is told.
    ///
    /// # Errors
    /// As [`Self::create_thread`].
    #[uniffi::method(default(turn = None))]
    pub async fn cancel_turn(
        &self,
        host: String,
        thread: String,
        turn: Option<String>,
    ) -> Result<(), ClientError> {
        let (host, thread): (HostId, ThreadId) = (id("host", &host)?, id("thread", &thread)?);
        let turn: Option<TurnId> = turn.map(|turn| id("turn", &turn)).transpose()?;
        let call = Call::ThreadCancel(ThreadCancel { thread, turn });
        self.run(|live| async move { live.ask::<Taken>(host, call).await }).await?;
        Ok(())
    }
}

fn given_or_drawn<T: std::str::FromStr>(
    what: &str,
    given: Option<&str>,
    of: impl FnOnce(Uuid) -> T,
) -> Result<T, ClientError> {
    given.map_or_else(|| Ok(of(Uuid::now_v7())), |given| id(what, given))
}

fn drawn() -> ClientId {
    ClientId::from_uuid(Uuid::now_v7())
}
