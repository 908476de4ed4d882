//! The plot: one panel of bars for each question, ours first, then the raw figure and the peers.

mod machine;

use std::fmt::Write as _;

use super::figures::Figures;
use super::peers::{self, Peer};
pub use machine::Run;

const WIDTH: f64 = 900.0;
const MARGIN: f64 = 28.0;
/// Where the bars begin; names stand before it.
const BARS: f64 = 270.0;
/// The longest bar; the rest of the line is for its value.
const LONGEST: f64 = 510.0;
const LINE: f64 = 24.0;
const BAR: f64 = 14.0;
/// Between two panels.
const GAP: f64 = 22.0;

const OURS: &str = "#2563a8";
const RAW: &str = "#8a8f98";
const OTHERS: &str = "#d08a3c";
const INK: &str = "#1c2430";
const FAINT: &str = "#667080";
const RULE: &str = "#e3e6ea";

/// The width of a letter, as a part of its height: that of a wide font, to be on the safe side.
const LETTER: f64 = 0.52;

/// One question, and the answers to it.
struct Panel {
    title: &'static str,
    unit: &'static str,
    /// What one has to know to compare them.
    notes: &'static [&'static str],
    bars: Vec<Bar>,
}

struct Bar {
    name: String,
    value: f64,
    colour: &'static str,
}

impl Panel {
    fn new(title: &'static str, unit: &'static str) -> Self {
        Self { title, unit, notes: &[], bars: Vec::new() }
    }

    fn notes(mut self, notes: &'static [&'static str]) -> Self {
        self.notes = notes;
        self
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

fn panels(figures: &Figures) -> Vec<Panel> {
    let of = |name: &str| figures.median(name);
    let millis = |name: &str| of(name).map(|micros| micros / 1000.0);
    vec![
        Panel::new("Whole runs, 64 in flight", "per second, more is better")
            .ours("adjourn, within a program", of("run_cycles_per_s_n64"))
            .ours("adjourn, over ACP", of("acp_run_cycles_per_s_n64"))
            .peers(peers::RUNS)
            .notes(&[
                "A prompt starts it, it parks, a resume wakes it, and it ends; each step is \
                      durable. Restate has a server of its own.",
            ]),
        Panel::new("Durable cycles of suspend and resume", "per second, more is better")
            .ours("adjourn, 64 sessions", of("cycles_per_s_n64"))
            .ours("adjourn, one session", of("cycles_per_s_n1"))
            .peers(peers::CYCLES)
            .notes(&[
                "The cycles are not alike. Ours: two commands to a session that has no run. \
                      LangGraph: a node of a graph runs.",
            ]),
        Panel::new("One durable command, median", "microseconds, less is better")
            .ours("adjourn", of("op_n1_p50_us"))
            .raw("write and fdatasync", of("fsync_p50_us")),
        Panel::new("From an event to the session at work, median", "milliseconds, less is better")
            .ours("adjourn, until it is claimed", millis("wake_latency_p50_us"))
            .peers(peers::WAKE_P50),
        Panel::new("The same, for the slowest in a hundred", "milliseconds, less is better")
            .ours("adjourn, until it is claimed", millis("wake_latency_p99_us"))
            .peers(peers::WAKE_P99)
            .notes(&["Ours ends when a host in another process has claimed the session; the \
                      model is called one commit later. Theirs end behind the wait."]),
        Panel::new("Memory for each parked session", "bytes, less is better")
            .ours("adjourn, a million parked", of("rss_per_parked_bytes_1m"))
            .peers(peers::MEMORY)
            .notes(&["Ours: a host beside a million, less one beside ten thousand, after equal \
                      work; about zero may be a little below it."]),
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

/// Draws all panels, as SVG.
pub fn draw(figures: &Figures, run: &Run) -> String {
    let mut page = Page { body: String::new(), y: MARGIN };
    page.head(run);
    for panel in panels(figures) {
        page.panel(&panel);
    }
    let (height, body) = (page.y + MARGIN, page.body);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"Helvetica, Arial, sans-serif\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    )
}

/// Letters of one kind.
#[derive(Clone, Copy)]
struct Type {
    size: f64,
    weight: &'static str,
    colour: &'static str,
}

const HEADING: Type = Type { size: 20.0, weight: "bold", colour: INK };
const TITLE: Type = Type { size: 14.0, weight: "bold", colour: INK };
const UNIT: Type = Type { size: 12.0, weight: "normal", colour: FAINT };
const NAME: Type = Type { size: 13.0, weight: "normal", colour: INK };
const OWN: Type = Type { size: 13.0, weight: "bold", colour: OURS };
const NOTE: Type = Type { size: 11.0, weight: "normal", colour: FAINT };

impl Type {
    /// Returns how wide a text is at most.
    fn width(self, words: &str) -> f64 {
        let bold = if self.weight == "bold" { 1.08 } else { 1.0 };
        words.chars().count() as f64 * self.size * LETTER * bold
    }
}

/// A page that is written from top to bottom.
struct Page {
    body: String,
    /// The middle of the next line.
    y: f64,
}

impl Page {
    fn head(&mut self, run: &Run) {
        self.y += 4.0;
        self.text(MARGIN, "adjourn, beside the machine and others", HEADING, "start");
        self.y += LINE;
        self.text(MARGIN, &run.to_string(), UNIT, "start");
        self.y += LINE + 2.0;
        self.legend();
        self.y += 18.0;
    }

    /// Says what the colours mean, as many entries to a line as there is room for.
    fn legend(&mut self) {
        let entries = [
            (OURS, "adjourn, this run"),
            (RAW, "the machine without us, this run"),
            (OTHERS, "others, measured earlier: docs/performance.md says how"),
        ];
        let mut x = MARGIN;
        for (colour, name) in entries {
            let width = 20.0 + UNIT.width(name);
            if x > MARGIN && x + width > WIDTH - MARGIN {
                (x, self.y) = (MARGIN, self.y + LINE);
            }
            self.bar(x, BAR, colour);
            self.text(x + 20.0, name, UNIT, "start");
            x += width + 14.0;
        }
    }

    fn panel(&mut self, panel: &Panel) {
        let (left, right) = (MARGIN, WIDTH - MARGIN);
        let _ = writeln!(
            self.body,
            "<line x1=\"{left}\" x2=\"{right}\" y1=\"{0:.1}\" y2=\"{0:.1}\" stroke=\"{RULE}\"/>",
            self.y
        );
        self.y += GAP;
        self.text(MARGIN, panel.title, TITLE, "start");
        self.text(right, panel.unit, UNIT, "end");
        self.y += LINE + 3.0;
        let most = panel.bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
        for bar in &panel.bars {
            // What is nothing, or less, still has a place.
            let length = if most > 0.0 { (LONGEST * bar.value / most).max(2.0) } else { 2.0 };
            let kind = if bar.colour == OURS { OWN } else { NAME };
            self.text(BARS - 12.0, &bar.name, NAME, "end");
            self.bar(BARS, length, bar.colour);
            self.text(BARS + length + 8.0, &number(bar.value), kind, "start");
            self.y += LINE;
        }
        for note in panel.notes {
            self.text(MARGIN, note, NOTE, "start");
            self.y += 15.0;
        }
        self.y += if panel.notes.is_empty() { 0.0 } else { 6.0 };
    }

    fn bar(&mut self, x: f64, width: f64, colour: &str) {
        let top = self.y - BAR / 2.0;
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"2\" \
             fill=\"{colour}\"/>"
        );
    }

    fn text(&mut self, x: f64, words: &str, kind: Type, anchor: &str) {
        let Type { size, weight, colour } = kind;
        let base = self.y + size * 0.36;
        let words = words.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{base:.1}\" font-size=\"{size}\" font-weight=\"{weight}\" \
             fill=\"{colour}\" text-anchor=\"{anchor}\">{words}</text>"
        );
    }
}

/// Writes a number with as many digits as it is good for.
fn number(value: f64) -> String {
    // Not minus nothing.
    let value = if value.abs() < 0.005 { 0.0 } else { value };
    if value.abs() < 0.995 {
        return format!("{value:.2}");
    }
    if value.abs() < 99.95 {
        return format!("{value:.1}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut grouped = String::from(if value < 0.0 { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests;
