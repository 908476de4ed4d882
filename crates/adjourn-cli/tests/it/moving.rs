//! Sessions that move from one home to another: exported to a file, and imported from it.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::home::Home;

const ASKS: &str =
    r#"{"steps": [{"say": "hello"}, {"ask": {"question": "which?"}}, {"say": "done"}]}"#;

/// Two homes, of which the second accepts what the first seals.
fn homes() -> (Home, Home) {
    let (here, there) = (Home::new(), Home::new());
    let key = here.path("key.json").to_str().unwrap().to_owned();
    here.json(&["keys", "share", &key]);
    let accepted = there.json(&["keys", "accept", &key]);
    assert_eq!(accepted["state"], "records");
    (here, there)
}

fn path(home: &Home, name: &str) -> String {
    home.path(name).to_str().unwrap().to_owned()
}

#[test]
fn a_session_goes_on_in_another_home() {
    let (here, there) = homes();
    let id = here.parked(ASKS);
    let record = path(&here, "record.json");
    let exported = here.json(&["export", &id, &record, "--reason", "moved"]);
    assert_eq!((&exported["record"], &exported["first"]), (&record.as_str().into(), &true.into()));
    let mode = std::fs::metadata(&record).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let ended = here.json(&["show", &id]);
    assert_eq!(ended["state"], "ended", "{ended}");
    assert!(here.told(&["log", &id]).data.contains("exported, sealed with key-"));
    assert!(here.told(&["show", &id]).data.contains("exported: moved"));
    let moved = there.json(&["import", &record, "--name", "mine"]);
    assert_eq!((&moved["state"], &moved["question"]), (&"suspended".into(), &"which?".into()));
    assert!(there.told(&["log", "mine"]).data.contains(&format!("from {id}")));
    let twice = there.told(&["import", &record]);
    assert_eq!(twice.code, 3, "{twice:?}");
    assert!(twice.talk.contains("was used before") && twice.talk.contains("adjourn show"));
    let answered = there.told(&["prompt", "mine", "the second"]);
    assert!(answered.data.contains("done"), "{answered:?}");
    for home in [&here, &there] {
        assert_eq!(home.told(&["status"]).code, 0);
    }
}

#[test]
fn a_restored_store_takes_in_no_record_of_what_is_open_in_it_or_has_gone_on() {
    let home = Home::new();
    let id = home.parked(ASKS);
    let (copy, record) = (path(&home, "copy.db"), path(&home, "record.json"));
    home.json(&["backup", &copy]);
    home.json(&["export", &id, &record]);
    home.json(&["restore", &copy]);
    let open = home.told(&["import", &record]);
    assert_eq!(open.code, 3, "{open:?}");
    assert!(open.talk.contains(&id) && open.talk.contains("adjourn close"), "{open:?}");
    assert_eq!(home.told(&["prompt", &id, "the second"]).code, 0);
    home.json(&["close", &id]);
    let done = home.told(&["import", &record]);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.talk.contains("was used before, by session"), "{done:?}");
}

/// A suspension keeps its handle when it moves, and a wrong directory uses up no record.
#[test]
fn a_session_is_exported_and_imported_by_one_home_again_and_again() {
    let home = Home::new();
    let mut id = home.parked(ASKS);
    for name in ["first.json", "second.json"] {
        let record = path(&home, name);
        home.json(&["export", &id, &record]);
        let nowhere = home.told(&["import", &record, "--cwd", &path(&home, "nowhere")]);
        assert_eq!(nowhere.code, 2, "{nowhere:?}");
        assert!(nowhere.talk.contains("--cwd") && nowhere.talk.contains("nowhere"), "{nowhere:?}");
        let file = home.told(&["import", &record, "--cwd", &record]);
        assert!(file.talk.contains("it is no directory"), "{file:?}");
        let moved = home.json(&["import", &record, "--cwd", &path(&home, "")]);
        assert_eq!((&moved["state"], &moved["question"]), (&"suspended".into(), &"which?".into()));
        moved["sessionId"].as_str().unwrap().clone_into(&mut id);
        assert_eq!(home.told(&["import", &record]).code, 3);
    }
    let answered = home.told(&["prompt", &id, "the second"]);
    assert!(answered.data.contains("done"), "{answered:?}");
}

#[test]
fn a_file_is_not_replaced_unless_that_is_said_and_nothing_has_happened_then() {
    let home = Home::new();
    let id = home.parked(ASKS);
    let there = home.file("there.json", "mine");
    let told = home.told(&["export", &id, &there]);
    assert_eq!(told.code, 3, "{told:?}");
    assert!(told.talk.contains("is there already") && told.talk.contains("--force"), "{told:?}");
    assert_eq!(std::fs::read_to_string(&there).unwrap(), "mine");
    assert_eq!(home.json(&["show", &id])["state"], "suspended");
    let nowhere = home.told(&["export", &id, &path(&home, "no/such/directory/r.json")]);
    assert!(nowhere.talk.contains("cannot write"), "{nowhere:?}");
    assert_eq!(home.json(&["show", &id])["state"], "suspended");
    home.json(&["export", &id, &there, "--force"]);
    assert!(std::fs::read_to_string(&there).unwrap().contains("\"token\""));
    let left = std::fs::read_dir(home.path("")).unwrap();
    let left = left
        .filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().contains("unfinished"));
    assert_eq!(left.count(), 0);
}

#[test]
fn what_cannot_be_exported_says_what_to_do() {
    let home = Home::new();
    let script = home.file("s.json", ASKS);
    let id = home.json(&["new", "--script", &script])["sessionId"].as_str().unwrap().to_owned();
    let told = home.told(&["export", &id, &path(&home, "r.json")]);
    assert_eq!(told.code, 3, "{told:?}");
    assert!(told.talk.contains("it is idle, not parked"), "{told:?}");
    assert!(told.talk.contains("park it first with: adjourn suspend"), "{told:?}");
    assert!(!home.path("r.json").exists());
    let waits = home.parked(r#"{"steps": [{"await": {"reason": "ci"}}]}"#);
    home.json(&["suspend", &waits]);
    let held = home.told(&["export", &waits, &path(&home, "r.json")]);
    assert!(held.talk.contains("lift the hold with: adjourn resume"), "{held:?}");
}

#[test]
fn a_record_that_is_not_good_here_says_what_to_do() {
    let (here, there) = homes();
    let id = here.parked(ASKS);
    let record = path(&here, "record.json");
    here.json(&["export", &id, &record]);
    let stranger = Home::new();
    let told = stranger.told(&["import", &record]);
    assert_eq!(told.code, 3, "{told:?}");
    assert!(told.talk.contains("unknown key") && told.talk.contains("adjourn keys share"));
    let text = std::fs::read_to_string(&record).unwrap();
    let edited = there.file("edited.json", &text.replace("which?", "whose?"));
    let told = there.told(&["import", &edited]);
    assert!(told.talk.contains("does not fit its content"), "{told:?}");
    let cut = there.file("cut.json", &text[..text.len() / 2]);
    let told = there.told(&["import", &cut]);
    assert!(told.talk.contains("malformed") && told.talk.contains("only part of one"), "{told:?}");
    let told = there.told(&["import", &record, "--max-age", "0s"]);
    assert!(told.talk.contains("expired") && told.talk.contains("--max-age none"), "{told:?}");
    // A key that is revoked opens nothing any more.
    let key = there.jsons(&["keys", "list"]);
    let key = key.iter().find(|key| key["state"] == "records").unwrap();
    there.json(&["keys", "revoke", key["key"].as_str().unwrap(), "--reason", "stolen"]);
    let told = there.told(&["import", &record]);
    assert!(told.talk.contains("was revoked"), "{told:?}");
    assert_eq!(there.sessions().len(), 0);
}

#[test]
fn a_record_that_could_not_be_written_is_had_again() {
    let home = Home::new();
    let id = home.parked(ASKS);
    let mut command = home.command(&["export", &id, "-"]);
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = command.stdout(Stdio::from(full)).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(1));
    let first = home.told(&["export", &id, "-"]).data;
    assert!(first.contains("\"token\""), "{first}");
    let again = path(&home, "again.json");
    let told = home.json(&["export", &id, &again]);
    assert_eq!(told["first"], false);
    assert_eq!(std::fs::read_to_string(&again).unwrap(), first);
    home.json(&["import", &again]);
}

#[test]
fn a_session_is_not_exported_to_a_reader_who_is_gone() {
    let home = Home::new();
    let id = home.parked(ASKS);
    let unread = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    for (stdout, flags, problem) in [
        (unread(), &[][..], "nobody reads stdout any more"),
        (unread(), &["--json"], "nobody reads stdout any more"),
        // What a shell closes is the null device to a program.
        (Stdio::null(), &[], "stdout is closed, or leads to /dev/null"),
    ] {
        let mut command = home.command(&["export", &id, "-"]);
        command.args(flags).stdout(stdout);
        let told = home.ended(command);
        assert_eq!(told.code, 1, "{told:?}");
        assert!(told.talk.contains(problem) && told.talk.contains("nothing was done"), "{told:?}");
        assert_eq!(home.json(&["show", &id])["state"], "suspended");
    }
}

#[test]
fn a_reader_who_goes_away_in_the_middle_of_a_record_is_no_success() {
    let home = Home::new();
    // More than fits into a pipe that is not read.
    let long = format!(
        r#"{{"steps": [{{"ask": {{"question": "which?"}}}}, {{"say": "{}"}}]}}"#,
        "x".repeat(200_000)
    );
    let id = home.parked(&long);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut command = home.command(&["export", &id, "-"]);
    let child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    drop(command);
    reader.read_exact(&mut [0]).unwrap();
    drop(reader);
    let ended = child.wait_with_output().unwrap();
    let talk = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{talk}");
    assert!(talk.contains("cannot write the record: Broken pipe"), "{talk}");
    assert!(talk.contains("the session is over here, and `adjourn export "), "{talk}");
    assert!(!talk.contains("goes on with the record"), "{talk}");
    let record = path(&home, "record.json");
    assert_eq!(home.json(&["export", &id, &record])["first"], false);
    assert_eq!(home.json(&["import", &record])["state"], "suspended");
}

/// A process that is killed has exported the session, or it has not: there is nothing between.
#[test]
fn a_process_that_is_killed_leaves_a_parked_session_or_a_record_to_be_had() {
    let home = Home::new();
    // More than fits into a pipe that is not read: it is killed after its commit, and before its end.
    let long = format!(
        r#"{{"steps": [{{"ask": {{"question": "which?"}}}}, {{"say": "{}"}}]}}"#,
        "x".repeat(200_000)
    );
    let id = home.parked(&long);
    let store = rusqlite::Connection::open(home.path(".local/share/adjourn/store.db")).unwrap();
    store.busy_timeout(Duration::from_secs(20)).unwrap();
    store.execute_batch("BEGIN IMMEDIATE").unwrap();
    let record = path(&home, "record.json");
    let mut before = home.command(&["export", &id, &record]).spawn().unwrap();
    // It cannot commit, whatever it has got to.
    kill(&before);
    before.wait().unwrap();
    store.execute_batch("ROLLBACK").unwrap();
    drop(store);
    assert_eq!(home.json(&["show", &id])["state"], "suspended");
    assert!(!home.path("record.json").exists());
    let mut command = home.command(&["export", &id, "-"]);
    let mut after = command.stdout(Stdio::piped()).spawn().unwrap();
    home.until(&id, "state", "ended");
    kill(&after);
    after.wait().unwrap();
    home.json(&["export", &id, &record]);
    let moved = home.json(&["import", &record]);
    assert_eq!(moved["state"], "suspended");
}

fn kill(child: &std::process::Child) {
    kill_process(Pid::from_child(child), Signal::KILL).unwrap();
}

#[test]
fn of_processes_that_import_one_record_at_once_one_has_it() {
    let (here, there) = homes();
    let id = here.parked(ASKS);
    let record = path(&here, "record.json");
    here.json(&["export", &id, &record]);
    // The store is there: making it is another race.
    there.parked(ASKS);
    let racing: Vec<_> = (0..6)
        .map(|_| {
            let mut command = there.command(&["import", &record]);
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    let mut codes: Vec<_> =
        racing.into_iter().map(|mut child| child.wait().unwrap().code().unwrap()).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 3, 3, 3, 3, 3]);
    assert_eq!(there.sessions().len(), 2);
}

#[test]
fn an_exported_session_says_so_and_an_imported_one_counts_its_run() {
    let (here, there) = homes();
    let id = here.parked(ASKS);
    let record = path(&here, "record.json");
    assert_eq!(here.json(&["export", &id, &record])["record"], record);
    let shown = here.told(&["show", &id]).data;
    let listed = here.told(&["ls", "--all"]).data;
    for told in [&shown, &listed] {
        assert!(!told.contains("canceled"), "{told}");
        assert!(told.contains("exported: it goes on elsewhere"), "{told}");
    }
    // Peers are told what the journal says, and no path of this machine.
    let journal = here.told(&["log", &id, "--json"]).data;
    assert!(!journal.contains(&record) && !shown.contains(&record), "{journal}");
    there.json(&["import", &record, "--name", "mine"]);
    assert_eq!(there.json(&["show", "mine"])["runs"], 1);
}

#[test]
fn a_directory_that_is_missing_here_is_told_before_the_record_is_used_up() {
    let (here, there) = homes();
    let work = here.path("work");
    std::fs::create_dir(&work).unwrap();
    let script = here.file("script.json", ASKS);
    let cwd = work.to_str().unwrap();
    let told = here.told(&["run", "--script", &script, "--cwd", cwd, "--name", "w", "--detach"]);
    assert_eq!(told.code, 0, "{told:?}");
    let record = path(&here, "record.json");
    here.json(&["export", "w", &record]);
    std::fs::remove_dir(&work).unwrap();
    let told = there.told(&["import", &record]);
    assert_eq!(told.code, 3, "{told:?}");
    let problem = format!("the session works in {cwd}, which is no directory here");
    assert!(told.talk.contains(&problem) && told.talk.contains("--cwd DIR"), "{told:?}");
    assert_eq!(there.told(&["import", &record, "--cwd", "/"]).code, 0);
}

#[test]
fn a_key_that_was_revoked_is_not_accepted_again() {
    let (here, there) = homes();
    let key = path(&here, "key.json");
    let id = here.jsons(&["keys", "list"])[0]["key"].as_str().unwrap().to_owned();
    there.json(&["keys", "revoke", &id, "--reason", "the laptop is lost"]);
    let told = there.told(&["keys", "accept", &key]);
    assert_ne!(told.code, 0, "{told:?}");
    assert!(told.talk.contains("was revoked here at") && told.talk.contains("the laptop is lost"));
    assert!(!told.talk.contains("are taken in here"), "{told:?}");
}
