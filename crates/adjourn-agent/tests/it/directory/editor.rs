//! Files and commands where an editor is attached.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use adjourn_agent::ToolCall;
use adjourn_agent::directory::DirectoryTool::{Edit, Read, Run, Write};
use adjourn_driver::{
    BoxFuture, Client, ClientAbilities, ClientError, ClientReply, ClientRequest, PermissionAnswer,
    PermissionRequest, TerminalExit, TerminalId, TerminalOutput,
};
use serde_json::json;

use super::{Desk, words};

/// How an editor answers.
#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Helpful,
    /// It goes away with the first request.
    Gone,
    Failing,
    /// Its commands never end by themselves.
    Slow,
}

/// An editor with files that are not saved, and terminals.
struct Editor {
    mood: Mood,
    abilities: ClientAbilities,
    buffers: Mutex<BTreeMap<String, String>>,
    asked: Mutex<Vec<String>>,
}

impl Editor {
    fn new(mood: Mood) -> Arc<Self> {
        let abilities = ClientAbilities {
            read_files: true,
            write_files: true,
            terminals: true,
            ..ClientAbilities::default()
        };
        Arc::new(Self { mood, abilities, buffers: Mutex::default(), asked: Mutex::default() })
    }

    fn open(&self, path: &Path, text: &str) {
        let path = path.to_str().unwrap().to_owned();
        self.buffers.lock().unwrap().insert(path, text.to_owned());
    }

    fn buffer(&self, path: &Path) -> Option<String> {
        self.buffers.lock().unwrap().get(path.to_str().unwrap()).cloned()
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn answer(&self, request: ClientRequest) -> Result<ClientReply, ClientError> {
        let name = format!("{request:?}");
        let name = name.split(['(', ' ']).next().unwrap().to_owned();
        self.asked.lock().unwrap().push(name);
        match self.mood {
            Mood::Gone => return Err(ClientError::Gone),
            Mood::Failing => return Err(ClientError::Failed("the disk is full".to_owned())),
            Mood::Helpful | Mood::Slow => {}
        }
        let mut buffers = self.buffers.lock().unwrap();
        Ok(match request {
            ClientRequest::ReadTextFile { path, line, limit } => {
                let text = buffers.get(&path).cloned().unwrap_or_default();
                let skip = usize::try_from(line.unwrap_or(1) - 1).unwrap();
                let take = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap());
                ClientReply::Text(text.split_inclusive('\n').skip(skip).take(take).collect())
            }
            ClientRequest::WriteTextFile { path, content } => {
                buffers.insert(path, content);
                ClientReply::Done
            }
            ClientRequest::CreateTerminal(command) => {
                assert_eq!(command.command, "sh");
                ClientReply::Terminal(TerminalId(command.arguments[1].clone()))
            }
            ClientRequest::TerminalOutput(id) => {
                let text = format!("$ {}\n", id.0);
                ClientReply::Output(TerminalOutput { text, truncated: false, exit: None })
            }
            ClientRequest::WaitForExit(_) => {
                ClientReply::Exited(TerminalExit { code: Some(0), signal: None })
            }
            _ => ClientReply::Done,
        })
    }
}

impl Client for Editor {
    fn permission(&self, _: PermissionRequest) -> BoxFuture<'static, PermissionAnswer> {
        Box::pin(std::future::ready(PermissionAnswer::Gone))
    }

    fn abilities(&self) -> ClientAbilities {
        self.abilities
    }

    fn request(
        &self,
        request: ClientRequest,
    ) -> BoxFuture<'static, Result<ClientReply, ClientError>> {
        let waits = self.mood == Mood::Slow && matches!(request, ClientRequest::WaitForExit(_));
        let answer = self.answer(request);
        Box::pin(async move {
            if waits {
                std::future::pending::<()>().await;
            }
            answer
        })
    }
}

#[tokio::test]
async fn files_are_read_and_written_as_the_editor_has_them() {
    let desk = Desk::new();
    let path = desk.path().canonicalize().unwrap().join("a.txt");
    desk.write("a.txt", "saved\n");
    let editor = Editor::new(Mood::Helpful);
    editor.open(&path, "not\nsaved\n");
    let read = desk.with(editor.clone(), Read, json!({ "path": "a.txt" })).await.unwrap();
    assert_eq!(words(&read.blocks), "not\nsaved\n");
    let second = json!({ "path": "a.txt", "line": 2, "limit": 1 });
    let second = desk.with(editor.clone(), Read, second).await.unwrap();
    assert!(words(&second.blocks).starts_with("saved\n"));
    let edit = json!({ "path": "a.txt", "old_text": "not\n", "new_text": "" });
    desk.with(editor.clone(), Edit, edit).await.unwrap();
    assert_eq!(editor.buffer(&path).as_deref(), Some("saved\n"));
    let write = json!({ "path": "new/b.txt", "content": "b" });
    desk.with(editor.clone(), Write, write).await.unwrap();
    let new = desk.path().canonicalize().unwrap().join("new/b.txt");
    assert_eq!(editor.buffer(&new).as_deref(), Some("b"));
    assert!(!new.exists(), "the editor saves it");
    assert_eq!(desk.text("a.txt"), "saved\n");
}

#[tokio::test]
async fn an_editor_is_not_asked_for_what_lies_outside() {
    let desk = Desk::new();
    let editor = Editor::new(Mood::Helpful);
    std::os::unix::fs::symlink("/etc", desk.path().join("out")).unwrap();
    for path in ["../x", "/etc/passwd", "out/passwd"] {
        for (tool, arguments) in [
            (Read, json!({ "path": path })),
            (Write, json!({ "path": path, "content": "" })),
            (Edit, json!({ "path": path, "old_text": "a", "new_text": "b" })),
        ] {
            assert!(desk.with(editor.clone(), tool, arguments).await.is_err(), "{path}");
        }
    }
    assert_eq!(editor.asked(), [""; 0]);
}

#[tokio::test]
async fn no_link_makes_an_editor_write_outside() {
    let desk = Desk::new();
    let outside = tempfile::tempdir().unwrap();
    let name = outside.path().file_name().unwrap().to_str().unwrap();
    let link = |target: &Path, name: &str| {
        std::os::unix::fs::symlink(target, desk.path().join(name)).unwrap();
    };
    desk.write("in/file", "inside");
    link(outside.path(), "out");
    link(&Path::new("..").join(name), "up");
    link(&outside.path().join("new"), "out-new");
    // The way leads out only once the first name of it is there.
    link(&Path::new("missing/../..").join(name), "later");
    link(Path::new("in/missing"), "nowhere");
    link(Path::new("in"), "link");
    let editor = Editor::new(Mood::Helpful);
    for path in [
        "out/new.txt",
        "out/new/deep.txt",
        "link/../out/new.txt",
        "up/new.txt",
        "out-new",
        "out-new/deep.txt",
        "later",
        "later/new.txt",
        "nowhere",
        "nowhere/new.txt",
    ] {
        for (tool, arguments) in [
            (Read, json!({ "path": path })),
            (Write, json!({ "path": path, "content": "mine" })),
            (Edit, json!({ "path": path, "old_text": "a", "new_text": "b" })),
        ] {
            let refused = desk.with(editor.clone(), tool, arguments).await;
            assert!(refused.is_err(), "{tool} {path}");
        }
    }
    assert_eq!(editor.asked(), [""; 0]);
    let within = desk.path().canonicalize().unwrap();
    for path in ["new.txt", "new/deep/file.txt", "in/new.txt", "link/new.txt", "link/new/file.txt"]
    {
        let write = json!({ "path": path, "content": "mine" });
        desk.with(editor.clone(), Write, write).await.unwrap();
        assert_eq!(editor.buffer(&within.join(path)).as_deref(), Some("mine"), "{path}");
    }
}

#[tokio::test]
async fn files_of_an_editor_that_goes_away_are_read_and_written_here() {
    let desk = Desk::new();
    desk.write("a.txt", "saved");
    let editor = Editor::new(Mood::Gone);
    let read = desk.with(editor.clone(), Read, json!({ "path": "a.txt" })).await.unwrap();
    assert_eq!(words(&read.blocks), "saved");
    let edit = json!({ "path": "a.txt", "old_text": "saved", "new_text": "changed" });
    desk.with(editor.clone(), Edit, edit).await.unwrap();
    assert_eq!(desk.text("a.txt"), "changed");
    assert_eq!(editor.asked(), ["ReadTextFile", "ReadTextFile", "WriteTextFile"]);
}

#[tokio::test]
async fn what_an_editor_cannot_do_is_told_in_its_words() {
    let desk = Desk::new();
    desk.write("a.txt", "saved");
    for (tool, arguments) in [
        (Read, json!({ "path": "a.txt" })),
        (Edit, json!({ "path": "a.txt", "old_text": "saved", "new_text": "changed" })),
        (Write, json!({ "path": "a.txt", "content": "changed" })),
        (Run, json!({ "command": "touch b.txt" })),
    ] {
        let failed = desk.with(Editor::new(Mood::Failing), tool, arguments).await.unwrap_err();
        assert!(words(&failed.blocks).contains("the disk is full"), "{tool}");
    }
    assert_eq!(desk.text("a.txt"), "saved");
    assert!(!desk.path().join("b.txt").exists());
}

#[tokio::test]
async fn a_command_runs_in_a_terminal_that_is_shown_and_given_back() {
    let desk = Desk::new();
    let editor = Editor::new(Mood::Helpful);
    let ran = desk.with(editor.clone(), Run, json!({ "command": "make" })).await.unwrap();
    assert_eq!(words(&ran.blocks), "$ make\n\n[exit status 0]");
    let asked = ["CreateTerminal", "WaitForExit", "TerminalOutput", "ReleaseTerminal"];
    assert_eq!(editor.asked(), asked);
}

#[tokio::test(start_paused = true)]
async fn a_command_in_a_terminal_that_takes_too_long_is_ended() {
    let desk = Desk::new();
    let editor = Editor::new(Mood::Slow);
    let command = json!({ "command": "make", "timeout_seconds": 5 });
    let late = desk.with(editor.clone(), Run, command).await.unwrap_err();
    let said = "$ make\n\n[the command was ended: it took more than 5 s]";
    assert_eq!(words(&late.blocks), said);
    let asked =
        ["CreateTerminal", "WaitForExit", "KillTerminal", "TerminalOutput", "ReleaseTerminal"];
    assert_eq!(editor.asked(), asked);
}

#[tokio::test]
async fn a_command_that_is_given_up_gives_its_terminal_back() {
    let desk = Desk::new();
    let editor = Editor::new(Mood::Slow);
    let client = Arc::clone(&editor) as Arc<dyn Client>;
    let mut call = ToolCall::new(json!({ "command": "make" }));
    call.client = client;
    let mut call = desk.tool(Run).call(call);
    while editor.asked().len() < 2 {
        let polled = std::future::poll_fn(|context| {
            std::task::Poll::Ready(call.as_mut().poll(context).is_ready())
        });
        assert!(!polled.await);
        tokio::task::yield_now().await;
    }
    drop(call);
    while editor.asked().len() < 3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(editor.asked(), ["CreateTerminal", "WaitForExit", "ReleaseTerminal"]);
}

#[tokio::test]
async fn a_command_of_an_editor_that_goes_away_does_not_run_twice() {
    let desk = Desk::new();
    let gone = desk.with(Editor::new(Mood::Gone), Run, json!({ "command": "touch a" })).await;
    let said = words(&gone.unwrap_err().blocks);
    assert!(said.contains("is gone; what came of it is not known"), "{said}");
    assert!(!desk.path().join("a").exists());
}
