//! `envd`'s own log: what it did, when.

use std::{
    fmt,
    io::{self, Write},
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;

use crate::bounded_log::{BoundedLog, LOG_MAX};

/// Lines of `envd.log`. Never holds a secret: it is shown to people.
#[derive(Debug, Clone)]
pub(crate) struct Journal(Arc<Mutex<Option<BoundedLog>>>);

impl Journal {
    /// Opens `envd.log` in the log directory; where that fails, lines go to standard error.
    pub(crate) fn open(logs: &Path) -> Self {
        Self(Arc::new(Mutex::new(BoundedLog::open(logs.join("envd.log"), LOG_MAX).ok())))
    }

    /// Writes one line with the time before it.
    pub(crate) fn note(&self, what: fmt::Arguments<'_>) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let line = format!("{} {what}\n", utc(since.as_secs(), since.subsec_millis()));
        match &mut *self.0.lock() {
            Some(log) => log.write(line.as_bytes()),
            None => {
                let _lost = io::stderr().write_all(line.as_bytes());
            }
        }
    }
}

/// Seconds since the epoch as `2026-01-31T23:59:59.123Z`.
fn utc(seconds: u64, millis: u32) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March have their leap day at their end, so that a month follows from the
    // day of the year by one line; 400 such years have 146,097 days.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    let second = second % 60;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_utc() {
        let table = [
            (0, "1970-01-01T00:00:00.007Z"),
            (951_782_399, "2000-02-28T23:59:59.007Z"),
            (951_782_400, "2000-02-29T00:00:00.007Z"),
            (951_868_800, "2000-03-01T00:00:00.007Z"),
            (1_798_761_599, "2026-12-31T23:59:59.007Z"),
            (4_107_542_400, "2100-03-01T00:00:00.007Z"),
        ];
        for (seconds, text) in table {
            assert_eq!(utc(seconds, 7), text);
        }
    }
}
