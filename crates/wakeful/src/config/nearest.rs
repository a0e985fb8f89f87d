//! The nearest known name to one that is not known.

/// The known name that `word` was most likely meant to be, or `None` where none is close.
///
/// Close is at most one edit in three characters, so that a suggestion is never a wild guess.
/// Dashes and underscores count as equal. Of equally close names the first is taken.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_ascii_lowercase().replace('-', "_");
    let word = plain(word);
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&word, &plain(name)), name))
        .filter(|(edits, name)| *edits * 3 <= word.chars().count().max(name.chars().count()))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name)
}

/// `; did you mean …?` for a message, or nothing.
#[must_use]
pub fn suggestion<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_close_name_is_suggested() {
        let known = ["agent", "app", "floor", "held_total"];
        let table = [
            ("agnet", Some("agent")),
            ("floot", Some("floor")),
            ("apps", Some("app")),
            ("held-total", Some("held_total")),
            ("zzz", None),
            ("", None),
        ];
        for (word, expected) in table {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
    }
}
