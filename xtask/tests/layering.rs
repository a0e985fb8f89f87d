//! The workspace's arrows point only to a lower level, as its drawing has them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{collections::BTreeMap, process::Command};

/// Each crate and the crates of ours that it may use, in tests as well.
const ARROWS: &[(&str, &[&str])] = &[
    ("wakeful-wire", &[]),
    ("wakeful-lifecycle", &["wakeful-wire"]),
    ("wakeful-control", &["wakeful-lifecycle", "wakeful-wire"]),
    ("wakeful-gateway", &["wakeful-wire"]),
    ("wakeful-envd", &["wakeful-wire"]),
    (
        "wakeful",
        &[
            "wakeful-control",
            "wakeful-envd",
            "wakeful-gateway",
            "wakeful-lifecycle",
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
            "wakeful-wire",
        ],
    ),
    ("xtask", &[]),
];

/// Crates that do no IO, and what would let them.
const PURE: &[&str] = &["wakeful-wire", "wakeful-lifecycle"];
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

/// Each crate of the workspace and what it depends on by name, for building, tests and all.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let text = cargo(&["metadata", "--format-version", "1", "--no-deps", "--locked"]);
    let metadata: serde_json::Value = serde_json::from_str(&text).unwrap();
    let name = |value: &serde_json::Value| value["name"].as_str().unwrap().to_owned();
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().unwrap();
            (name(package), dependencies.iter().map(name).collect())
        })
        .collect()
}

#[test]
fn arrows_point_only_where_the_drawing_has_them() {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    for (package, dependencies) in dependencies() {
        let arrows = allowed
            .get(package.as_str())
            .unwrap_or_else(|| panic!("the drawing does not have {package}"));
        for dependency in dependencies {
            let ours = allowed.contains_key(dependency.as_str());
            assert!(
                !ours || arrows.contains(&dependency.as_str()),
                "{package} must not use {dependency}"
            );
        }
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
