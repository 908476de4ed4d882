//! A home of one's own, and the program in it.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::PATIENCE;
use crate::process::{Child, Signal, is_running};

pub use crate::process::signal;

/// Returns where the program is: cargo puts it beside what it runs, and above what it tests.
///
/// # Panics
/// It was not built.
pub fn program() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let places = this.ancestors().skip(1).take(2).map(|place| place.join("adjourn"));
    let built = places.into_iter().find(|program| program.is_file());
    built.unwrap_or_else(|| panic!("it is not built: cargo build -p adjourn-cli"))
}

/// A user's home: an empty directory, and nothing of the machine's own settings.
pub struct Home {
    directory: TempDir,
    /// Variables that every command of the program has, beside those that say whose home this is.
    variables: Vec<(String, String)>,
}

/// What a command printed, and how it ended.
#[derive(Debug)]
pub struct Told {
    /// Its exit code.
    pub code: i32,
    /// What it printed to stdout.
    pub data: String,
    /// What it printed to stderr.
    pub talk: String,
}

impl Home {
    /// Makes an empty one.
    #[expect(clippy::new_without_default, reason = "a test says that it makes a directory")]
    pub fn new() -> Self {
        Self { directory: TempDir::new().unwrap(), variables: Vec::new() }
    }

    /// Makes an empty one in a directory, for a store on a disk that was chosen.
    ///
    /// # Panics
    /// There is no such directory.
    pub fn within(directory: &Path) -> Self {
        Self { directory: TempDir::new_in(directory).unwrap(), variables: Vec::new() }
    }

    /// Gives every command of the program a variable.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Returns a command of the program that sees nothing but this home.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).env_clear().envs(self.environment());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns the variables that say whose home this is.
    pub fn environment(&self) -> [(&'static str, &OsStr); 2] {
        [("HOME", self.directory.path().as_os_str()), ("USER", OsStr::new("ann"))]
    }

    /// Runs a command to its end.
    pub fn told(&self, arguments: &[&str]) -> Told {
        self.ended(self.command(arguments))
    }

    /// Runs a command with something on its stdin.
    pub fn told_with(&self, stdin: &str, arguments: &[&str]) -> Told {
        self.file("stdin", stdin);
        let mut command = self.command(arguments);
        command.stdin(std::fs::File::open(self.path("stdin")).unwrap());
        self.ended(command)
    }

    /// Runs a command that was put together by hand to its end.
    pub fn ended(&self, mut command: Command) -> Told {
        let Output { status, stdout, stderr } = command.output().unwrap();
        Told {
            code: status.code().unwrap(),
            data: String::from_utf8(stdout).unwrap(),
            talk: String::from_utf8(stderr).unwrap(),
        }
    }

    /// Runs a command that must succeed, and returns its first object.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let told = self.told(&[arguments, &["--json"]].concat());
        assert_eq!(told.code, 0, "{told:?}");
        serde_json::from_str(told.data.lines().next_back().unwrap()).unwrap()
    }

    /// Runs a command that must succeed, and returns its objects.
    pub fn jsons(&self, arguments: &[&str]) -> Vec<Value> {
        let told = self.told(&[arguments, &["--json"]].concat());
        assert_eq!(told.code, 0, "{told:?}");
        told.data.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns a path in this home.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns a text with this home's path as `~`.
    pub fn plain(&self, text: &str) -> String {
        text.replace(self.directory.path().to_str().unwrap(), "~")
    }

    /// Writes a file, and returns its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Writes the file that says what holds.
    pub fn config(&self, text: &str) {
        std::fs::create_dir_all(self.path(".config/adjourn")).unwrap();
        self.file(".config/adjourn/config.toml", text);
    }

    /// Starts a host, and waits until it says that it serves.
    pub fn serve(&self) -> Serving {
        self.serve_with(&[]).0
    }

    /// Starts a host as `nohup` does: it is to ignore a signal.
    pub fn serve_ignoring(&self, signal: &str) -> Serving {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' \"$1\"; exec \"$0\" serve"]);
        command.arg(program()).arg(signal);
        command.env_clear().env("HOME", self.directory.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::serving(command).0
    }

    /// Starts a host with further arguments, and returns what it says before it serves.
    pub fn serve_with(&self, arguments: &[&str]) -> (Serving, String) {
        Self::serving(self.command(&[&["serve"], arguments].concat()))
    }

    /// Starts a host that may have few files open, and returns what it says before it serves.
    pub fn serve_with_limit(&self, files: u32, arguments: &[&str]) -> (Serving, String) {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -n {files}; exec \"$0\" serve \"$@\"")]);
        command.arg(program()).args(arguments);
        command.env_clear().env("HOME", self.directory.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::serving(command)
    }

    fn serving(mut command: Command) -> (Serving, String) {
        let mut child = Child::start(&mut command).unwrap();
        let talk = std::io::BufReader::new(child.as_std().stderr.take().unwrap());
        let mut serving = Serving { child, talk };
        let mut said = String::new();
        loop {
            let line = serving.line();
            if line.starts_with("serving ") {
                return (serving, said);
            }
            assert!(!line.is_empty(), "it ended: {said}");
            said += &line;
        }
    }

    /// Makes a session from a script that parks at once, and returns its id.
    pub fn parked(&self, script: &str) -> String {
        let script = self.file("script.json", script);
        let told = self.told(&["run", "--script", &script, "--detach", "--json"]);
        assert_eq!(told.code, 0, "{told:?}");
        let last: Value = serde_json::from_str(told.data.lines().next_back().unwrap()).unwrap();
        last["sessionId"].as_str().unwrap().to_owned()
    }

    /// Returns all sessions; none if there is no store yet.
    pub fn sessions(&self) -> Vec<Value> {
        match self.path(".local/share/adjourn/store.db").exists() {
            true => self.jsons(&["ls"]),
            false => Vec::new(),
        }
    }

    /// Waits until some session has a call of a tool in flight, and returns its id.
    pub fn until_in_flight(&self, tool: &str) -> String {
        let start = Instant::now();
        loop {
            let sessions = self.sessions();
            let found = sessions.iter().find(|status| status["inFlight"][0] == tool);
            if let Some(found) = found {
                return found["sessionId"].as_str().unwrap().to_owned();
            }
            assert!(start.elapsed() < PATIENCE, "{tool} never ran: {sessions:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until something has happened to a session.
    pub fn until_log(&self, id: &str, what: &str) {
        let start = Instant::now();
        loop {
            let log = self.told(&["log", id]).data;
            if log.contains(what) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "never {what}: {log}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until a session's status is as it is wanted, and returns it.
    pub fn until_shown(&self, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let status = self.json(&["show", id]);
            if wanted(&status) {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "it stays {status}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until there is a session, and the first one in the list is as it is wanted.
    pub fn until_first(&self, wanted: impl Fn(&Value) -> bool) {
        let start = Instant::now();
        loop {
            let sessions = self.sessions();
            if sessions.first().is_some_and(&wanted) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "they stay {sessions:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until a file is there.
    pub fn until_there(&self, path: &str) {
        let start = Instant::now();
        while !self.path(path).exists() {
            assert!(start.elapsed() < PATIENCE, "{path} is never written");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until a process that something here has started is gone.
    pub fn until_gone(&self, process: u32) {
        let start = Instant::now();
        while is_running(process) {
            assert!(start.elapsed() < PATIENCE, "{process} is still there");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until a session's status has a value.
    pub fn until(&self, id: &str, key: &str, value: &str) -> Value {
        let start = Instant::now();
        loop {
            let status = self.json(&["show", id]);
            if status[key] == value {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "never {key}={value}: {status}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Returns what a line of a log says, without its time and level.
pub fn unlogged(line: String) -> String {
    match line.split_once(" INFO ").or_else(|| line.split_once(" WARN ")) {
        Some((time, said)) if time.trim_end().ends_with('Z') => said.to_owned(),
        _ => line,
    }
}

/// A host in a process of its own; it does not outlive the test.
pub struct Serving {
    child: Child,
    talk: std::io::BufReader<std::process::ChildStderr>,
}

impl Serving {
    /// Returns the next line it says, without the time and the level of its log.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut self.talk, &mut line).unwrap();
        unlogged(line)
    }

    /// Returns the number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it ends by itself, and returns its code and what it said at last.
    pub fn ends(mut self) -> (i32, String) {
        let start = Instant::now();
        while self.child.has_ended().is_none() {
            assert!(start.elapsed() < PATIENCE, "it goes on");
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut talk = String::new();
        std::io::Read::read_to_string(&mut self.talk, &mut talk).unwrap();
        (self.child.wait().code().unwrap(), talk)
    }

    /// Ends it with SIGKILL.
    pub fn kill(mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
    }

    /// Sends it a signal.
    pub fn signal(&self, which: Signal) {
        self.child.signal(which);
    }

    /// Ends it with SIGTERM, and returns its exit code.
    pub fn terminate(self) -> i32 {
        self.end_by(Signal::TERM)
    }

    /// Ends it with a signal, and returns its exit code.
    pub fn end_by(mut self, which: Signal) -> i32 {
        self.signal(which);
        self.child.wait().code().unwrap()
    }

    /// Stops it with SIGSTOP, and returns when all of its threads stand still.
    pub fn stop(&self) {
        self.child.stop();
    }

    /// Lets it go on.
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }
}
