//! Durations as people write them: `30m`, `1m30s`, `7d`.

use std::time::Duration;

/// The units, longest first, in milliseconds.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Why a text is not a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Nothing was given.
    #[error("is empty")]
    Empty,
    /// A number without a unit behind it: `30` could be seconds or minutes.
    #[error("needs a unit (ms, s, m, h or d) behind each number")]
    NoUnit,
    /// Anything else that is no number with a unit.
    #[error("is not a duration")]
    Shape,
    /// `1s1m`, or one unit twice.
    #[error("must name each unit once, the longest first")]
    Order,
    /// More than can be counted in milliseconds.
    #[error("is too long")]
    TooLong,
}

/// Reads a duration: whole numbers with a unit of `d`, `h`, `m`, `s`, `ms`, each unit once, the
/// longest first, without signs, spaces or fractions. A bare number is refused, zero too: `0s` is
/// how to write none.
///
/// # Errors
/// What is wrong with the text.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    if text.is_empty() {
        return Err(DurationError::Empty);
    }
    let mut rest = text;
    let mut millis = 0_u64;
    let mut next_unit = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Err(DurationError::Shape);
        }
        let (number, behind) = rest.split_at(digits);
        let letters = behind.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, behind) = behind.split_at(letters);
        if unit.is_empty() {
            return Err(if behind.is_empty() {
                DurationError::NoUnit
            } else {
                DurationError::Shape
            });
        }
        let place = UNITS.iter().position(|(name, _)| *name == unit).ok_or(DurationError::Shape)?;
        if place < next_unit {
            return Err(DurationError::Order);
        }
        next_unit = place + 1;
        let number: u64 = number.parse().map_err(|_| DurationError::TooLong)?;
        millis = number
            .checked_mul(UNITS[place].1)
            .and_then(|part| millis.checked_add(part))
            .ok_or(DurationError::TooLong)?;
        rest = behind;
    }
    Ok(Duration::from_millis(millis))
}

/// Writes a duration as [`parse`] reads it, in the fewest units. Below a millisecond it is `0s`.
#[must_use]
pub fn text(duration: Duration) -> String {
    let mut left = wakeful_wire::time::millis(duration);
    if left == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, millis) in UNITS {
        let number = left / millis;
        if number > 0 {
            text.push_str(&format!("{number}{unit}"));
            left %= millis;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_numbers_with_units_longest_first() {
        let table = [
            ("30m", 1_800_000),
            ("60s", 60_000),
            ("1m30s", 90_000),
            ("7d", 604_800_000),
            ("1d2h3m4s5ms", 93_784_005),
            ("250ms", 250),
            ("0s", 0),
            ("90m", 5_400_000),
        ];
        for (written, millis) in table {
            assert_eq!(parse(written), Ok(Duration::from_millis(millis)), "{written}");
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        let table = [
            ("", DurationError::Empty),
            ("30", DurationError::NoUnit),
            ("0", DurationError::NoUnit),
            ("1m30", DurationError::NoUnit),
            ("m", DurationError::Shape),
            ("-1s", DurationError::Shape),
            ("+1s", DurationError::Shape),
            ("1.5h", DurationError::Shape),
            ("1 m", DurationError::Shape),
            (" 1m", DurationError::Shape),
            ("1m ", DurationError::Shape),
            ("1M", DurationError::Shape),
            ("1min", DurationError::Shape),
            ("1w", DurationError::Shape),
            ("1s1m", DurationError::Order),
            ("1m1m", DurationError::Order),
            ("99999999999999999999s", DurationError::TooLong),
            ("99999999999999999d", DurationError::TooLong),
        ];
        for (written, why) in table {
            assert_eq!(parse(written), Err(why), "{written}");
        }
    }

    #[test]
    fn a_written_duration_reads_back_as_itself() {
        for written in ["30m", "1m30s", "7d", "1d2h3m4s5ms", "250ms", "0s", "1h30m"] {
            assert_eq!(text(parse(written).unwrap()), written);
        }
        assert_eq!(text(Duration::from_secs(60)), "1m");
    }
}
