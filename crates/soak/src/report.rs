//! What came of a trial.

use std::fmt;

/// The figures of a trial, and everything that went wrong.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Hosts that were killed with SIGKILL.
    pub kills: u64,
    /// Of these, hosts that were giving their sessions back.
    pub mid_drain: u64,
    /// Hosts that were stopped with SIGSTOP.
    pub stops: u64,
    /// Sessions that were taken from a host that lived.
    pub takeovers: u64,
    /// Hosts that gave everything back and ended.
    pub restarts: u64,
    /// Sessions that came to their end.
    pub sessions: u64,
    /// Resumes that were given at the same time as another of the same suspension.
    pub resumes_raced: u64,
    /// Events that were sent at the same time as the same event, or before the wait they are for.
    pub events_raced: u64,
    /// Operations that were acknowledged, and looked for in the store afterwards.
    pub acknowledged: u64,
    /// Calls of tools that left a mark.
    pub calls: u64,
    /// Sessions that were taken from a host that had died.
    pub recovered: u64,
    /// Calls whose outcome nobody knew afterwards.
    pub unknown: u64,
    /// What was acknowledged or awaited, and is not there.
    pub lost: Vec<String>,
    /// What happened twice and must not.
    pub doubled: Vec<String>,
    /// Whatever else is wrong.
    pub wrong: Vec<String>,
}

impl Report {
    /// Adds what another trial came to.
    pub fn add(&mut self, other: Self) {
        let Self { kills, mid_drain, stops, takeovers, restarts, sessions, .. } = other;
        self.kills += kills;
        self.mid_drain += mid_drain;
        self.stops += stops;
        self.takeovers += takeovers;
        self.restarts += restarts;
        self.sessions += sessions;
        self.resumes_raced += other.resumes_raced;
        self.events_raced += other.events_raced;
        self.acknowledged += other.acknowledged;
        self.calls += other.calls;
        self.recovered += other.recovered;
        self.unknown += other.unknown;
        self.lost.extend(other.lost);
        self.doubled.extend(other.doubled);
        self.wrong.extend(other.wrong);
    }

    /// Returns whether nothing went wrong.
    pub fn is_clean(&self) -> bool {
        self.lost.is_empty() && self.doubled.is_empty() && self.wrong.is_empty()
    }

    /// Returns everything that went wrong, line by line.
    pub fn problems(&self) -> String {
        let kinds = [("lost", &self.lost), ("doubled", &self.doubled), ("wrong", &self.wrong)];
        let lines = kinds.iter().flat_map(|(kind, problems)| {
            problems.iter().map(move |problem| format!("{kind}: {problem}\n"))
        });
        lines.collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} kills survived ({} in a drain), {} stops, {} takeovers, {} rolling restarts; \
             {} sessions ended, {} recoveries from a dead host, {} calls, {} of unknown \
             outcome; {} resumes raced, {} events raced, {} acknowledged operations checked; \
             {} lost, {} doubled, {} wrong",
            self.kills,
            self.mid_drain,
            self.stops,
            self.takeovers,
            self.restarts,
            self.sessions,
            self.recovered,
            self.calls,
            self.unknown,
            self.resumes_raced,
            self.events_raced,
            self.acknowledged,
            self.lost.len(),
            self.doubled.len(),
            self.wrong.len(),
        )
    }
}
