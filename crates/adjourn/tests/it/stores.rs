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
                talk.contains("hint: `adjourn run`, `new`, `event` and `serve` make one"),
                "{talk}"
            );
        }
    }
    let told = home.told(&["ls", "--store", typo.to_str().unwrap()]);
    assert_eq!((told.code, told.data.as_str()), (0, ""), "{told:?}");
    let expected = "no sessions: there is no store ~/typo.db, which --store names\n";
    assert_eq!(home.plain(&told.talk), expected);
    let told = home.told(&["ls"]);
    assert_eq!((told.code, told.data.as_str()), (0, ""), "{told:?}");
    let left: Vec<_> = std::fs::read_dir(home.path("")).unwrap().collect();
    assert!(left.is_empty(), "looking makes nothing, and no key: {left:?}");

    // Whoever has something to put into it makes one.
    home.json(&["event", "a", "--store", typo.to_str().unwrap()]);
    home.json(&["backup", copy.to_str().unwrap(), "--store", typo.to_str().unwrap()]);
    assert!(typo.exists() && copy.exists());
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
