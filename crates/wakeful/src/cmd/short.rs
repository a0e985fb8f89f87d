//! Ids as people see and type them: as short as they can be, and long enough.

use std::fmt::Display;

use anyhow::bail;

use crate::output::printable;

/// The fewest characters that are shown of an id.
const SHOWN_MIN: usize = 8;
/// The fewest characters of an id's beginning that are taken for one.
const TYPED_MIN: usize = 4;

/// How many characters of these ids tell each from every other. Never ends a part with a dash.
pub(super) fn length(ids: impl IntoIterator<Item = impl Display>) -> usize {
    let mut ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
    ids.sort_unstable();
    ids.dedup();
    let common = |pair: &[String]| {
        let [one, two] = pair else { return 0 };
        one.bytes().zip(two.bytes()).take_while(|(a, b)| a == b).count()
    };
    let longest = ids.windows(2).map(common).max().unwrap_or(0);
    let length = SHOWN_MIN.max(longest + 1);
    let ends_with_a_dash =
        ids.first().is_some_and(|id| id.as_bytes().get(length - 1) == Some(&b'-'));
    if ends_with_a_dash { length + 1 } else { length }
}

/// The beginning of an id.
pub(super) fn id(id: impl Display, length: usize) -> String {
    id.to_string().chars().take(length).collect()
}

/// The one of `ids` that `text` is, or is the beginning of.
///
/// # Errors
/// None fits or several do. `kind` and `list`, the command that lists them, are for the sentence.
pub(super) fn find<T: Display + Copy>(
    ids: impl IntoIterator<Item = T>,
    text: &str,
    kind: &str,
    list: &str,
) -> anyhow::Result<T> {
    let mut fitting = Vec::new();
    for id in ids {
        let whole = id.to_string();
        if whole == text {
            return Ok(id);
        }
        if text.len() >= TYPED_MIN && whole.starts_with(text) {
            fitting.push(id);
        }
    }
    let text = printable(text);
    match fitting.as_slice() {
        [one] => Ok(*one),
        [] => bail!("there is no {kind} `{text}`; `{list}` lists what there is"),
        several => {
            let length = length(several);
            let several: Vec<_> = several.iter().map(|each| id(each, length)).collect();
            bail!("`{text}` fits more than one {kind}: {}", several.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f";
    const B: &str = "0199f0a0-7b5d-7c3e-9d2f-6a1b2c3d4e5f";
    const C: &str = "0199f0a0-8b5d-7c3e-9d2f-6a1b2c3d4e5f";
    const D: &str = "7199f0a0-8b5d-7c3e-9d2f-6a1b2c3d4e5f";

    #[test]
    fn ids_are_shown_as_short_as_they_can_be_told_apart() {
        let shown = |ids: &[&str]| id(ids[0], length(ids));
        assert_eq!(shown(&[A]), "0199f0a0");
        assert_eq!(shown(&[A, D]), "0199f0a0");
        assert_eq!(shown(&[A, A]), "0199f0a0");
        assert_eq!(shown(&[A, C, D]), "0199f0a0-7");
        assert_eq!(shown(&[D, A, C, B]), "7199f0a0-8b5d");
        assert_eq!(length([""; 0]), 8);
    }

    #[test]
    fn a_shown_id_never_ends_with_a_dash() {
        let one = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f";
        let two = "0199f0a0-7b5c-8c3e-9d2f-6a1b2c3d4e5f";
        assert_eq!(id(one, length([one, two])), "0199f0a0-7b5c-7");
        let near = ["0199f0a1-0", "0199f0a2-0"];
        assert_eq!(id(near[0], length(near)), "0199f0a1");
    }

    #[test]
    fn an_id_is_found_by_its_whole_or_its_beginning_if_only_one_fits() {
        let find = |text: &str| find([A, B, C], text, "thread", "wakeful threads");
        let table = [
            (A, Some(A)),
            ("0199f0a0-7b5d", Some(B)),
            ("0199f0a0-8", Some(C)),
            ("0199f0a0-7", None),
            ("0199", None),
            ("019", None),
            ("", None),
            ("ffff", None),
        ];
        for (text, expected) in table {
            assert_eq!(find(text).ok(), expected, "{text}");
        }
        let several = find("0199f0a0-7").unwrap_err().to_string();
        assert!(several.contains("0199f0a0-7b5c, 0199f0a0-7b5d"), "{several}");
        assert!(find("ffff").unwrap_err().to_string().contains("`wakeful threads`"));
    }
}
