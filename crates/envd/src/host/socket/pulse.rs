//! Heartbeats, silence, and a client that takes nothing: decided by times that are passed in.

use std::time::Duration;

use tokio::time::Instant;

/// How long the writing of one frame may take, beside what its length allows.
pub(super) const WRITE_TIME: Duration = Duration::from_secs(60);
/// One more second is allowed for as many bytes of a frame.
pub(super) const WRITE_PACE: usize = 16 * 1024;
/// After so many heartbeats without a sign of a client it is taken for gone.
pub(super) const SILENCE: u32 = 3;

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// A heartbeat, and a ping with it.
    Heartbeat,
    /// A ping: things are sent, but nothing is heard.
    Ping,
    /// The client has been silent for too long.
    Silent,
    /// The client takes nothing.
    Stuck,
}

/// The times of one socket.
#[derive(Debug)]
pub(super) struct Pulse {
    every: Duration,
    sent: Instant,
    heard: Instant,
    pinged: Instant,
    /// Until when the frame that is being written must have been taken.
    write_until: Option<Instant>,
}

impl Pulse {
    /// A socket that opens now. `every` is how long the host is silent at most.
    pub(super) fn new(every: Duration, now: Instant) -> Self {
        let every = every.max(Duration::from_millis(1));
        Self { every, sent: now, heard: now, pinged: now, write_until: None }
    }

    /// Something came from the client, or nothing is being read from it.
    pub(super) const fn handle_heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// A frame of this many bytes begins to be written.
    pub(super) fn handle_writing(&mut self, now: Instant, bytes: usize) {
        let paced = u64::try_from(bytes / WRITE_PACE).unwrap_or(u64::MAX);
        self.write_until = Some(now + WRITE_TIME + Duration::from_secs(paced));
    }

    /// It was taken.
    pub(super) const fn handle_written(&mut self, now: Instant) {
        self.sent = now;
        self.write_until = None;
    }

    /// What is due now; what was returned is not due again at once.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Due> {
        if self.write_until.is_some_and(|until| until <= now) {
            return Some(Due::Stuck);
        }
        if self.heard + self.every * SILENCE <= now {
            return Some(Due::Silent);
        }
        if self.write_until.is_none() && self.sent + self.every <= now {
            self.sent = now;
            self.pinged = now;
            return Some(Due::Heartbeat);
        }
        if self.heard.max(self.pinged) + self.every <= now {
            self.pinged = now;
            return Some(Due::Ping);
        }
        None
    }

    /// When to poll again at the latest, whatever happens until then.
    pub(super) fn poll_deadline(&self, now: Instant) -> Instant {
        let mut deadline = now + self.every.min(WRITE_TIME);
        deadline = deadline.min(self.heard + self.every * SILENCE);
        deadline = deadline.min(self.heard.max(self.pinged) + self.every);
        match self.write_until {
            Some(until) => deadline.min(until),
            None => deadline.min(self.sent + self.every),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(30);
    const MOMENT: Duration = Duration::from_millis(1);

    /// Polls at each deadline until `until`, hearing the client every `hears`.
    fn run(mut pulse: Pulse, from: Instant, until: Instant, busy: bool) -> Vec<(u64, Due)> {
        let mut seen = Vec::new();
        let mut now = from;
        while now < until {
            now = pulse.poll_deadline(now).max(now + MOMENT);
            if busy && pulse.write_until.is_none() {
                pulse.handle_written(now);
            }
            while let Some(due) = pulse.poll(now) {
                seen.push(((now - from).as_secs(), due));
                if matches!(due, Due::Silent | Due::Stuck) {
                    return seen;
                }
            }
        }
        seen
    }

    #[test]
    fn a_silent_client_gets_two_heartbeats_and_is_gone_at_the_third() {
        let now = Instant::now();
        let seen = run(Pulse::new(EVERY, now), now, now + EVERY * 10, false);
        assert_eq!(seen, [(30, Due::Heartbeat), (60, Due::Heartbeat), (90, Due::Silent)]);
    }

    #[test]
    fn a_client_that_only_listens_to_a_flood_is_pinged_too() {
        let now = Instant::now();
        let seen = run(Pulse::new(EVERY, now), now, now + EVERY * 10, true);
        assert_eq!(seen, [(30, Due::Ping), (60, Due::Ping), (90, Due::Silent)]);
    }

    #[test]
    fn a_client_that_takes_nothing_is_told_from_a_slow_one_by_the_size_of_the_frame() {
        for (bytes, seconds) in [(10, 60), (1024 * 1024, 124)] {
            let now = Instant::now();
            let mut pulse = Pulse::new(EVERY, now);
            pulse.handle_writing(now, bytes);
            let last = Duration::from_secs(seconds);
            pulse.handle_heard(now + last - EVERY);
            let mut times = pulse.poll(now + last - MOMENT).into_iter();
            assert!(!times.any(|due| due == Due::Stuck), "{bytes}");
            assert_eq!(pulse.poll(now + last), Some(Due::Stuck), "{bytes}");
        }
    }

    #[test]
    fn while_a_frame_is_being_written_no_heartbeat_is_due() {
        let now = Instant::now();
        let mut pulse = Pulse::new(EVERY, now);
        pulse.handle_writing(now, 1);
        pulse.handle_heard(now + EVERY);
        assert_eq!(pulse.poll(now + EVERY), None);
        pulse.handle_written(now + EVERY);
        assert_eq!(pulse.poll(now + EVERY), None);
    }

    #[test]
    fn a_client_that_is_heard_stays() {
        let now = Instant::now();
        let mut pulse = Pulse::new(EVERY, now);
        for beat in 1..20 {
            pulse.handle_heard(now + EVERY * beat);
            assert_eq!(pulse.poll(now + EVERY * beat), Some(Due::Heartbeat));
        }
    }
}
