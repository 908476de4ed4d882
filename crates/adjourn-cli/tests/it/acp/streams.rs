//! What stdin and stdout are: pipes, as most editors have them, sockets, as those on Node and Python
//! have, and files.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use adjourn_testkit::process::Child;
use rustix::fs::{OFlags, fcntl_getfl};
use serde_json::{Value, json};

use crate::home::Home;

const SCRIPT: &str = r#"{"steps": [{"say": "hello"}]}"#;

/// Requests that are sent before an answer is read.
const REQUESTS: usize = 5000;

/// A stream between an editor and its agent, by its two ends.
struct Stream {
    editor: OwnedFd,
    agent: OwnedFd,
}

/// Returns streams for what the editor says and for what it hears.
fn pipes() -> [Stream; 2] {
    let (heard, said) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    [
        Stream { editor: said.1.into(), agent: said.0.into() },
        Stream { editor: heard.0.into(), agent: heard.1.into() },
    ]
}

fn sockets() -> [Stream; 2] {
    [(), ()].map(|()| {
        let (editor, agent) = UnixStream::pair().unwrap();
        Stream { editor: editor.into(), agent: agent.into() }
    })
}

fn is_blocking(end: &impl AsFd) -> bool {
    !fcntl_getfl(end).unwrap().contains(OFlags::NONBLOCK)
}

fn request(id: &str, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string() + "\n"
}

#[test]
fn pipes_and_sockets_carry_what_is_long_and_stay_as_they_were_for_others() {
    for [said, heard] in [pipes(), sockets()] {
        let home = Home::new();
        let script = home.file("script.json", SCRIPT);
        let mut command = home.command(&["acp", "--script", &script]);
        // As a shell that has started the agent would have them.
        let shared = [&said, &heard].map(|stream| stream.agent.try_clone().unwrap());
        command.stdin(said.agent).stdout(heard.agent);
        let mut agent = Child::start(&mut command).unwrap();
        drop(command);
        let (mut said, heard) = (File::from(said.editor), File::from(heard.editor));
        // More than a pipe or a socket holds, both ways.
        let id = |number: usize| format!("{number:0200}");
        let words: String =
            (0..REQUESTS).map(|number| request(&id(number), "status", &json!({}))).collect();
        let saying = std::thread::spawn(move || {
            said.write_all(words.as_bytes()).unwrap();
            said
        });
        let answers = BufReader::new(heard).lines().map(|line| line.unwrap());
        for (number, answer) in answers.take(REQUESTS).enumerate() {
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer["id"], id(number));
        }
        assert!(shared.iter().all(is_blocking));
        // The agent ends when the editor closes its end.
        drop(saying.join().unwrap());
        assert!(agent.wait().success());
        assert!(shared.iter().all(is_blocking));
    }
}

#[test]
fn files_are_read_and_written() {
    let home = Home::new();
    let script = home.file("script.json", SCRIPT);
    let said = request("1", "initialize", &json!({ "protocolVersion": 1 }));
    let told = home.told_with(&said, &["acp", "--script", &script]);
    assert_eq!(told.code, 0, "{told:?}");
    let answer: Value = serde_json::from_str(&told.data).unwrap();
    assert!(answer["result"].is_object(), "{told:?}");
    let heard = home.path("heard");
    let mut command = home.command(&["acp", "--script", &script]);
    command.stdin(File::open(home.file("said", &said)).unwrap());
    command.stdout(File::create(&heard).unwrap());
    assert_eq!(home.ended(command).code, 0);
    assert_eq!(std::fs::read_to_string(heard).unwrap(), told.data);
}

/// Its writer may have come and gone before the agent has started.
#[test]
fn a_pipe_with_a_name_ends_with_its_writers() {
    let home = Home::new();
    let script = home.file("script.json", SCRIPT);
    let name = home.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&name).status().unwrap().success());
    // It does not wait for a reader that is a writer, too.
    let mut writer = File::options().read(true).write(true).open(&name).unwrap();
    let said = request("1", "initialize", &json!({ "protocolVersion": 1 }));
    writer.write_all(said.as_bytes()).unwrap();
    let mut command = home.command(&["acp", "--script", &script]);
    command.stdin(File::open(&name).unwrap());
    drop(writer);
    let told = home.ended(command);
    assert_eq!(told.code, 0, "{told:?}");
    let answer: Value = serde_json::from_str(&told.data).unwrap();
    assert!(answer["result"].is_object(), "{told:?}");
}
