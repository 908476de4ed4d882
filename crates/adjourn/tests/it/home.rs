//! A home of one's own, and the program in it.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// A user's home: an empty directory, and nothing of the machine's own settings.
pub struct Home(TempDir);

/// What a command printed, and how it ended.
#[derive(Debug)]
pub struct Told {
    pub code: i32,
    pub data: String,
    pub talk: String,
}

impl Home {
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_adjourn"));
        command.args(arguments).env_clear().envs(self.environment());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns the variables that say whose home this is.
    pub fn environment(&self) -> [(&'static str, &OsStr); 2] {
        [("HOME", self.0.path().as_os_str()), ("USER", OsStr::new("ann"))]
    }

    pub fn told(&self, arguments: &[&str]) -> Told {
        let Output { status, stdout, stderr } = self.command(arguments).output().unwrap();
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

    pub fn file(&self, name: &str, text: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Starts a host, and waits until it says that it serves.
    pub fn serve(&self) -> Serving {
        self.serve_with(&[]).0
    }

    /// Starts a host with further arguments, and returns what it says before it serves.
    pub fn serve_with(&self, arguments: &[&str]) -> (Serving, String) {
        let mut child = self.command(&[&["serve"], arguments].concat()).spawn().unwrap();
        let talk = std::io::BufReader::new(child.stderr.take().unwrap());
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

    /// Waits until a session's status has a value.
    pub fn until(&self, id: &str, key: &str, value: &str) -> Value {
        let start = Instant::now();
        loop {
            let status = self.json(&["show", id]);
            if status[key] == value {
                return status;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "never {key}={value}: {status}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A host in a process of its own; it does not outlive the test.
pub struct Serving {
    child: Child,
    talk: std::io::BufReader<std::process::ChildStderr>,
}

impl Serving {
    /// Returns the next line it says.
    fn line(&mut self) -> String {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut self.talk, &mut line).unwrap();
        line
    }

    /// Ends it with SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it with SIGTERM, and returns its exit code.
    pub fn terminate(mut self) -> i32 {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        assert!(sent.success());
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Already ended, unless the test failed before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
