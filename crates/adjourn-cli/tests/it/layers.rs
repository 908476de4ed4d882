//! What may know of what, as the manifests say it.

use std::path::Path;

/// Faces, the command line, soak and the benchmarks are written on the library. Their tests may look
/// at a store, or harm it.
#[test]
fn what_is_written_on_the_library_does_not_depend_on_the_store() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for name in ["adjourn-acp", "adjourn-cli", "adjourn-server", "soak", "xtask"] {
        let manifest = std::fs::read_to_string(crates.join(name).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let dependencies = manifest["dependencies"].as_table().unwrap();
        assert!(dependencies.contains_key("adjourn"), "{name} is written on the library");
        assert!(!dependencies.contains_key("adjourn-store"), "{name} depends on the store");
    }
}
