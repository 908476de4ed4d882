//! What may know of what, as the manifests say it.

use std::path::Path;

/// Returns the crates of this project that a crate depends on, but for its tests.
fn dependencies(name: &str) -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let manifest = std::fs::read_to_string(crates.join(name).join("Cargo.toml")).unwrap();
    let (_, all) = manifest.split_once("\n[dependencies]\n").unwrap();
    let lines = all.split("\n[").next().unwrap().lines();
    let names = lines.filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| name.starts_with("adjourn")).map(str::to_owned).collect()
}

/// Their tests may look at a store, or harm it.
#[test]
fn faces_the_command_line_soak_and_the_benchmarks_know_nothing_below_the_library() {
    for name in ["adjourn-a2a", "adjourn-acp", "adjourn-cli", "adjourn-server", "soak", "xtask"] {
        let depends = dependencies(name);
        assert!(depends.iter().any(|on| on == "adjourn"), "{name} is written on the library");
        for below in ["adjourn-core", "adjourn-driver", "adjourn-record", "adjourn-store"] {
            assert!(!depends.iter().any(|on| on == below), "{name} depends on {below}");
        }
    }
}

#[test]
fn a_face_of_a_protocol_knows_no_other_one() {
    for name in ["adjourn-a2a", "adjourn-acp"] {
        assert_eq!(dependencies(name), ["adjourn"], "{name}");
    }
}
