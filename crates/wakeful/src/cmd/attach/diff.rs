//! The change of a file in lines: what goes, what comes, and a little of what stays around it.

use std::ops::Range;

/// How many unchanged lines stand around a change.
const AROUND: usize = 3;
/// Up to this many pairs of lines a change is compared line by line; a larger one is told as a
/// block that goes and a block that comes.
const PAIRS_MAX: usize = 250_000;

/// One line of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// The place: the numbers of the first lines that follow, before and after.
    Place(usize, usize),
    /// A line that stays.
    Stays(&'a str),
    /// A line that goes.
    Goes(&'a str),
    /// A line that comes.
    Comes(&'a str),
}

/// The lines of the change from `old` to `new`.
pub(super) fn lines<'a>(old: &'a str, new: &'a str) -> Vec<Line<'a>> {
    let before: Vec<&str> = old.lines().collect();
    let after: Vec<&str> = new.lines().collect();
    let script = script(&before, &after);
    let mut shown = Vec::new();
    let (mut gone, mut come) = (0, 0);
    let mut until = 0;
    for (at, line) in script.iter().enumerate() {
        let near = at.saturating_sub(AROUND)..(at + AROUND + 1).min(script.len());
        if script[near].iter().any(|line| !matches!(line, Line::Stays(_))) {
            if shown.is_empty() || until != at {
                shown.push(Line::Place(gone + 1, come + 1));
            }
            shown.push(*line);
            until = at + 1;
        }
        gone += usize::from(!matches!(line, Line::Comes(_)));
        come += usize::from(!matches!(line, Line::Goes(_)));
    }
    shown
}

/// Every line of both texts, once.
fn script<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<Line<'a>> {
    let shorter = before.len().min(after.len());
    let head = (0..shorter).take_while(|at| before[*at] == after[*at]).count();
    let tail = (0..shorter - head)
        .take_while(|at| before[before.len() - 1 - at] == after[after.len() - 1 - at])
        .count();
    let gone = head..before.len() - tail;
    let come = head..after.len() - tail;
    let mut script: Vec<_> = before[..head].iter().copied().map(Line::Stays).collect();
    if gone.len().saturating_mul(come.len()) <= PAIRS_MAX {
        compare(&before[gone], &after[come], &mut script);
    } else {
        block(before, gone, Line::Goes, &mut script);
        block(after, come, Line::Comes, &mut script);
    }
    script.extend(before[before.len() - tail..].iter().copied().map(Line::Stays));
    script
}

fn block<'a>(
    lines: &[&'a str],
    range: Range<usize>,
    line: fn(&'a str) -> Line<'a>,
    script: &mut Vec<Line<'a>>,
) {
    script.extend(lines[range].iter().copied().map(line));
}

/// By the longest common subsequence.
fn compare<'a>(before: &[&'a str], after: &[&'a str], script: &mut Vec<Line<'a>>) {
    let width = after.len() + 1;
    // How many lines the rests from here on have in common.
    let mut common = vec![0_u32; (before.len() + 1) * width];
    for i in (0..before.len()).rev() {
        for j in (0..after.len()).rev() {
            common[i * width + j] = if before[i] == after[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < before.len() || j < after.len() {
        if i < before.len() && j < after.len() && before[i] == after[j] {
            script.push(Line::Stays(before[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == after.len()
            || i < before.len() && common[(i + 1) * width + j] >= common[i * width + j + 1]
        {
            script.push(Line::Goes(before[i]));
            i += 1;
        } else {
            script.push(Line::Comes(after[j]));
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(old: &str, new: &str) -> String {
        let line = |line: &Line<'_>| match line {
            Line::Place(old, new) => format!("@{old},{new}"),
            Line::Stays(line) => format!(" {line}"),
            Line::Goes(line) => format!("-{line}"),
            Line::Comes(line) => format!("+{line}"),
        };
        lines(old, new).iter().map(line).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn a_change_shows_what_goes_and_comes_with_a_little_around_it() {
        let cases = [
            ("a\nb\nc\n", "a\nB\nc\n", "@1,1| a|-b|+B| c"),
            ("", "a\nb", "@1,1|+a|+b"),
            ("a\n", "", "@1,1|-a"),
            ("same\n", "same\n", ""),
            ("1\n2\n3\n4\n5\n6", "1\n2\n3\n4\n5\n6\n7", "@4,4| 4| 5| 6|+7"),
            ("a\nb\nc\nd", "b\nc\nx\nd", "@1,1|-a| b| c|+x| d"),
        ];
        for (old, new, shown) in cases {
            assert_eq!(text(old, new), shown);
        }
    }

    #[test]
    fn changes_far_apart_have_places_of_their_own() {
        let old: Vec<String> = (1..=20).map(|n| n.to_string()).collect();
        let mut new = old.clone();
        new[0] = "x".to_owned();
        new.insert(10, "y".to_owned());
        new[20] = "z".to_owned();
        let shown = text(&old.join("\n"), &new.join("\n"));
        let places: Vec<_> = shown.split('|').filter(|line| line.starts_with('@')).collect();
        assert_eq!(places, ["@1,1", "@8,8", "@17,18"]);
    }

    #[test]
    fn a_huge_change_is_a_block_that_goes_and_one_that_comes() {
        let old = (0..600).map(|n| format!("a{n}\n")).collect::<String>();
        let new = (0..600).map(|n| format!("b{n}\n")).collect::<String>();
        let shown = lines(&old, &new);
        assert_eq!(shown.len(), 1_201);
        assert_eq!(shown[1], Line::Goes("a0"));
        assert_eq!(shown[1_200], Line::Comes("b599"));
    }
}
