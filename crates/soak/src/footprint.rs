//! What a process takes of the machine.

/// What a process holds at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Open file descriptors, sockets included.
    pub descriptors: usize,
    /// Resident memory.
    pub resident_kib: u64,
    /// Threads.
    pub threads: usize,
}

impl Footprint {
    /// Looks at a process; there is nothing to see of one that has ended.
    pub fn of(process: u32) -> Option<Self> {
        let count = |what: &str| {
            std::fs::read_dir(format!("/proc/{process}/{what}")).map(Iterator::count).ok()
        };
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let resident_kib = resident.split_whitespace().next()?.parse().ok()?;
        Some(Self { descriptors: count("fd")?, resident_kib, threads: count("task")? })
    }
}

impl std::fmt::Display for Footprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { descriptors, resident_kib, threads } = self;
        write!(f, "{descriptors} descriptors, {threads} threads, {resident_kib} KiB")
    }
}
