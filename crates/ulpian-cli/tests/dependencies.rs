//! The crates depend on each other in one direction only: element types, then the kernel language, then devices and the
//! graph beside each other, then the catalogue of ops, then what users import, then the faces.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What each crate of the workspace may depend on inside it. Tests may reach further (see [`TEST_EDGES`]).
const ALLOWED: [(&str, &[&str]); 11] = [
    ("ulpian-num", &[]),
    ("ulpian-kernel", &["ulpian-num"]),
    ("ulpian-cpu", &["ulpian-num", "ulpian-kernel"]),
    ("ulpian-vulkan", &["ulpian-num", "ulpian-kernel"]),
    ("ulpian-graph", &["ulpian-num", "ulpian-kernel"]),
    ("ulpian-ops", &["ulpian-num", "ulpian-kernel", "ulpian-graph"]),
    ("ulpian", &["ulpian-num", "ulpian-kernel", "ulpian-cpu", "ulpian-vulkan", "ulpian-graph", "ulpian-ops"]),
    ("ulpian-verify", FACES),
    ("ulpian-pjrt", &["ulpian-num", "ulpian-kernel", "ulpian-graph", "ulpian-ops"]),
    ("ulpian-python", FACES),
    ("ulpian-cli", FACES),
];

/// The faces wire everything beneath them; of each other they may know what checks (`ulpian-verify`) and what scales.
const FACES: &[&str] = &[
    "ulpian-num",
    "ulpian-kernel",
    "ulpian-cpu",
    "ulpian-vulkan",
    "ulpian-graph",
    "ulpian-ops",
    "ulpian",
    "ulpian-verify",
    "ulpian-pjrt",
];

/// Tests may compare a crate with any that stands beside it or beneath, never with a face.
const TEST_EDGES: &[&str] =
    &["ulpian-num", "ulpian-kernel", "ulpian-cpu", "ulpian-vulkan", "ulpian-graph", "ulpian-ops", "ulpian"];

/// Everything wrong with the workspace that `metadata` (of `cargo metadata --no-deps`) describes, a line each.
fn violations(metadata: &Value) -> Vec<String> {
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.into_iter().collect();
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let mut wrong = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or("");
        let Some(may) = allowed.get(name) else {
            wrong.push(format!(
                "{name} has no place in the order: give it one in this test and in the design"
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let on = dependency["name"].as_str().unwrap_or("");
            let in_tests = dependency["kind"].as_str() == Some("dev");
            // Any edge to a name of ours counts, by path or from a registry.
            let ours = names.contains(on) || allowed.contains_key(on);
            if ours && !may.contains(&on) && !(in_tests && TEST_EDGES.contains(&on)) {
                wrong.push(format!("{name} must not depend on {on}"));
            }
        }
    }
    wrong
}

fn metadata() -> Value {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON")
}

#[test]
fn dependencies_point_one_way() {
    let metadata = metadata();
    let count = metadata["packages"].as_array().map_or(0, Vec::len);
    assert!(count >= 8, "only {count} packages seen: is this the whole workspace?");
    assert_eq!(violations(&metadata), Vec::<String>::new());
}

#[test]
fn the_allowed_edges_have_no_cycle() {
    // Removing crates whose every allowed edge is gone empties the list exactly when there is none. The faces share one
    // list, which names some of them: an edge to oneself is no edge.
    let mut left: BTreeMap<&str, BTreeSet<&str>> =
        ALLOWED.iter().map(|(n, e)| (*n, e.iter().copied().filter(|d| d != n).collect())).collect();
    while !left.is_empty() {
        let free: Vec<&str> = left.iter().filter(|(_, e)| e.is_empty()).map(|(n, _)| *n).collect();
        assert!(!free.is_empty(), "a cycle among {:?}", left.keys());
        for name in free {
            left.remove(name);
            for edges in left.values_mut() {
                edges.remove(name);
            }
        }
    }
}

/// The negative control: a planted edge against the direction, a planted stranger, and an upward edge of a test.
#[test]
fn planted_wrong_edges_are_seen() {
    let mut planted = metadata();
    let edge = |name: &str, kind: Value| serde_json::json!({ "name": name, "kind": kind });
    for package in planted["packages"].as_array_mut().unwrap() {
        let extra = match package["name"].as_str().unwrap() {
            "ulpian-num" => edge("ulpian-kernel", Value::Null),
            "ulpian-kernel" => edge("ulpian-vulkan", "build".into()),
            "ulpian-cpu" => edge("ulpian-cli", "dev".into()),
            "ulpian-graph" => edge("ulpian-cpu", "dev".into()),
            _ => continue,
        };
        package["dependencies"].as_array_mut().unwrap().push(extra);
    }
    planted["packages"]
        .as_array_mut()
        .unwrap()
        .push(serde_json::json!({ "name": "ulpian-extra", "dependencies": [] }));
    let mut wrong = violations(&planted);
    wrong.sort();
    assert_eq!(
        wrong,
        [
            "ulpian-cpu must not depend on ulpian-cli",
            "ulpian-extra has no place in the order: give it one in this test and in the design",
            "ulpian-kernel must not depend on ulpian-vulkan",
            "ulpian-num must not depend on ulpian-kernel",
        ]
    );
}
