//! What others reach, as we measured it on a machine of the same kind; see
//! `docs/performance.md` for how, and for what is not comparable.

/// A figure of somebody else.
pub struct Peer {
    /// Who.
    pub name: &'static str,
    /// The figure.
    pub value: f64,
}

/// Whole runs per second, 64 in flight, each really suspended: measured in turns with ours.
pub const RUNS: &[Peer] = &[Peer { name: "Restate 1.7", value: 2107.0 }];

/// Durable cycles of park and wake per second, one after the other.
pub const CYCLES: &[Peer] = &[Peer { name: "LangGraph 1.2, SQLite", value: 143.0 }];

/// Milliseconds from the event to the code behind the wait: the median.
pub const WAKE_P50: &[Peer] = &[
    Peer { name: "Restate 1.7", value: 2.4 },
    Peer { name: "DBOS 3.3, polling every 1 ms", value: 6.1 },
];

/// The same, for one in a hundred.
pub const WAKE_P99: &[Peer] = &[
    Peer { name: "Restate 1.7", value: 26.5 },
    Peer { name: "DBOS 3.3, polling every 1 ms", value: 14.2 },
];

/// Bytes of memory for each parked session.
pub const MEMORY: &[Peer] =
    &[Peer { name: "Restate 1.7", value: 4200.0 }, Peer { name: "DBOS 3.3", value: 25_000.0 }];

/// Milliseconds until a killed server is back, with ten thousand parked.
pub const RESTART: &[Peer] = &[Peer { name: "Restate 1.7, ten thousand parked", value: 280.0 }];
