//! What a person does here, and what follows.

use std::time::Duration;

use wakeful_link::{Instant, threads::ThreadState};
use wakeful_wire::{
    Timestamp,
    rpc::{
        Call, ClientId, OneThread, Prompt, Remember, ThreadCancel, ThreadId, ThreadPrompt,
        ThreadUnqueue,
    },
};

use super::{
    super::{
        super::short,
        answer::{Command, HELP, Typed},
        args::Approve,
        exit,
        harmless::one_line,
        outbox::Full,
        shown::Earlier,
    },
    Act, End, Input, Rows, Said, Session,
    calls::answer_of,
    lists::{LISTED_MAX, newest_first},
};

/// How much of a prompt is shown that was not confirmed, in letters.
const PROMPT_SHOWN: usize = 60;

/// Within this time a second interrupt leaves.
const TWICE: Duration = Duration::from_secs(2);

/// What an input is looked at beside.
#[derive(Debug)]
pub(in crate::cmd::attach) struct Moment<'a> {
    /// The link's clock.
    pub(in crate::cmd::attach) now: Instant,
    /// The wall clock.
    pub(in crate::cmd::attach) clock: Timestamp,
    /// The id of a prompt, if one is made of it.
    pub(in crate::cmd::attach) fresh: ClientId,
    /// The host's threads.
    pub(in crate::cmd::attach) rows: Rows,
    /// The shown thread.
    pub(in crate::cmd::attach) thread: Option<&'a ThreadState>,
}

impl Session {
    /// Takes in what a person does.
    pub(in crate::cmd::attach) fn handle_input(&mut self, input: Input, moment: Moment<'_>) {
        match input {
            Input::Line(line) => self.typed(&line, moment),
            Input::End => self.leaves(exit::DONE),
            Input::Interrupt => self.interrupt(moment.now),
            // The terminal is given back as it was.
            Input::Terminated => self.ends(End::Code(exit::TERMINATED)),
            Input::Resized => {}
        }
        self.send();
    }

    fn typed(&mut self, line: &str, moment: Moment<'_>) {
        let asked = self.shown.as_ref().is_some_and(|shown| !shown.pending().is_empty());
        let typed = Typed::read(line, asked);
        if typed != Typed::Nothing && self.standing.is_connected() {
            self.acts.push_back(Act::Active);
        }
        match typed {
            Typed::Nothing => {}
            Typed::Prompt(text) => self.prompt(text, moment.fresh),
            Typed::Option(number, remember) => self.answer_by_number(number, remember),
            Typed::Command(command) => self.command(command, moment),
            Typed::Misused(word) => self.note(format!(
                "`/{word}` is not used so; `/help` says how, and a line that begins with `//` goes to \
                 the agent"
            )),
        }
    }

    fn command(&mut self, command: Command, moment: Moment<'_>) {
        match command {
            Command::Help => self.note(HELP),
            Command::Threads => self.list(moment.rows, moment.clock),
            Command::Switch(text) => self.switch(&text, moment.rows, moment.clock),
            Command::Queue => self.list_queue(),
            Command::Unqueue(text) => self.unqueue(&text),
            Command::Release => {
                if let Some(thread) = self.thread() {
                    self.put(Call::ThreadRelease(OneThread { thread }));
                }
            }
            Command::Cancel => self.cancel("the turn is cancelled", "nothing runs"),
            Command::Answer(approve, remember) => self.answer_by_rule(approve, remember),
            Command::Older => self.earlier(moment.thread),
            Command::Retry => self.acts.push_back(Act::Retry),
            Command::Wake => {
                if self.standing.is_connected() {
                    self.note("it is awake");
                } else {
                    self.acts.push_back(Act::Wake);
                }
            }
            Command::Quit => self.leaves(exit::DONE),
        }
    }

    /// Leaves. A prompt that the host has not confirmed goes with this view, so it is said, and the
    /// end is not one where all was done.
    fn leaves(&mut self, code: u8) {
        let prompts: Vec<_> =
            self.outbox.prompts().map(|text| one_line(&text, PROMPT_SHOWN)).collect();
        if prompts.is_empty() {
            return self.ends(End::Code(code));
        }
        self.note(format!("not confirmed by the host, and not kept here: {}", prompts.join(" | ")));
        let code = if code == exit::DONE { exit::NOT_COMPLETED } else { code };
        self.ends(End::Code(code));
    }

    fn prompt(&mut self, text: String, fresh: ClientId) {
        let Some(thread) = self.thread() else {
            return self.note("there is no thread to write to yet; that was not taken");
        };
        let prompt = Prompt::text(fresh, text);
        if !self.put(Call::ThreadPrompt(ThreadPrompt { thread, prompt })) {
            return;
        }
        if self.standing.is_asleep() {
            self.acts.push_back(Act::Wake);
            self.note("asleep: it is woken for this, and the prompt is sent then");
        } else if !self.standing.is_connected() {
            self.note("not connected: the prompt is sent as soon as the host is there");
        }
    }

    fn answer_by_number(&mut self, number: usize, remember: bool) {
        let Some(oldest) = self.shown.as_ref().and_then(|shown| shown.pending().first()) else {
            return;
        };
        let option = number.checked_sub(1).and_then(|place| oldest.options.get(place));
        let Some(option) = option.map(|option| option.id.clone()) else {
            let most = oldest.options.len();
            return self.note(format!("answer with a number from 1 to {most}"));
        };
        self.answer(option, remember);
    }

    fn answer_by_rule(&mut self, approve: Approve, remember: bool) {
        let oldest = self.shown.as_ref().and_then(|shown| shown.pending().first());
        let Some(oldest) = oldest else {
            return self.note("nothing is asked for");
        };
        match approve.choose(&oldest.options).map(|option| option.id.clone()) {
            Some(option) => self.answer(option, remember),
            None => self.note("no such answer is offered; answer with a number"),
        }
    }

    /// Answers the oldest permission.
    fn answer(&mut self, option: String, remember: bool) {
        let Some(shown) = &self.shown else { return };
        let Some(request) = shown.pending().first().map(|oldest| oldest.request) else { return };
        let answers =
            |call: &Call| matches!(call, Call::ThreadAnswer(answer) if answer.request == request);
        if self.outbox.any(answers) {
            return self.note("that is answered already, and on its way");
        }
        let remember = remember.then_some(Remember::Thread);
        let answer = answer_of(shown, request, option, remember);
        self.put(answer);
    }

    /// Whether there was room.
    fn put(&mut self, call: Call) -> bool {
        match self.outbox.put(call) {
            Ok(()) => true,
            Err(Full) => {
                self.note("too much waits for the host; that was not taken");
                false
            }
        }
    }

    fn interrupt(&mut self, now: Instant) {
        let again = self.interrupted.is_some_and(|last| now.since(last) < TWICE);
        if again || !self.interactive {
            return self.leaves(exit::INTERRUPTED);
        }
        self.interrupted = Some(now);
        self.cancel(
            "the turn is cancelled; press Ctrl-C again to leave",
            "nothing runs; press Ctrl-C again to leave",
        );
    }

    /// Asks the running turn to end. What is not sent yet is sent only to that turn.
    fn cancel(&mut self, done: &'static str, idle: &'static str) {
        let shown = self.shown.as_ref();
        let running = shown.and_then(|shown| Some((shown.thread(), shown.running()?)));
        let Some((thread, turn)) = running else { return self.note(idle) };
        let cancel = Call::ThreadCancel(ThreadCancel { thread, turn: Some(turn) });
        if self.outbox.any(|waiting| *waiting == cancel) || self.put(cancel) {
            let when = if self.standing.is_connected() { "" } else { ", once the host is there" };
            self.note(format!("{done}{when}"));
        }
    }

    fn earlier(&mut self, state: Option<&ThreadState>) {
        let Some(shown) = &mut self.shown else { return };
        let (thread, mut changes) = (shown.thread(), Vec::new());
        let earlier = shown.show_earlier(state, &mut changes);
        match earlier {
            Earlier::Shown => self.said.push_back(Said::Changes(changes)),
            Earlier::Load if self.standing.is_connected() => {
                self.acts.push_back(Act::LoadOlder(thread));
            }
            Earlier::Load => self.note("not connected: what is earlier cannot be had now"),
            Earlier::Beginning => self.note("that is the beginning of the thread"),
            Earlier::Unknown => self.note("nothing of the thread is there yet"),
        }
    }

    fn switch(&mut self, text: &str, rows: Rows, clock: Timestamp) {
        if self.listed.is_empty() {
            self.listed = newest_first(rows.clone()).into_iter().map(|row| row.id).collect();
        }
        let numbered = text
            .parse::<usize>()
            .ok()
            .filter(|number| *number <= self.listed.len().min(LISTED_MAX))
            .and_then(|number| self.listed.get(number.checked_sub(1)?).copied());
        let found = match numbered {
            Some(thread) => Ok(thread),
            None => match text.parse::<ThreadId>() {
                Ok(thread) => Ok(thread),
                Err(_) => short::find(rows.iter().map(|row| row.id), text, "thread", "/threads"),
            },
        };
        match found {
            Err(error) => {
                self.note(error.to_string());
                if rows.len() <= LISTED_MAX {
                    self.list(rows, clock);
                }
            }
            Ok(thread) if self.thread() == Some(thread) => self.note("that is this thread"),
            Ok(thread) => self.show(thread),
        }
    }

    fn unqueue(&mut self, text: &str) {
        let Some(shown) = &self.shown else { return };
        let place = text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let waiting = place.and_then(|place| shown.queue().get(place));
        match waiting.map(|waiting| waiting.prompt.client) {
            Some(client) => {
                let thread = shown.thread();
                self.put(Call::ThreadUnqueue(ThreadUnqueue { thread, client }));
            }
            None => self.note("no such prompt waits; `/queue` lists them"),
        }
    }
}
