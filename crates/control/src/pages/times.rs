//! Moments and durations for people.

use std::time::Duration;

use maud::{Markup, html};
use wakeful_wire::Timestamp;

/// How long ago something was: `just now`, `5 minutes ago`, with the moment itself for whoever asks.
pub(super) fn ago(at: Timestamp, now: Timestamp) -> Markup {
    let text = match now.since(at) {
        age if age < Duration::from_secs(60) => "just now".to_owned(),
        age => format!("{} ago", span(age)),
    };
    moment(at, &text)
}

/// How long until something is: `in 5 days`.
pub(super) fn ahead(at: Timestamp, now: Timestamp) -> Markup {
    moment(at, &format!("in {}", span(now.until(at))))
}

fn moment(at: Timestamp, text: &str) -> Markup {
    let iso = iso(at);
    html! { time datetime=(iso) title=(iso) { (text) } }
}

/// The largest unit that fits, in words.
pub(super) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (count, unit) = match seconds {
        0..=59 => (seconds, "second"),
        60..=3_599 => (seconds / 60, "minute"),
        3_600..=86_399 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

/// A moment in ISO 8601, in UTC, to the second.
pub(super) fn iso(at: Timestamp) -> String {
    let seconds = at.0 / 1_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days to a date of the Gregorian calendar, counted in years that begin in March, so that the
    // leap day is the last of its year.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest % 3_600 / 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates_of_the_calendar() {
        let table = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_102_444_800, "2100-01-01T00:00:00Z"),
        ];
        for (seconds, text) in table {
            assert_eq!(iso(Timestamp(seconds * 1_000)), text);
        }
    }

    #[test]
    fn spans_have_one_unit() {
        assert_eq!(span(Duration::from_secs(1)), "1 second");
        assert_eq!(span(Duration::from_secs(119)), "1 minute");
        assert_eq!(span(Duration::from_secs(7_200)), "2 hours");
        assert_eq!(span(Duration::from_secs(86_400 * 7)), "7 days");
    }
}
