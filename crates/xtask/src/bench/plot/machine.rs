//! Which machine it was, and when.

use std::fmt;

use adjourn::clock::Environment as _;
use adjourn::clock::Machine;

/// The circumstances of a run.
pub struct Run {
    /// The day, in UTC.
    pub date: String,
    /// Processors that may be used.
    pub cores: usize,
    /// What the system calls its processors, if it says.
    pub processor: Option<String>,
}

impl Run {
    /// Returns those of a run that ends now, on this machine.
    pub fn here() -> Self {
        let now = Machine.now().to_string();
        let about = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self {
            date: now.split('T').next().unwrap_or_default().to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: processor(&about),
        }
    }
}

/// Finds the name of the first processor.
fn processor(about: &str) -> Option<String> {
    let name = about.lines().find(|line| line.starts_with("model name"))?.split_once(':')?.1.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { date, cores, processor } = self;
        write!(f, "{date}, {cores} core{}", if *cores == 1 { "" } else { "s" })?;
        processor.iter().try_for_each(|name| write!(f, ", {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_when_and_on_what() {
        let about = "processor\t: 0\nmodel name\t: Some CPU @ 2.00GHz\nmodel name\t: Another\n";
        let (date, processor) = ("2026-01-02".to_owned(), processor(about));
        let run = Run { date, cores: 2, processor };
        assert_eq!(run.to_string(), "2026-01-02, 2 cores, Some CPU @ 2.00GHz");
        let here = Run::here();
        assert_eq!((here.date.len(), here.cores > 0), (10, true), "{here}");
    }
}
