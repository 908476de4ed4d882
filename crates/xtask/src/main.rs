//! The project's own tools. `make` names them.

mod bench;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("bench") => bench::run(&arguments.collect::<Vec<_>>()),
        Some(bench::CHILD) => bench::child(&arguments.collect::<Vec<_>>()),
        other => bail!("no tool {other:?}; there is `bench`"),
    }
}
