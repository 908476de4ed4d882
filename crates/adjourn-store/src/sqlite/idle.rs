//! The writer between two groups: awake for a moment, then asleep.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

/// How long the writer looks for the next job before it goes to sleep: one that was just told often
/// comes back at once, and waking a thread takes longer than that.
const AWAKE: Duration = Duration::from_micros(50);
/// How long it looks where the last job came as soon as this: an agent that works alone takes some
/// hundred microseconds from one commit to the next command, and waits for each commit.
const AWAKE_FOR_ONE: Duration = Duration::from_micros(400);

/// How the writer waits for its next job.
#[derive(Debug, Default)]
pub(super) struct Idle {
    /// Whether the last job came soon.
    came_soon: bool,
}

impl Idle {
    /// Waits for a job; returns nothing when there will be none.
    pub(super) fn until_next<J>(&mut self, queue: &mut mpsc::Receiver<J>) -> Option<J> {
        let start = Instant::now();
        let awake = self.awake();
        let next = loop {
            match queue.try_recv() {
                Ok(job) => break Some(job),
                Err(TryRecvError::Disconnected) => break None,
                Err(TryRecvError::Empty) if start.elapsed() < awake => std::thread::yield_now(),
                Err(TryRecvError::Empty) => break queue.blocking_recv(),
            }
        };
        self.came_soon = start.elapsed() < AWAKE_FOR_ONE;
        next
    }

    /// Returns how long it looks for the next job before it goes to sleep.
    const fn awake(&self) -> Duration {
        if self.came_soon { AWAKE_FOR_ONE } else { AWAKE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_awake_for_longer_only_behind_a_job_that_came_soon() {
        let (jobs, mut queue) = mpsc::channel(8);
        let mut idle = Idle::default();
        jobs.blocking_send(1).unwrap();
        assert_eq!(idle.until_next(&mut queue), Some(1));
        assert_eq!(idle.awake(), AWAKE_FOR_ONE);
        let late = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            jobs.blocking_send(2).unwrap();
        });
        assert_eq!(idle.until_next(&mut queue), Some(2));
        assert_eq!(idle.awake(), AWAKE);
        late.join().unwrap();
        assert_eq!(idle.until_next(&mut queue), None);
    }
}
