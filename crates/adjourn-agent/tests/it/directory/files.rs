//! Reading, writing, editing, listing and searching where no editor is attached.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use adjourn_agent::directory::DirectoryTool::{Edit, List, Read, Search, Write};
use serde_json::json;

use super::Desk;

#[tokio::test]
async fn a_file_is_read_whole_or_by_lines() {
    let desk = Desk::new();
    desk.write("src/a.txt", "one\ntwo\nthree\n");
    assert_eq!(desk.said(Read, json!({ "path": "src/a.txt" })).await, "one\ntwo\nthree\n");
    let absolute = desk.path().canonicalize().unwrap().join("src/a.txt");
    assert!(desk.said(Read, json!({ "path": absolute })).await.starts_with("one"));
    let some = desk.said(Read, json!({ "path": "src/a.txt", "line": 2, "limit": 1 })).await;
    assert_eq!(some, "two\n\n[lines 2 to 2 of 3; go on with line 3]");
    let beyond = desk.refused(Read, json!({ "path": "src/a.txt", "line": 9 })).await;
    assert_eq!(beyond, "src/a.txt has 3 lines");
    desk.write("empty", "");
    assert_eq!(desk.said(Read, json!({ "path": "empty" })).await, "");
}

#[tokio::test]
async fn what_is_long_is_shown_in_parts_and_what_is_no_text_is_said() {
    let desk = Desk::new();
    desk.write("long", "0123456789\n".repeat(5000));
    let first = desk.said(Read, json!({ "path": "long" })).await;
    assert!(first.ends_with("[lines 1 to 2000 of 5000; go on with line 2001]"), "{}", first.len());
    desk.write("wide", "ä".repeat(200_000));
    let wide = desk.said(Read, json!({ "path": "wide" })).await;
    assert!(wide.len() < 140_000 && wide.contains("[line 1 is cut: it is too long]"));
    desk.write("binary", b"a\0b");
    let binary = desk.refused(Read, json!({ "path": "binary" })).await;
    assert_eq!(binary, "binary is a binary file of 3 bytes");
    desk.write("latin", b"\xe4");
    assert!(desk.refused(Read, json!({ "path": "latin" })).await.contains("binary"));
    desk.write("huge", vec![b'x'; 9 * 1024 * 1024]);
    assert!(desk.refused(Read, json!({ "path": "huge" })).await.contains("no more than"));
    assert!(desk.refused(Read, json!({ "path": "." })).await.contains("is a directory"));
    assert!(desk.refused(Read, json!({ "path": "none" })).await.contains("No such file"));
}

#[tokio::test]
async fn a_pipe_does_not_keep_a_reader_waiting() {
    let desk = Desk::new();
    let made = std::process::Command::new("mkfifo").arg(desk.path().join("pipe")).status();
    assert!(made.unwrap().success());
    assert_eq!(desk.refused(Read, json!({ "path": "pipe" })).await, "pipe is no file");
    assert_eq!(
        desk.refused(Write, json!({ "path": "pipe", "content": "x" })).await,
        "pipe is no file"
    );
}

#[tokio::test]
async fn a_file_is_written_with_its_directories_and_keeps_its_mode() {
    let desk = Desk::new();
    let said = desk.said(Write, json!({ "path": "a/b/c.sh", "content": "echo" })).await;
    assert_eq!(said, "a/b/c.sh has 4 bytes");
    assert_eq!(desk.text("a/b/c.sh"), "echo");
    let path = desk.path().join("a/b/c.sh");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
    desk.said(Write, json!({ "path": "a/b/c.sh", "content": "echo 2" })).await;
    assert_eq!(desk.text("a/b/c.sh"), "echo 2");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
    let left: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is left beside it");
    let said = desk.refused(Write, json!({ "path": "a", "content": "" })).await;
    assert!(said.contains("is a directory"), "{said}");
}

#[tokio::test]
async fn a_text_is_replaced_where_it_is_once() {
    let desk = Desk::new();
    desk.write("a.rs", "let a = 1;\nlet b = 1;\n");
    let edit = |old: &str, new: &str, all: bool| json!({ "path": "a.rs", "old_text": old, "new_text": new, "replace_all": all });
    assert_eq!(desk.refused(Edit, edit("c", "d", false)).await, "the text is not in a.rs");
    assert_eq!(desk.refused(Edit, edit("1", "2", false)).await, "the text is in a.rs 2 times");
    assert!(desk.refused(Edit, edit("a", "a", true)).await.contains("nothing would change"));
    desk.said(Edit, edit("a = 1", "a = 7", false)).await;
    assert_eq!(desk.text("a.rs"), "let a = 7;\nlet b = 1;\n");
    desk.said(Edit, edit("let", "const", true)).await;
    assert_eq!(desk.text("a.rs"), "const a = 7;\nconst b = 1;\n");
}

#[tokio::test]
async fn a_directory_is_listed() {
    let desk = Desk::new();
    assert_eq!(desk.said(List, json!({})).await, "[it is empty]");
    desk.write("b.txt", "12345");
    desk.write("a/x", "");
    symlink("b.txt", desk.path().join("c")).unwrap();
    assert_eq!(desk.said(List, json!({})).await, "a/\nb.txt (5 bytes)\nc (link)");
    assert_eq!(desk.said(List, json!({ "path": "a" })).await, "x (0 bytes)");
    for number in 0..1001 {
        desk.write(&format!("many/{number}"), "");
    }
    let many = desk.said(List, json!({ "path": "many" })).await;
    assert!(many.ends_with("[1 more are left out]"));
}

#[tokio::test]
async fn files_are_searched_line_by_line() {
    let desk = Desk::new();
    desk.write("src/a.rs", "fn one() {}\nfn two() {}\n");
    desk.write("src/deep/b.rs", "// Two\n");
    desk.write("notes.md", "two\n");
    desk.write(".git/objects", "two\n");
    desk.write("binary", b"two\0");
    symlink("/etc", desk.path().join("out")).unwrap();
    assert_eq!(
        desk.said(Search, json!({ "pattern": "two" })).await,
        "notes.md:1: two\nsrc/a.rs:2: fn two() {}"
    );
    let all = json!({ "pattern": "^.*TWO", "ignore_case": true, "include": "*.rs" });
    assert_eq!(desk.said(Search, all).await, "src/a.rs:2: fn two() {}\nsrc/deep/b.rs:1: // Two");
    let one = json!({ "pattern": "one", "path": "src/a.rs" });
    assert_eq!(desk.said(Search, one).await, "src/a.rs:1: fn one() {}");
    assert_eq!(desk.said(Search, json!({ "pattern": "three" })).await, "[nothing was found]");
    assert!(desk.refused(Search, json!({ "pattern": "(" })).await.starts_with("pattern: "));
    desk.write("long", "two\n".repeat(500));
    let many = desk.said(Search, json!({ "pattern": "two", "path": "long" })).await;
    assert_eq!(many.lines().count(), 201);
    assert!(many.ends_with("[there is more; search for something narrower]"));
}
