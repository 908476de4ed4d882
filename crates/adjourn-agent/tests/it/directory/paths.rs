//! Paths do not lead out of the directory.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adjourn_agent::directory::DirectoryTool::{self, Edit, List, Read, Search, Write};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use super::{Desk, words};

/// A call of each tool that takes a path.
fn calls(path: &str) -> Vec<(DirectoryTool, Value)> {
    vec![
        (Read, json!({ "path": path })),
        (Write, json!({ "path": path, "content": "mine" })),
        (Edit, json!({ "path": path, "old_text": "secret", "new_text": "mine" })),
        (List, json!({ "path": path })),
        (Search, json!({ "path": path, "pattern": "secret" })),
    ]
}

/// A desk beside which lies a file that is none of the agent's business.
fn desk() -> (Desk, tempfile::TempDir) {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("file"), "secret").unwrap();
    (Desk::new(), outside)
}

#[tokio::test]
async fn neither_dots_nor_absolute_paths_lead_out() {
    let (desk, outside) = desk();
    let file = outside.path().join("file");
    let up = format!("../{}/file", outside.path().file_name().unwrap().to_str().unwrap());
    let beside = format!("{}-beside/file", desk.path().display());
    for path in [file.to_str().unwrap(), &up, "a/../../x", "/", "..", "/etc/passwd", &beside] {
        for (tool, arguments) in calls(path) {
            let why = desk.refused(tool, arguments).await;
            assert!(why.contains("lies outside of the directory"), "{tool} {path}: {why}");
        }
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), "secret");
    // What only looks as if it did is none of that.
    desk.write("a/..b", "fine");
    assert_eq!(desk.said(Read, json!({ "path": "x/../a/./..b" })).await, "fine");
    assert!(desk.refused(Read, json!({ "path": "a\0b" })).await.contains("zero"));
}

#[tokio::test]
async fn links_are_followed_within_the_directory_and_not_out_of_it() {
    let (desk, outside) = desk();
    desk.write("in/file", "inside");
    symlink(outside.path(), desk.path().join("out")).unwrap();
    symlink(outside.path().join("file"), desk.path().join("out-file")).unwrap();
    symlink(outside.path().join("new"), desk.path().join("out-new")).unwrap();
    symlink("in", desk.path().join("link")).unwrap();
    symlink("in/file", desk.path().join("link-file")).unwrap();
    for path in ["out/file", "out-file", "out-new", "out/new/file"] {
        for (tool, arguments) in calls(path) {
            let refused = desk.call(tool, arguments).await;
            assert!(refused.is_err(), "{tool} {path}: {refused:?}");
        }
    }
    let left: Vec<_> = std::fs::read_dir(outside.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing was made there");
    assert_eq!(std::fs::read_to_string(outside.path().join("file")).unwrap(), "secret");
    assert_eq!(desk.said(Read, json!({ "path": "link/file" })).await, "inside");
    desk.said(Write, json!({ "path": "link-file", "content": "changed" })).await;
    assert_eq!(desk.text("in/file"), "changed");
    assert!(desk.path().join("link-file").is_symlink());
}

#[tokio::test]
async fn absolute_links_are_followed_within_the_directory() {
    let (desk, outside) = desk();
    desk.write("in/file", "inside");
    symlink(desk.path().join("in"), desk.path().join("link")).unwrap();
    symlink(desk.path().join("link/file"), desk.path().join("link-file")).unwrap();
    symlink(desk.path().join("in/later"), desk.path().join("nowhere")).unwrap();
    // The directory is reached by a link, and what that link names by another path.
    let other = outside.path().join("desk");
    symlink(desk.path(), &other).unwrap();
    symlink(other.join("in/file"), desk.path().join("around")).unwrap();
    for path in ["link/file", "link-file", "around"] {
        assert_eq!(desk.said(Read, json!({ "path": path })).await, "inside");
    }
    let named = other.join("link/file");
    assert_eq!(desk.said(Read, json!({ "path": named })).await, "inside");
    desk.said(Write, json!({ "path": "link-file", "content": "changed" })).await;
    assert_eq!(desk.text("in/file"), "changed");
    desk.said(Write, json!({ "path": "link/new/file", "content": "made" })).await;
    assert_eq!(desk.text("in/new/file"), "made");
    // Neither name of the directory leads out of it.
    for path in [other.join("../file"), other.join("in/../../file"), other.join("nowhere/file")] {
        for (tool, arguments) in calls(path.to_str().unwrap()) {
            let refused = desk.call(tool, arguments).await;
            assert!(refused.is_err(), "{tool} {path:?}: {refused:?}");
        }
    }
    assert_eq!(std::fs::read_to_string(outside.path().join("file")).unwrap(), "secret");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_is_swapped_while_tools_work_leads_nowhere() {
    let (desk, outside) = desk();
    desk.write("swap/file", "inside");
    symlink(outside.path(), desk.path().join("link")).unwrap();
    // The way that is taken by an absolute link is no other.
    symlink(desk.path().join("swap"), desk.path().join("absolute")).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let (path, stop) = (desk.path().to_owned(), Arc::clone(&over));
    // A directory becomes a link that leads out, and a directory again, as fast as it can.
    let swapping = std::thread::spawn(move || {
        let (one, other) = (path.join("swap"), path.join("link"));
        let mut swaps = 0_u64;
        while !stop.load(Ordering::Relaxed) {
            renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            swaps += 1;
        }
        swaps
    });
    for _ in 0..300 {
        for (tool, arguments) in calls("swap/file").into_iter().chain(calls("absolute/file")) {
            if let Ok(output) = desk.call(tool, arguments).await {
                let said = words(&output.blocks);
                assert!(!said.contains("secret"), "{tool}: {said}");
            }
        }
    }
    over.store(true, Ordering::Relaxed);
    assert!(swapping.join().unwrap() > 0);
    assert_eq!(std::fs::read_to_string(outside.path().join("file")).unwrap(), "secret");
    let left: Vec<_> = std::fs::read_dir(outside.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing was made there");
}
