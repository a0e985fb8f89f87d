//! The workspace's arrows point only to a lower level, as its drawing has them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{collections::BTreeMap, process::Command};

/// Each crate and the crates of ours that it may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("wakeful-wire", &[]),
    ("wakeful-lifecycle", &["wakeful-wire"]),
    ("wakeful-link", &["wakeful-wire"]),
    ("wakeful-control", &["wakeful-lifecycle", "wakeful-wire"]),
    ("wakeful-gateway", &["wakeful-wire"]),
    ("wakeful-envd", &["wakeful-wire"]),
    ("wakeful-client", &["wakeful-link", "wakeful-wire"]),
    ("wakeful-client-ffi", &["wakeful-client", "wakeful-link", "wakeful-wire"]),
    (
        "wakeful",
        &[
            "wakeful-client",
            "wakeful-control",
            "wakeful-envd",
            "wakeful-gateway",
            "wakeful-lifecycle",
            "wakeful-link",
            "wakeful-wire",
        ],
    ),
    (
        "wakeful-sim",
        &[
            "wakeful-control",
            "wakeful-envd",
            "wakeful-gateway",
            "wakeful-lifecycle",
            "wakeful-link",
            "wakeful-wire",
        ],
    ),
    ("wakeful-page-test", &["wakeful-page-test-macro"]),
    ("wakeful-page-test-macro", &[]),
    ("xtask", &[]),
];

/// Arrows that only tests have. The process driver is tested with the daemon that it really starts;
/// the messages are tested with their schemas, which are a feature; the client's connections are
/// tested in a browser's page as well.
const TEST_ARROWS: &[(&str, &str)] = &[
    ("wakeful-client", "wakeful-envd"),
    ("wakeful-control", "wakeful-envd"),
    ("wakeful-link", "wakeful-page-test"),
    ("wakeful-wire", "wakeful-wire"),
];

/// Crates that do no IO, and what would let them.
const PURE: &[&str] = &["wakeful-wire", "wakeful-lifecycle", "wakeful-link"];
const IO: &[&str] = &["tokio", "mio", "hyper", "reqwest", "sqlx", "rustix", "nix", "async-std"];

fn cargo(args: &[&str]) -> String {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let output = Command::new(cargo)
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap_or_else(|error| panic!("cargo: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {args:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// One dependency: who uses, whom, and whether in tests alone.
struct Arrow {
    from: String,
    to: String,
    in_tests: bool,
}

/// Every dependency of every crate of the workspace.
fn arrows() -> Vec<Arrow> {
    let text = cargo(&["metadata", "--format-version", "1", "--no-deps", "--locked"]);
    let metadata: serde_json::Value = serde_json::from_str(&text).unwrap();
    let name = |value: &serde_json::Value| value["name"].as_str().unwrap().to_owned();
    let mut arrows = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        for dependency in package["dependencies"].as_array().unwrap() {
            arrows.push(Arrow {
                from: name(package),
                to: name(dependency),
                in_tests: dependency["kind"] == "dev",
            });
        }
    }
    arrows
}

#[test]
fn arrows_point_only_where_the_drawing_has_them() {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let arrows = arrows();
    assert!(!arrows.is_empty());
    for Arrow { from, to, in_tests } in &arrows {
        let (from, to) = (from.as_str(), to.as_str());
        let drawn = allowed.get(from).unwrap_or_else(|| panic!("the drawing does not have {from}"));
        let ours = allowed.contains_key(to);
        let fits = drawn.contains(&to) || (*in_tests && TEST_ARROWS.contains(&(from, to)));
        assert!(!ours || fits, "{from} must not use {to}");
    }
}

#[test]
fn pure_crates_cannot_do_io() {
    for package in PURE {
        let args = ["tree", "--locked", "--package", package, "--edges", "normal"];
        let tree = cargo(&[args.as_slice(), &["--prefix", "none", "--format", "{p}"]].concat());
        let used: Vec<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(used.contains(&"serde"), "{tree}");
        for name in IO {
            assert!(!used.contains(name), "{package} uses {name}");
        }
    }
}
