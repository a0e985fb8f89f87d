//! Byte ranges of a download (RFC 9110, section 14).

/// Part of a file: `length` bytes from `start`. Never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte.
    pub start: u64,
    /// How many.
    pub length: u64,
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranges {
    /// The whole file. Also for what is no range of bytes, is malformed, or asks for several parts,
    /// which a server may always answer with the whole.
    Whole,
    /// One part.
    Part(ByteRange),
    /// Nothing of the file.
    Unsatisfiable,
}

/// Reads a `Range` field for a file of `size` bytes.
#[must_use]
pub fn requested(field: Option<&str>, size: u64) -> Ranges {
    let Some(set) = field.and_then(|field| field.trim().strip_prefix("bytes=")) else {
        return Ranges::Whole;
    };
    let Some((first, last)) = set.trim().split_once('-').filter(|_| !set.contains(',')) else {
        return Ranges::Whole;
    };
    let number = |text: &str| -> Option<u64> {
        // `parse` would take a sign.
        text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
    };
    match (first, last) {
        ("", "") => Ranges::Whole,
        ("", suffix) => match number(suffix) {
            None => Ranges::Whole,
            Some(0) => Ranges::Unsatisfiable,
            Some(_) if size == 0 => Ranges::Unsatisfiable,
            Some(suffix) => {
                let length = suffix.min(size);
                Ranges::Part(ByteRange { start: size - length, length })
            }
        },
        (first, last) => {
            let last = if last.is_empty() { Some(u64::MAX) } else { number(last) };
            match (number(first), last) {
                (Some(first), Some(last)) if first <= last => {
                    if first >= size {
                        return Ranges::Unsatisfiable;
                    }
                    let end = last.min(size - 1);
                    Ranges::Part(ByteRange { start: first, length: end - first + 1 })
                }
                _ => Ranges::Whole,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn part(start: u64, length: u64) -> Ranges {
        Ranges::Part(ByteRange { start, length })
    }

    #[test]
    fn ranges_are_read_as_the_rfc_says() {
        let table = [
            (None, Ranges::Whole),
            (Some("bytes=0-99"), part(0, 100)),
            (Some("bytes=100-"), part(100, 900)),
            (Some("bytes=-500"), part(500, 500)),
            (Some("bytes=-5000"), part(0, 1_000)),
            (Some("bytes=0-5000"), part(0, 1_000)),
            (Some("bytes=999-999"), part(999, 1)),
            (Some("bytes=1000-"), Ranges::Unsatisfiable),
            (Some("bytes=-0"), Ranges::Unsatisfiable),
            (Some("bytes=5-2"), Ranges::Whole),
            (Some("bytes=0-0,5-9"), Ranges::Whole),
            (Some("bytes=a-b"), Ranges::Whole),
            (Some("bytes=+1-2"), Ranges::Whole),
            (Some("bytes=-"), Ranges::Whole),
            (Some("items=0-1"), Ranges::Whole),
            (Some("bytes=0-99999999999999999999999"), Ranges::Whole),
        ];
        for (field, expected) in table {
            assert_eq!(requested(field, 1_000), expected, "{field:?}");
        }
        assert_eq!(requested(Some("bytes=0-"), 0), Ranges::Unsatisfiable);
        assert_eq!(requested(Some("bytes=-1"), 0), Ranges::Unsatisfiable);
    }
}
