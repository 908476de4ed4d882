//! The examples, as a reader would run them: offline, each by itself.

use std::path::PathBuf;
use std::process::Command;

use expect_test::{Expect, expect};

/// Returns the program of an example.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    // Cargo builds a package's examples with its tests, into a directory beside theirs.
    test.ancestors().nth(2).unwrap().join("examples").join(name)
}

/// Runs an example, and checks what it prints.
fn prints(name: &str, expected: Expect) {
    let output = Command::new(program(name)).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors, "");
    expected.assert_eq(&String::from_utf8_lossy(&output.stdout));
}

#[test]
fn agt_14_ask() {
    prints(
        "ask",
        expect![[r#"
            The agent asks: Which table?
            The agent says: The monthly table has 12 rows.
        "#]],
    );
}

#[test]
fn agt_17_36_web_handler() {
    prints(
        "web_handler",
        expect![[r#"
            begin "Summarise the sales table.": 202 Which table? (monthly or raw)
            answer "": 422 the answer is empty
            answer "monthly": 200 The monthly table has 12 rows.
            answer "raw": 409 answered before
        "#]],
    );
}

#[test]
fn of_processes_that_resume_a_record_at_once_one_does() {
    let directory = tempfile::tempdir().unwrap();
    let request = |words: [&str; 2]| {
        let mut request = Command::new(program("web_handler"));
        request.arg(directory.path()).args(words).stdout(std::process::Stdio::piped());
        request
    };
    assert!(request(["begin", "Summarise sales."]).status().unwrap().success());
    let racers: Vec<_> = (0..4).map(|_| request(["answer", "monthly"]).spawn().unwrap()).collect();
    let mut answers: Vec<_> = racers
        .into_iter()
        .map(|racer| String::from_utf8(racer.wait_with_output().unwrap().stdout).unwrap())
        .collect();
    answers.sort();
    let lost = "409 answered before\n";
    assert_eq!(answers, ["200 The monthly table has 12 rows.\n", lost, lost, lost]);
}

#[test]
fn a_record_that_a_full_disk_kept_from_being_resumed_is_resumed_later() {
    let directory = tempfile::tempdir().unwrap();
    let answered = |mut request: Command, words: [&str; 2]| {
        let output = request.arg(directory.path()).args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let web = || Command::new(program("web_handler"));
    answered(web(), ["begin", "Summarise sales."]);
    // A program that may write no byte to any file, and is told so by an error.
    let mut full = Command::new("sh");
    full.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"]).arg(program("web_handler"));
    let refused = answered(full, ["answer", "monthly"]);
    assert!(
        refused.starts_with("403 the ledger of consumed suspensions cannot be used"),
        "{refused}"
    );
    let left = std::fs::read_dir(directory.path().join("consumed")).unwrap();
    assert_eq!(left.count(), 0, "it leaves nothing behind");
    let answer = answered(web(), ["answer", "monthly"]);
    assert_eq!(answer, "200 The monthly table has 12 rows.\n");
}

#[test]
fn agt_05_recovery() {
    prints(
        "recovery",
        expect![[r#"
            The agent asks: The agent goes round in circles: search was asked for 6 times with the same arguments. How should it go on?
            because of: loop_detected
            The agent says: There are no invoices; I looked for bills, too.
        "#]],
    );
}

#[test]
fn budget() {
    prints(
        "budget",
        expect![[r#"
            The agent asks: The run has cost 0.06 USD, and may cost 0.05 USD. Should it go on? Then its budget has to be raised.
            Without money it does not go on.
            The agent says: It is about boats.
            It has cost 0.08 USD.
        "#]],
    );
}
