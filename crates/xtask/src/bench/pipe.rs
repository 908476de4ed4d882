//! The raw figure of a child process: a line to it and back through two pipes.

use std::time::Instant;

use anyhow::Result;

use super::child;
use super::figures::{Figures, percentile};

/// About as long as a small JSON-RPC message.
const LINE: usize = 400;

/// Measures one round.
pub fn measure(figures: &mut Figures) -> Result<()> {
    let mut child = child::spawn("echo", None)?;
    let line = [&b"x".repeat(LINE)[..], b"\n"].concat();
    let mut times = Vec::new();
    for _ in 0..2000 {
        let before = Instant::now();
        child.tell(&line)?;
        child.line()?;
        times.push(before.elapsed());
    }
    figures.add("raw_pipe_p50_us", percentile(&mut times, 0.5));
    Ok(())
}
