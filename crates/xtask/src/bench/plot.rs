//! The plot: one panel of bars for each question, ours first, then the raw figure and the peers.

use std::fmt::Write as _;

use super::figures::Figures;
use super::peers::{self, Peer};

const WIDTH: f64 = 900.0;
/// Where the bars begin; names stand before it.
const BARS: f64 = 300.0;
/// The longest bar; the rest of the line is for its value.
const LONGEST: f64 = 480.0;
const LINE: f64 = 24.0;
const MARGIN: f64 = 20.0;

const OURS: &str = "#2563a8";
const RAW: &str = "#8a8f98";
const OTHERS: &str = "#d08a3c";

/// One question, and the answers to it.
struct Panel {
    title: &'static str,
    unit: &'static str,
    bars: Vec<Bar>,
}

struct Bar {
    name: String,
    value: f64,
    colour: &'static str,
}

impl Panel {
    fn new(title: &'static str, unit: &'static str) -> Self {
        Self { title, unit, bars: Vec::new() }
    }

    /// Adds a figure, if it was measured.
    fn figure(mut self, name: &str, value: Option<f64>, colour: &'static str) -> Self {
        let name = name.to_owned();
        self.bars.extend(value.map(|value| Bar { name, value, colour }));
        self
    }

    fn ours(self, name: &str, value: Option<f64>) -> Self {
        self.figure(name, value, OURS)
    }

    fn raw(self, name: &str, value: Option<f64>) -> Self {
        self.figure(name, value, RAW)
    }

    fn peers(mut self, peers: &[Peer]) -> Self {
        for peer in peers {
            self = self.figure(peer.name, Some(peer.value), OTHERS);
        }
        self
    }
}

/// Draws all panels, as SVG.
pub fn draw(figures: &Figures) -> String {
    let panels = panels(figures);
    let lines: usize = panels.iter().map(|panel| panel.bars.len() + 2).sum();
    let height = MARGIN * 2.0 + LINE * (lines as f64 + 1.0);
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"#1c2430\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>"
    );
    let mut y = MARGIN + LINE / 2.0;
    legend(&mut svg, y);
    y += LINE;
    for panel in &panels {
        y += LINE / 2.0;
        text(&mut svg, MARGIN, y, &format!("{} ({})", panel.title, panel.unit), "bold", "start");
        y += LINE;
        let most = panel.bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
        for bar in &panel.bars {
            let length = if most > 0.0 { (LONGEST * bar.value / most).max(1.0) } else { 1.0 };
            text(&mut svg, BARS - 10.0, y, &bar.name, "normal", "end");
            rectangle(&mut svg, BARS, y, length, bar.colour);
            text(&mut svg, BARS + length + 8.0, y, &number(bar.value), "normal", "start");
            y += LINE;
        }
        y += LINE / 2.0;
    }
    svg.push_str("</svg>\n");
    svg
}

fn panels(figures: &Figures) -> Vec<Panel> {
    let of = |name: &str| figures.median(name);
    let millis = |name: &str| of(name).map(|micros| micros / 1000.0);
    vec![
        Panel::new("Durable cycles of suspend and resume", "per second, more is better")
            .ours("adjourn, 64 sessions", of("cycles_per_s_n64"))
            .ours("adjourn, one session", of("cycles_per_s_n1"))
            .peers(peers::CYCLES),
        Panel::new("One durable command, median", "microseconds, less is better")
            .ours("adjourn", of("op_n1_p50_us"))
            .raw("write and fdatasync", of("fsync_p50_us")),
        Panel::new("From event to turn, median", "milliseconds, less is better")
            .ours("adjourn, another process", millis("wake_latency_p50_us"))
            .peers(peers::WAKE_P50),
        Panel::new("From event to turn, one in a hundred", "milliseconds, less is better")
            .ours("adjourn, another process", millis("wake_latency_p99_us"))
            .peers(peers::WAKE_P99),
        Panel::new("Memory for each parked session", "bytes, less is better")
            .ours("adjourn, a million parked", of("rss_per_parked_bytes_1m"))
            .peers(peers::MEMORY),
        Panel::new("Back after a kill", "milliseconds, less is better")
            .ours("adjourn, a million parked", of("restart_1m_ms"))
            .ours("adjourn, ten thousand parked", of("restart_10k_ms"))
            .peers(peers::RESTART),
        Panel::new("Events over HTTP, 16 connections", "per second, more is better")
            .ours("adjourn, each one durable", of("events_per_s"))
            .raw("axum, nothing done", of("raw_axum_per_s")),
    ]
    .into_iter()
    .filter(|panel| panel.bars.iter().any(|bar| bar.colour == OURS))
    .collect()
}

fn legend(svg: &mut String, y: f64) {
    let entries = [
        (OURS, "adjourn, this run"),
        (RAW, "the machine without us, this run"),
        (OTHERS, "others, measured earlier: see docs/performance.md"),
    ];
    let mut x = MARGIN;
    for (colour, name) in entries {
        rectangle(svg, x, y, 14.0, colour);
        text(svg, x + 20.0, y, name, "normal", "start");
        x += 250.0;
    }
}

fn rectangle(svg: &mut String, x: f64, middle: f64, width: f64, colour: &str) {
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"14\" fill=\"{colour}\"/>",
        middle - 7.0
    );
}

fn text(svg: &mut String, x: f64, middle: f64, words: &str, weight: &str, anchor: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{:.1}\" font-weight=\"{weight}\" \
         text-anchor=\"{anchor}\">{words}</text>",
        middle + 5.0
    );
}

/// Writes a number with as many digits as it is good for.
fn number(value: f64) -> String {
    if value < 10.0 {
        return format!("{value:.2}");
    }
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
