//! The files of a store: replaced, restored, and where nothing can be written.

use std::io::{BufRead as _, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::home::{Home, Told};

const PARKS: &str = r#"{"steps": [{"await": {"reason": "night"}}, {"say": "done"}]}"#;

fn store(home: &Home) -> PathBuf {
    home.path(".local/share/adjourn/store.db")
}

fn backup(home: &Home, name: &str) -> PathBuf {
    let path = home.path(name);
    home.json(&["backup", path.to_str().unwrap()]);
    path
}

fn ids(home: &Home) -> Vec<String> {
    let sessions = home.jsons(&["ls"]);
    sessions.iter().map(|session| session["sessionId"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_backup_copied_over_the_store_of_a_killed_host_is_what_is_there() {
    let home = Home::new();
    let serving = home.serve();
    let early = home.parked(PARKS);
    let copy = backup(&home, "backup.db");
    let late = home.parked(PARKS);
    serving.kill();
    std::fs::copy(copy, store(&home)).unwrap();
    let told = home.told(&["ls"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.data.contains(&early) && !told.data.contains(&late), "{told:?}");
    let talk = home.plain(&told.talk);
    let named = "warning: ~/.local/share/adjourn/store.db-wal was not written for \
                 ~/.local/share/adjourn/store.db, and was not read: it is \
                 ~/.local/share/adjourn/store.db-wal.of-";
    assert!(talk.contains(named), "{talk}");
    // It goes on from there.
    let serving = home.serve();
    home.json(&["resume", &early, "--detach"]);
    home.until(&early, "state", "idle");
    serving.terminate();
}

#[test]
fn a_host_whose_store_is_replaced_ends_and_says_so() {
    type Change = fn(&Path, &Path);
    let changes: [(&str, Change); 4] = [
        ("it was deleted or moved away", |store, _| std::fs::remove_file(store).unwrap()),
        ("it was deleted or moved away", |store, _| {
            std::fs::rename(store, store.with_extension("old")).unwrap();
        }),
        ("another file is in its place", |store, copy| std::fs::rename(copy, store).unwrap()),
        ("another file was copied over it", |store, copy| {
            std::fs::copy(copy, store).unwrap();
        }),
    ];
    for (problem, change) in changes {
        let home = Home::new();
        let early = home.parked(PARKS);
        let copy = backup(&home, "backup.db");
        let serving = home.serve();
        home.parked(PARKS);
        change(&store(&home), &copy);
        let (code, talk) = serving.ends();
        assert_eq!(code, 5, "{talk}");
        assert!(talk.contains("is not the file that was opened: "), "{talk}");
        assert!(talk.contains(problem), "{talk}");
        assert!(talk.contains("hint: start again"), "{talk}");
        if store(&home).exists() {
            assert_eq!(ids(&home), [early], "what is at the path is as it was put there");
        }
    }
}

#[test]
fn a_host_whose_log_is_deleted_ends_and_says_so() {
    for suffix in ["-wal", "-shm"] {
        let home = Home::new();
        let serving = home.serve();
        let log = PathBuf::from(format!("{}{suffix}", store(&home).display()));
        std::fs::remove_file(&log).unwrap();
        let (code, talk) = serving.ends();
        assert_eq!(code, 5, "{talk}");
        let gone = "is not the file that was opened: it was deleted";
        assert!(talk.contains(&format!("{} {gone}", log.display())), "{talk}");
    }
}

#[test]
fn a_second_name_of_a_store_is_refused_with_what_to_do() {
    let home = Home::new();
    let id = home.parked(PARKS);
    let second = store(&home).with_extension("second");
    std::fs::hard_link(store(&home), &second).unwrap();
    let told = home.told(&["event", "go"]);
    assert_eq!(told.code, 5, "{}", told.talk);
    let other = second.display().to_string();
    assert!(told.talk.contains(&format!("has a second name, {other}")), "{}", told.talk);
    assert!(told.talk.contains("ln -s"), "{}", told.talk);
    std::fs::remove_file(second).unwrap();
    home.json(&["event", "go"]);
    assert_eq!(ids(&home), [id]);
}

#[test]
fn a_host_that_is_stopped_after_a_backup_was_copied_over_its_store_leaves_it_alone() {
    let home = Home::new();
    let early = home.parked(PARKS);
    let copy = backup(&home, "backup.db");
    let serving = home.serve();
    for _ in 0..3 {
        home.parked(PARKS);
    }
    std::fs::copy(copy, store(&home)).unwrap();
    assert_eq!(serving.terminate(), 5);
    assert_eq!(ids(&home), [early.as_str()], "what is at the path is as it was put there");
    home.json(&["resume", &early, "--detach"]);
}

#[test]
fn an_agent_of_an_editor_whose_store_is_replaced_ends_too() {
    let home = Home::new();
    let script = home.file("script.json", PARKS);
    let mut command = home.command(&["acp", "--script", &script]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut talk = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    talk.read_line(&mut said).unwrap();
    assert!(said.starts_with("an ACP agent"), "{said}");
    std::fs::remove_file(store(&home)).unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < Duration::from_secs(20), "it goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
    talk.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(5), "{said}");
    assert!(said.contains("is not the file that was opened: it was deleted"), "{said}");
}

#[test]
fn a_backup_is_put_in_place_when_nobody_uses_the_store() {
    let home = Home::new();
    let early = home.parked(PARKS);
    let copy = backup(&home, "backup.db");
    let copy = copy.to_str().unwrap();
    let late = home.parked(PARKS);
    let serving = home.serve();
    let told = home.told(&["restore", copy]);
    assert_eq!(told.code, 5, "{told:?}");
    assert!(told.talk.contains("1 process drives or watches sessions of "), "{told:?}");
    assert!(told.talk.contains("hint: stop hosts first"), "{told:?}");
    serving.kill();
    assert_eq!(ids(&home), [early.clone(), late.clone()], "nothing was changed");

    let no_store = home.file("diary", &"Dear diary,\n".repeat(100));
    let told = home.told(&["restore", &no_store]);
    assert_eq!(told.code, 5, "{told:?}");
    assert!(told.talk.contains("is not a store: it is not a database"), "{told:?}");

    let told = home.told(&["restore", copy]);
    assert_eq!(told.code, 0, "{told:?}");
    assert_eq!(ids(&home), [early.as_str()]);
    let kept = told.talk.lines().next().unwrap().strip_prefix("kept ").unwrap().to_owned();
    let sessions = home.told(&["ls", "--store", &kept]);
    assert!(sessions.data.contains(&late), "the old one is still a store: {sessions:?}");

    // Where there is none yet.
    let new = home.path("elsewhere.db");
    let new = new.to_str().unwrap();
    let restored = home.json(&["restore", copy, "--store", new]);
    assert_eq!(restored["kept"], serde_json::json!([]));
    assert!(home.told(&["ls", "--store", new]).data.contains(&early));
}

/// A copy of a store where nothing can be written, and a program that permissions bind.
struct Sealed {
    home: Home,
    store: PathBuf,
    program: PathBuf,
}

impl Sealed {
    fn new(home: Home, files: &[&str]) -> Self {
        let (from, directory) = (store(&home), home.path("sealed"));
        std::fs::create_dir(&directory).unwrap();
        for end in files {
            let copy = directory.join(format!("store.db{end}"));
            let from = PathBuf::from(format!("{}{end}", from.display()));
            std::fs::copy(from, &copy).unwrap();
            mode(&copy, 0o444);
        }
        mode(&directory, 0o555);
        mode(&home.path(""), 0o755);
        let program = home.path("adjourn");
        std::fs::copy(env!("CARGO_BIN_EXE_adjourn"), &program).unwrap();
        let store = directory.join("store.db");
        Self { home, store, program }
    }

    /// Runs a command without a home, and as somebody who is not root.
    fn told(&self, arguments: &[&str]) -> Told {
        const NOBODY: u32 = 65534;
        let mut command = Command::new(&self.program);
        command.args(arguments).args(["--store", self.store.to_str().unwrap()]).env_clear();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(NOBODY).gid(NOBODY);
        }
        self.home.ended(command)
    }
}

impl Drop for Sealed {
    fn drop(&mut self) {
        mode(&self.home.path("sealed"), 0o755);
    }
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_only_reads_works_where_nothing_can_be_written_without_home_and_keys() {
    let home = Home::new();
    let id = home.parked(PARKS);
    let sealed = Sealed::new(home, &["", "-incarnation"]);
    for arguments in [&["ls"] as &[_], &["show", &id], &["log", &id], &["config"]] {
        let told = sealed.told(arguments);
        assert_eq!(told.code, 0, "{arguments:?}: {told:?}");
        assert!(!told.talk.contains("warning"), "{told:?}");
        let expected = match arguments[0] {
            "config" => "store.db",
            "log" => "session_created",
            _ => &id[id.len() - 8..],
        };
        assert!(told.data.contains(expected), "{arguments:?}: {told:?}");
    }
    let copies = sealed.home.path("copies");
    std::fs::create_dir(&copies).unwrap();
    mode(&copies, 0o777);
    let copy = copies.join("copy.db");
    let told = sealed.told(&["backup", copy.to_str().unwrap()]);
    assert_eq!(told.code, 0, "{told:?}");
    // What writes says why it cannot.
    let told = sealed.told(&["suspend", &id]);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.talk.contains("there is no HOME"), "{told:?}");
    let left: Vec<_> = std::fs::read_dir(sealed.home.path("sealed")).unwrap().collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn a_log_that_cannot_be_read_is_named() {
    let home = Home::new();
    let serving = home.serve();
    let id = home.parked(PARKS);
    serving.kill();
    let sealed = Sealed::new(home, &["", "-incarnation", "-wal"]);
    let told = sealed.told(&["ls", "--json"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.talk.contains("store.db-wal cannot be read here"), "{told:?}");
    assert!(!told.data.contains(&id), "{told:?}");
}

#[test]
fn what_holds_is_shown_without_a_home() {
    let home = Home::new();
    let mut command = home.command(&["config", "--json"]);
    command.env_remove("HOME");
    let told = home.ended(command);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.data.contains(r#"{"key":"store","value":null,"source":"default"}"#), "{told:?}");
    let mut command = home.command(&["ls"]);
    command.env_remove("HOME");
    let told = home.ended(command);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.talk.contains("hint: --store names a file"), "{told:?}");
}

#[test]
fn looking_at_what_is_no_store_makes_none() {
    let home = Home::new();
    let empty = home.file("empty.db", "");
    let told = home.told(&["ls", "--store", &empty]);
    assert_eq!(told.code, 5, "{told:?}");
    assert!(told.talk.contains("is not a store: it is empty"), "{told:?}");
    assert_eq!(std::fs::metadata(&empty).unwrap().len(), 0);
    let left: Vec<_> = std::fs::read_dir(home.path("")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// What is no file is named as what it is; opening a pipe would wait for its other end, and a device
/// has no end.
#[test]
fn what_is_no_file_is_neither_a_store_nor_a_script() {
    let home = Home::new();
    let pipe = home.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let directory = home.path("directory");
    std::fs::create_dir(&directory).unwrap();
    let script = home.file("script.json", PARKS);
    let there = [
        (pipe.to_str().unwrap(), "it is a pipe"),
        (directory.to_str().unwrap(), "it is a directory"),
        ("/dev/null", "it is a device"),
        ("/dev/zero", "it is a device"),
    ];
    for (store, problem) in there {
        for command in [&["ls"][..], &["event", "a"], &["run", "--script", &script], &["serve"]] {
            let command = [&["--store", store], command].concat();
            let told = home.told(&command);
            let expected = format!("error: {store} is not a store: {problem}\n");
            assert_eq!(told.code, 5, "{told:?}");
            assert!(told.talk.starts_with(&expected), "{command:?}: {told:?}");
        }
    }
    assert!(!home.path("pipe-incarnation").exists(), "nothing is left beside it");
    for (script, problem) in [
        (pipe.to_str().unwrap(), "it is a pipe or a device, and not a file"),
        (directory.to_str().unwrap(), "it is a directory"),
        ("/dev/zero", "it is a pipe or a device, and not a file"),
    ] {
        let told = home.told(&["run", "--script", script]);
        let expected = format!("error: cannot read {script}: {problem}\n");
        assert_eq!((told.code, told.talk.as_str()), (2, expected.as_str()), "{told:?}");
    }
    let long = home.file("long.json", &" ".repeat((512 << 10) + 1));
    let told = home.told(&["run", "--script", &long]);
    let expected = format!("error: cannot read {long}: it is longer than 512 KiB\n");
    assert_eq!((told.code, told.talk.as_str()), (2, expected.as_str()), "{told:?}");
    for endless in [
        &["--config", "/dev/zero", "ls"][..],
        &["serve", "--token-file", "/dev/zero", "--listen", "127.0.0.1:0"],
    ] {
        let told = home.told(endless);
        assert!(told.talk.contains("it is longer than 1024 KiB"), "{told:?}");
    }
}
