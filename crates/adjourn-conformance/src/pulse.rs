//! How slow the machine is, measured all the while that scenarios are played, or anything else that
//! has to be in time.
//!
//! A runner knows how long its own verbs and looks take, but not what holds up a host between
//! them. So a pulse does over and over what a host does to begin a turn: a few commits, each
//! handed to another thread and made durable. Where the pulse is quick, a host has no excuse.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How often it beats.
const EVERY: Duration = Duration::from_millis(50);

/// Commits in a beat: a claim, a step, its calls, their start, and one to spare.
const COMMITS: u32 = 5;

/// What a commit writes.
const PAGE: [u8; 4096] = [0; 4096];

/// How far the file grows before it is begun anew.
const MOST: u64 = 1 << 20;

/// The pulse of this process, while somebody holds it.
static SHARED: Mutex<Weak<Pulse>> = Mutex::new(Weak::new());

/// Measures the machine until it is dropped.
#[derive(Debug, Default)]
pub struct Pulse {
    beats: Mutex<Beats>,
}

#[derive(Debug, Default)]
struct Beats {
    /// When each beat was due, and how long after that it was over.
    over: Vec<(Instant, Duration)>,
    /// When the next one is due, or the one that is not over was.
    next: Option<Instant>,
}

impl Pulse {
    /// Returns the one pulse of this process.
    pub fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let pulse = Arc::new(Self::default());
            *shared = Arc::downgrade(&pulse);
            let beating = Arc::downgrade(&pulse);
            std::thread::spawn(move || beat(&beating));
            pulse
        })
    }

    /// Returns how long the slowest beat took since `since`.
    pub fn slowest(&self, since: Instant) -> Duration {
        let beats = self.beats.lock().unwrap_or_else(PoisonError::into_inner);
        let over = beats.over.iter().filter(|(due, _)| *due >= since).map(|(_, took)| *took);
        let late = beats.next.map(|due| due.elapsed());
        over.chain(late).max().unwrap_or_default()
    }
}

/// Beats as long as anybody listens.
fn beat(pulse: &Weak<Pulse>) {
    let (ask, asked) = channel();
    let (done, heard) = channel();
    let committing = std::thread::spawn(move || commit(&asked, &done));
    let mut due = Instant::now();
    while let Some(pulse) = pulse.upgrade() {
        due = Instant::now().max(due + EVERY);
        pulse.beats.lock().unwrap_or_else(PoisonError::into_inner).next = Some(due);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        for _ in 0..COMMITS {
            if ask.send(()).is_err() || heard.recv().is_err() {
                break;
            }
        }
        let mut beats = pulse.beats.lock().unwrap_or_else(PoisonError::into_inner);
        beats.over.push((due, due.elapsed()));
        beats.next = None;
    }
    drop(ask);
    // It ends with the last that was asked for.
    let _ = committing.join();
}

/// Makes a page durable whenever it is asked to.
fn commit(asked: &Receiver<()>, done: &Sender<()>) {
    // Where no file can be written, the hand-over alone is measured.
    let mut scratch = scratch();
    while asked.recv().is_ok() {
        if let Some(file) = &mut scratch {
            let _ = write(file);
        }
        if done.send(()).is_err() {
            return;
        }
    }
}

fn write(file: &mut File) -> std::io::Result<()> {
    if file.stream_position()? >= MOST {
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
    }
    file.write_all(&PAGE)?;
    file.sync_data()
}

/// Makes a file where tests keep theirs. It has lost its name before it is used, so that nothing
/// is left of it however the process ends.
fn scratch() -> Option<File> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("adjourn-pulse-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file = File::create_new(&path).ok()?;
    std::fs::remove_file(&path).ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_that_is_not_over_counts_too() {
        let (begin, pulse) = (Instant::now(), Pulse::default());
        assert_eq!(pulse.slowest(begin), Duration::ZERO);
        let ms = Duration::from_millis;
        pulse.beats.lock().unwrap().over = vec![(begin, ms(900)), (begin + ms(1), ms(7))];
        assert_eq!(pulse.slowest(begin), ms(900));
        assert_eq!(pulse.slowest(begin + ms(1)), ms(7));
        std::thread::sleep(ms(20));
        pulse.beats.lock().unwrap().next = Some(begin);
        assert!(pulse.slowest(begin + ms(1)) >= ms(20));
    }

    #[test]
    fn it_beats_while_somebody_listens() {
        let begin = Instant::now();
        let pulse = Pulse::shared();
        assert!(Arc::ptr_eq(&pulse, &Pulse::shared()));
        while pulse.beats.lock().unwrap().over.len() < 2 {
            assert!(begin.elapsed() < Duration::from_secs(60), "it does not beat");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(pulse.slowest(begin) > Duration::ZERO);
        // A process that ends while it beats would leave what has a name.
        let own = format!("adjourn-pulse-{}-", std::process::id());
        let mut files = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
        assert!(!files.any(|file| file.file_name().to_string_lossy().starts_with(&own)));
    }
}
