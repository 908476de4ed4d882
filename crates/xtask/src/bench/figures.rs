//! Collecting figures, and showing them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Map, Value};

/// The figures that go into `bench.json`. The others are only shown.
const KEPT: &[&str] = &[
    "run_cycles_per_s_n1",
    "run_cycles_per_s_n64",
    "run_commits",
    "run_commands",
    "run_beneath_commits",
    "run_beneath_commands",
    "run_cpu_us",
    "run_library_percent_n1",
    "run_library_percent_n64",
    "run_library_cpu_percent_n64",
    "run_log_percent_n64",
    "run_log_cpu_percent_n64",
    "acp_run_cycles_per_s_n64",
    "acp_run_p50_ms_n1",
    "acp_run_log_percent_n64",
    "acp_run_log_cpu_percent_n64",
    "acp_cycle_1500_attached_ratio",
    "live_delta_p99_ms",
    "fsync_p50_us",
    "op_n1_p50_us",
    "cycles_per_s_n1",
    "cycles_per_s_n64",
    "ops_per_fsync_n64",
    "suspend_10_vs_10000_messages_ratio",
    "wake_latency_p50_us",
    "wake_latency_p99_us",
    "foreign_write_p99_ms",
    "rss_per_parked_bytes_1m",
    "disk_per_parked_bytes",
    "restart_10k_ms",
    "restart_1m_ms",
    "storm_100k_s",
    "storm_foreground_p99_ms",
    "status_per_s",
    "ls_filter_1m_ms",
    "ls_disjoint_by_change_ms",
    "raw_axum_per_s",
    "events_per_s",
    "a2a_ops_per_s_n16",
    "a2a_ops_echo_ratio_n16",
    "a2a_ops_per_s_n64",
    "a2a_ops_echo_ratio_n64",
    "a2a_hosted_ops_per_s_n16",
    "a2a_hosted_ops_per_s_n64",
    "a2a_get_per_s",
    "a2a_get_echo_ratio",
    "a2a_fanout_1000_ms",
    "a2a_fanout_ratio",
    "raw_pipe_p50_us",
    "acp_status_per_s",
    "acp_cycle_p50_us",
    "acp_cycle_commits",
    "acp_replay_messages_per_s",
    "acp_replay_peak_mb",
    "agent_cycle_p50_us.2",
    "agent_cycle_p50_us.10",
    "agent_cycle_p50_us.100",
    "agent_cycle_p50_us.1000",
];

/// Figures by name; each round adds one value, the median is kept.
#[derive(Default)]
pub struct Figures {
    values: BTreeMap<&'static str, Vec<f64>>,
    order: Vec<&'static str>,
}

impl Figures {
    /// Adds one round's value.
    pub fn add(&mut self, name: &'static str, value: f64) {
        let values = self.values.entry(name).or_default();
        if values.is_empty() {
            self.order.push(name);
        }
        values.push(value);
    }

    /// Returns the median of a figure.
    pub fn median(&self, name: &str) -> Option<f64> {
        let mut values = self.values.get(name)?.clone();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }

    /// Returns all figures as aligned text.
    pub fn table(&self) -> String {
        let mut text = format!("{:<42} {:>12}   {}\n", "figure", "median", "(lowest to highest)");
        for name in &self.order {
            let values = self.values.get(name).map(Vec::as_slice).unwrap_or_default();
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let median = self.median(name).unwrap_or_default();
            let _ = writeln!(text, "{name:<42} {median:>12.2}   ({low:.2} to {high:.2})");
        }
        text
    }

    /// Returns the medians that are kept as JSON; what was not measured is not there. Figures whose
    /// names are alike up to a point are members of one object.
    pub fn json(&self) -> Result<String> {
        let mut kept = Map::new();
        for name in KEPT {
            let Some(median) = self.median(name) else { continue };
            let rounded = Value::from((median * 100.0).round() / 100.0);
            match name.split_once('.') {
                None => kept.insert((*name).to_owned(), rounded),
                Some((object, member)) => {
                    let object = kept.entry(object).or_insert_with(|| Value::Object(Map::new()));
                    object.as_object_mut().and_then(|of| of.insert(member.to_owned(), rounded))
                }
            };
        }
        let mut text = serde_json::to_string_pretty(&kept)?;
        text.push('\n');
        Ok(text)
    }
}

/// Returns the value below which a part of all values lies, in microseconds.
pub fn percentile(times: &mut [Duration], part: f64) -> f64 {
    times.sort_unstable();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length is a place in it"
    )]
    let index = ((times.len() as f64 - 1.0) * part).round() as usize;
    times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}
