//! A thread's line: what it does, how long, and since when.

use std::time::Duration;

use wakeful_wire::{
    Timestamp,
    rpc::{Outcome, ShellRow, StopReason},
};

/// What a thread does, in a few words. What waits for a person comes first.
pub(super) fn state(row: &ShellRow, now: Timestamp) -> String {
    if row.pending == 1 {
        return "waits for an answer".to_owned();
    }
    if row.pending > 1 {
        return format!("waits for {} answers", row.pending);
    }
    if let Some(since) = row.running_since {
        let what = if row.cancelling { "stopping" } else { "working" };
        let working = format!("{what} {}", coarse(now.since(since)));
        return match row.queued {
            0 => working,
            queued => format!("{working}, {queued} queued"),
        };
    }
    if row.queued > 0 {
        return if row.held {
            format!("queue held ({})", row.queued)
        } else {
            format!("{} queued", row.queued)
        };
    }
    if row.background {
        return "works in the background".to_owned();
    }
    if let Some(until) = row.snoozed_until.filter(|until| *until > now) {
        return format!("snoozed for {}", coarse(now.until(until)));
    }
    if row.settled.is_some() {
        return "settled".to_owned();
    }
    outcome(row.last_outcome.as_ref()).to_owned()
}

/// What is left of the last turn.
const fn outcome(outcome: Option<&Outcome>) -> &'static str {
    match outcome {
        Some(Outcome::Failed { .. }) => "failed",
        Some(Outcome::Cancelled { .. }) => "cancelled",
        Some(Outcome::Cut) => "cut",
        Some(Outcome::Completed { reason: StopReason::Refusal }) => "refused",
        Some(Outcome::Completed { .. } | Outcome::Other) | None => "idle",
    }
}

/// Since when nothing has happened.
pub(in crate::cmd) fn ago(at: Timestamp, now: Timestamp) -> String {
    let ago = now.since(at);
    if ago < Duration::from_secs(60) {
        "just now".to_owned()
    } else {
        format!("{} ago", coarse(ago))
    }
}

/// A duration in its largest unit, rounded down.
pub(in crate::cmd) fn coarse(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let largest = units.iter().find(|(unit, _)| seconds >= *unit);
    largest.map_or_else(|| "0s".to_owned(), |(unit, name)| format!("{}{name}", seconds / unit))
}

#[cfg(test)]
mod tests {
    use wakeful_wire::rpc::Settled;

    use super::{
        super::tests::{NOW, row},
        *,
    };

    #[test]
    fn a_thread_says_what_it_does_and_what_waits_for_a_person_first() {
        type Change = &'static dyn Fn(&mut ShellRow);
        let table: [(Change, &str); 18] = [
            (&|_| {}, "idle"),
            (&|row| row.running_since = Some(Timestamp(NOW.0 - 200_000)), "working 3m"),
            (
                &|row| {
                    row.running_since = Some(Timestamp(NOW.0 - 7_000));
                    row.queued = 2;
                },
                "working 7s, 2 queued",
            ),
            (
                &|row| {
                    row.running_since = Some(NOW);
                    row.cancelling = true;
                },
                "stopping 0s",
            ),
            (
                &|row| {
                    row.running_since = Some(NOW);
                    row.pending = 1;
                },
                "waits for an answer",
            ),
            (&|row| row.pending = 3, "waits for 3 answers"),
            (&|row| row.queued = 4, "4 queued"),
            (
                &|row| {
                    row.queued = 1;
                    row.held = true;
                    row.last_outcome = Some(Outcome::Cut);
                },
                "queue held (1)",
            ),
            (&|row| row.held = true, "idle"),
            (&|row| row.background = true, "works in the background"),
            (&|row| row.snoozed_until = Some(Timestamp(NOW.0 + 7_200_000)), "snoozed for 2h"),
            (&|row| row.snoozed_until = Some(NOW), "idle"),
            (&|row| row.settled = Some(Settled { at: NOW, by: Default::default() }), "settled"),
            (&|row| row.last_outcome = Some(Outcome::Failed { message: "x".into() }), "failed"),
            (&|row| row.last_outcome = Some(Outcome::Cancelled { obeyed: true }), "cancelled"),
            (&|row| row.last_outcome = Some(Outcome::Cut), "cut"),
            (
                &|row| {
                    row.last_outcome = Some(Outcome::Completed { reason: StopReason::Refusal });
                },
                "refused",
            ),
            (
                &|row| {
                    row.last_outcome = Some(Outcome::Completed { reason: StopReason::EndTurn });
                },
                "idle",
            ),
        ];
        for (change, expected) in table {
            let mut row = row(1);
            change(&mut row);
            assert_eq!(state(&row, NOW), expected);
        }
    }

    #[test]
    fn time_is_told_in_its_largest_unit() {
        let table = [
            (0, "just now"),
            (59_999, "just now"),
            (60_000, "1m ago"),
            (3 * 3_600_000 + 5, "3h ago"),
            (50 * 3_600_000, "2d ago"),
        ];
        for (millis, expected) in table {
            assert_eq!(ago(Timestamp(NOW.0 - millis), NOW), expected);
        }
        assert_eq!(ago(Timestamp(NOW.0 + 1), NOW), "just now", "clocks differ");
    }
}
