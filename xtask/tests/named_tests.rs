//! Every test that the coverage pages name is there.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Each page, at least how many tests it names, and where these are.
const PAGES: &[(&str, usize, &[&str])] = &[
    ("docs/host-obligations.md", 60, &["crates/envd/src", "crates/envd/tests"]),
    (
        "docs/seed-coverage.md",
        150,
        &[
            "crates/client/src",
            "crates/client/tests",
            "crates/envd/src",
            "crates/envd/tests",
            "crates/link/src",
            "crates/wakeful/tests",
        ],
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The names in the last cell of each row: `` `name` `` with a space in its place said by `_`.
fn named(page: &str) -> BTreeSet<&str> {
    page.lines()
        .filter(|line| line.starts_with('|'))
        .filter_map(|line| line.trim_end_matches('|').rsplit('|').next())
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect()
}

/// The names of the functions that are marked as tests.
fn tests(source: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut marked = false;
    for line in source.lines().map(str::trim_start) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            marked = true;
        } else if let Some((before, rest)) = line.split_once("fn ")
            && marked
            && matches!(before, "" | "async " | "pub(crate) ")
        {
            names.push(rest.split('(').next().unwrap());
            marked = false;
        }
    }
    names
}

fn all_tests(below: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all_tests(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            found.extend(tests(&source).into_iter().map(str::to_owned));
        }
    }
}

#[test]
fn every_test_that_a_coverage_page_names_exists() {
    for (file, at_least, sources) in PAGES {
        let page = fs::read_to_string(root().join(file)).unwrap();
        let named = named(&page);
        assert!(named.len() > *at_least, "{file}: the tables cannot be read: {named:?}");
        let mut found = BTreeSet::new();
        for source in *sources {
            all_tests(&root().join(source), &mut found);
        }
        let missing: Vec<_> = named.iter().filter(|name| !found.contains(**name)).collect();
        assert!(missing.is_empty(), "{file}: named, but no test: {missing:#?}");
    }
}

#[test]
fn only_the_last_cell_of_a_row_and_only_marked_functions_count() {
    let page = "`no`\n| 1 | `not this` | `one`, `two` |\n| 2 | x | (none) |\n";
    assert_eq!(named(page), BTreeSet::from(["one", "two"]));
    let source =
        "#[test]\nfn one() {}\nfn no() {}\n  #[tokio::test(flavor = \"x\")]\n  async fn two() {";
    assert_eq!(tests(source), ["one", "two"]);
}
