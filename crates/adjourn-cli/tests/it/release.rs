//! What a release is built from: nothing of what only tests need.

use std::collections::BTreeMap;
use std::process::Command;

/// Returns the packages that cargo would build, by name, with their features.
fn built(arguments: &[&str]) -> BTreeMap<String, Vec<String>> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--offline", "--locked", "--prefix", "none", "--format", "{p};{f};"]);
    let output = cargo.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let package = |line: &str| {
        let mut parts = line.split(';');
        let name = parts.next()?.split(' ').next()?.to_owned();
        Some((name, parts.next()?.split(',').map(str::to_owned).collect()))
    };
    tree.lines().filter_map(package).collect()
}

/// Returns the packages of this project that are built with a feature.
fn with<'a>(feature: &str, packages: &'a BTreeMap<String, Vec<String>>) -> Vec<&'a str> {
    let own = packages.iter().filter(|(name, _)| name.starts_with("adjourn"));
    let having = own.filter(|(_, features)| features.iter().any(|built| built == feature));
    having.map(|(name, _)| name.as_str()).collect()
}

#[test]
fn the_program_is_built_without_what_only_tests_need() {
    let program = built(&["--package", "adjourn-cli", "--edges", "no-dev"]);
    assert!(program.contains_key("adjourn-store"), "{program:?}");
    for name in ["adjourn-testkit", "adjourn-conformance", "tempfile"] {
        assert!(!program.contains_key(name), "{name} is in the program");
    }
    // Neither the hooks for faults, nor the way to what lies beneath the verbs.
    for feature in ["faults", "testing", "conformance"] {
        assert_eq!(with(feature, &program), [""; 0], "{feature}");
    }
}

#[test]
fn what_is_built_along_gives_it_no_hooks_either() {
    // Soak and the benchmarks use the testkit themselves, and what lies beneath the verbs.
    let along = built(&["--workspace", "--edges", "no-dev"]);
    assert_eq!(with("faults", &along), [""; 0]);
    assert_eq!(with("testing", &along), ["adjourn"]);
    // This is how it would look.
    let tests = built(&["--workspace", "--edges", "normal,build,dev"]);
    assert_eq!(with("faults", &tests), ["adjourn", "adjourn-store", "adjourn-testkit"]);
}
