//! Stores that are not there: a mistyped path is no new store, and the tour leaves none behind.

use crate::home::Home;

#[test]
fn a_store_that_is_not_there_is_refused_and_not_made() {
    let home = Home::new();
    let typo = home.path("typo.db");
    let copy = home.path("copy.db");
    let nobody = "sess-01a1df44-c97b-7076-bba7-8d66d49eebf9";
    let commands: &[&[&str]] = &[
        &["backup", copy.to_str().unwrap()],
        &["ls"],
        &["status"],
        &["hosts"],
        &["wait", nobody],
        &["show", nobody],
        &["log", nobody],
        &["suspend", nobody],
        &["resume", nobody],
        &["prompt", nobody, "x"],
        &["cancel", nobody],
        &["close", nobody],
        &["takeover", nobody],
        &["prune"],
    ];
    for named in [&["--store", typo.to_str().unwrap()] as &[_], &[]] {
        for command in commands {
            let told = home.told(&[command, named].concat());
            assert_eq!((told.code, told.data.as_str()), (5, ""), "{command:?}: {told:?}");
            let talk = home.plain(&told.talk);
            let path =
                if named.is_empty() { "~/.local/share/adjourn/store.db" } else { "~/typo.db" };
            assert!(talk.starts_with(&format!("error: there is no store {path}\n")), "{talk}");
            assert!(
                talk.contains(
                    "hint: `adjourn run`, `new`, `event`, `serve`, `acp`, `import` and `restore` make one"
                ),
                "{talk}"
            );
        }
    }
    let told = home.told(&["ls", "--json"]);
    assert_eq!((told.code, told.talk.as_str()), (5, ""), "{told:?}");
    let error: serde_json::Value = serde_json::from_str(&told.data).unwrap();
    assert_eq!(error["error"]["reason"], "STORE", "{error}");
    let left: Vec<_> = std::fs::read_dir(home.path("")).unwrap().collect();
    assert!(left.is_empty(), "looking makes nothing, and no key: {left:?}");

    // Whoever has something to put into it makes one.
    home.json(&["event", "a", "--store", typo.to_str().unwrap()]);
    home.json(&["backup", copy.to_str().unwrap(), "--store", typo.to_str().unwrap()]);
    assert!(typo.exists() && copy.exists());
}

#[test]
fn an_empty_file_is_no_store_until_something_is_put_into_it() {
    let home = Home::new();
    let empty = home.file("empty.db", "");
    for command in [&["ls"] as &[_], &["ls", "--json"], &["status"], &["prune"]] {
        let told = home.told(&[command, &["--store", &empty]].concat());
        assert_eq!(told.code, 5, "{told:?}");
        let said = told.data + &told.talk;
        assert!(said.contains("empty.db is not a store: it is empty"), "{said}");
    }
    let left: Vec<_> = std::fs::read_dir(home.path("")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(std::fs::metadata(&empty).unwrap().len(), 0);
    home.json(&["event", "a", "--store", &empty]);
    assert_eq!(home.told(&["ls", "--store", &empty]).code, 0);
}

#[test]
fn the_tour_needs_no_home_and_leaves_nothing() {
    let home = Home::new();
    let mut command = home.command(&["demo", "--json"]);
    command.env("HOME", "/nonexistent").env("TMPDIR", home.path(""));
    let told = home.ended(command);
    assert_eq!(told.code, 0, "{told:?}");
    let left: Vec<_> = std::fs::read_dir(home.path("")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}
