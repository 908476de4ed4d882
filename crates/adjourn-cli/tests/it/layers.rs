//! What may know of what, as the manifests say it.

use std::path::Path;

/// Faces, the command line, soak and the benchmarks are written on the library. Their tests may look
/// at a store, or harm it.
#[test]
fn what_is_written_on_the_library_does_not_depend_on_the_store() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for name in ["adjourn-a2a", "adjourn-acp", "adjourn-cli", "adjourn-server", "soak", "xtask"] {
        let manifest = std::fs::read_to_string(crates.join(name).join("Cargo.toml")).unwrap();
        let (_, all) = manifest.split_once("\n[dependencies]\n").unwrap();
        let dependencies = all.split("\n[").next().unwrap();
        let depends = |on: &str| dependencies.lines().any(|line| line.starts_with(on));
        assert!(depends("adjourn.workspace"), "{name} is written on the library");
        assert!(!depends("adjourn-store"), "{name} depends on the store");
    }
}

/// A face of a protocol knows no other one, and nothing below the library.
#[test]
fn the_a2a_face_is_written_on_the_library_alone() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let manifest = std::fs::read_to_string(crates.join("adjourn-a2a/Cargo.toml")).unwrap();
    let (_, all) = manifest.split_once("\n[dependencies]\n").unwrap();
    let dependencies = all.split("\n[").next().unwrap();
    let own: Vec<_> = dependencies.lines().filter(|line| line.starts_with("adjourn")).collect();
    assert_eq!(own, ["adjourn.workspace = true"]);
}
