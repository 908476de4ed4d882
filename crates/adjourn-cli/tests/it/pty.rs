//! A terminal of one's own: what a person would see.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use adjourn_testkit::process::{Child, Signal};
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// A program on a terminal.
pub struct OnTerminal {
    child: Child,
    /// The other end of the terminal: what is written to it is typed.
    keys: File,
    written: Arc<Mutex<Vec<u8>>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl OnTerminal {
    /// Starts a command whose stdout and stderr are a terminal.
    pub fn start(command: Command, columns: u16) -> Self {
        Self::start_with(command, columns, |_| Stdio::null())
    }

    /// Starts a command that can be typed to.
    pub fn start_typing(command: Command, columns: u16) -> Self {
        Self::start_with(command, columns, |theirs| theirs.try_clone().unwrap().into())
    }

    fn start_with(mut command: Command, columns: u16, stdin: impl Fn(&File) -> Stdio) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let own = openpt(flags).unwrap();
        grantpt(&own).unwrap();
        unlockpt(&own).unwrap();
        let size = Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let name = ptsname(&own, Vec::new()).unwrap().into_string().unwrap();
        // It must not become the terminal that controls this test.
        let flags = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
        let theirs = File::options().read(true).write(true).custom_flags(flags).open(name).unwrap();
        tcsetwinsize(&theirs, size).unwrap();
        command.stdin(stdin(&theirs)).stdout(theirs.try_clone().unwrap()).stderr(theirs);
        let child = Child::start(&mut command).unwrap();
        // The command holds the other ends of the terminal; reading ends when it does.
        drop(command);
        let written = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&written);
        let mut own = File::from(own);
        let keys = own.try_clone().unwrap();
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = own.read(&mut bytes) {
                sink.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Self { child, keys, written, reader: Some(reader) }
    }

    /// Returns everything that was written, with what moves the cursor and gives colour.
    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// Waits until something was written.
    pub fn until(&self, text: &str) {
        let start = Instant::now();
        while !self.raw().contains(text) {
            assert!(start.elapsed() < Duration::from_secs(20), "never {text:?}: {}", self.raw());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Types something.
    pub fn type_in(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).unwrap();
    }

    pub fn signal(&self, which: Signal) {
        self.child.signal(which);
    }

    /// Waits for its end, and returns its code and what is left on the screen.
    pub fn end(self) -> (i32, String) {
        let (code, raw) = self.end_raw();
        (code, screen(&raw))
    }

    /// Waits for its end, and returns its code and everything that was written.
    pub fn end_raw(mut self) -> (i32, String) {
        let code = self.child.wait().code().unwrap();
        self.reader.take().unwrap().join().unwrap();
        (code, self.raw())
    }
}

/// Plays what was written as a terminal would, as far as this program goes: a return to the
/// beginning of the line, clearing it, and colours.
fn screen(raw: &str) -> String {
    let mut lines = vec![String::new()];
    let mut rest = raw;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("\r\n") {
            lines.push(String::new());
            rest = after;
        } else if let Some(after) = rest.strip_prefix("\r\x1b[2K") {
            lines.last_mut().unwrap().clear();
            rest = after;
        } else if let Some(after) = rest.strip_prefix("\x1b[") {
            rest = after.split_once('m').unwrap().1;
        } else {
            lines.last_mut().unwrap().push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    lines.join("\n")
}
