//! Entity tags of the list: a cursor and which rows were left out.
//!
//! A tag stands for "the list as it was at this cursor, with these rows left out". Two cursors
//! between which the list did not change have two tags for the same rows; whoever asks with either
//! is told that theirs still stands.

use axum::http::{HeaderMap, HeaderValue, header};
use wakeful_wire::rpc::{Cursor, Epoch, Omissions, Seq};

/// Most tags of one request that are looked at; further ones count as not sent.
const TAGS_MAX: usize = 8;

/// The tag of a list.
pub(super) fn of(cursor: Cursor, omit: Omissions) -> String {
    format!("\"{:x}.{:x}.{}\"", cursor.epoch.0, cursor.seq.0, letters(omit))
}

/// The tag as a header's value.
pub(super) fn value(cursor: Cursor, omit: Omissions) -> Option<HeaderValue> {
    HeaderValue::try_from(of(cursor, omit)).ok()
}

/// The cursor of the first tag in `If-None-Match` that is of a host's making and of a list with
/// these rows left out. Whatever else stands there is as if it were not sent, `*` included: it asks
/// for "any", and there is no cursor in it. Tags are compared weakly (RFC 9110 section 13.1.2), so
/// the mark of a weak tag, which a proxy may add, changes nothing.
pub(super) fn held(headers: &HeaderMap, omit: Omissions) -> Option<Cursor> {
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .take(TAGS_MAX)
        .find_map(|tag| parse(tag.trim(), omit))
}

fn parse(tag: &str, omit: Omissions) -> Option<Cursor> {
    let tag = tag.strip_prefix("W/").unwrap_or(tag);
    let inner = tag.strip_prefix('"')?.strip_suffix('"')?;
    let mut parts = inner.split('.');
    let (epoch, seq, left_out) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || left_out != letters(omit) {
        return None;
    }
    Some(Cursor { epoch: Epoch(number(epoch)?), seq: Seq(number(seq)?) })
}

fn number(text: &str) -> Option<u64> {
    let fits = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    fits.then(|| u64::from_str_radix(text, 16).ok())?
}

const fn letters(omit: Omissions) -> &'static str {
    match (omit.families, omit.older_settled) {
        (false, false) => "a",
        (true, false) => "f",
        (false, true) => "s",
        (true, true) => "fs",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURSOR: Cursor = Cursor { epoch: Epoch((1 << 53) - 1), seq: Seq(43) };
    const BOTH: Omissions = Omissions { families: true, older_settled: true };
    const NONE: Omissions = Omissions { families: false, older_settled: false };

    fn asked(values: &[&str], omit: Omissions) -> Option<Cursor> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::IF_NONE_MATCH, HeaderValue::from_str(value).unwrap());
        }
        held(&headers, omit)
    }

    #[test]
    fn a_tag_reads_as_it_was_written() {
        for families in [false, true] {
            for older_settled in [false, true] {
                let omit = Omissions { families, older_settled };
                assert_eq!(asked(&[&of(CURSOR, omit)], omit), Some(CURSOR));
            }
        }
        let weak = format!("W/{}", of(CURSOR, BOTH));
        assert_eq!(asked(&["\"other\"", &format!("*, {weak}")], BOTH), Some(CURSOR));
    }

    #[test]
    fn a_tag_of_a_list_with_other_rows_is_ignored() {
        assert_eq!(asked(&[&of(CURSOR, BOTH)], NONE), None);
        assert_eq!(asked(&[&of(CURSOR, NONE)], BOTH), None);
    }

    #[test]
    fn garbage_is_ignored() {
        for bad in [
            "",
            "*",
            "\"",
            "\"\"",
            "1.2.a",
            "\"1.2\"",
            "\"1.2.a.\"",
            "\"-1.2.a\"",
            "\"+1.2.a\"",
            "\".2.a\"",
            "\"1.10000000000000000.a\"",
            "w/\"1.2.a\"",
            "\"1.2.A\"",
        ] {
            assert_eq!(asked(&[bad], NONE), None, "{bad}");
        }
    }

    #[test]
    fn only_the_first_tags_are_looked_at() {
        let many = ["\"x\""; TAGS_MAX].join(",");
        assert_eq!(asked(&[&many, &of(CURSOR, NONE)], NONE), None);
    }
}
