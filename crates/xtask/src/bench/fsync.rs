//! The raw figure of the disk: writing a record over an older one, and `fdatasync`.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;

use super::figures::{Figures, percentile};

const RECORDS: u64 = 400;
const RECORD: usize = 4096;

/// Measures one round.
pub fn measure(place: &Path, figures: &mut Figures) -> Result<()> {
    let path = place.join("raw");
    let file = File::options().create(true).truncate(true).write(true).open(&path)?;
    // The file has its full size before it is measured: growing it would cost a journal commit.
    file.write_all_at(&vec![1; RECORD * 64], 0)?;
    file.sync_all()?;
    let mut times = Vec::new();
    for number in 0..RECORDS {
        let mut record = vec![0; RECORD];
        record.iter_mut().zip(number.to_le_bytes()).for_each(|(to, from)| *to = from);
        let start = Instant::now();
        file.write_all_at(&record, (number % 64) * RECORD as u64)?;
        file.sync_data()?;
        times.push(start.elapsed());
    }
    figures.add("fsync_p50_us", percentile(&mut times, 0.5));
    Ok(())
}
