use super::*;

fn drawn() -> String {
    let mut figures = Figures::default();
    figures.add("run_cycles_per_s_n64", 3_612.0);
    figures.add("acp_run_cycles_per_s_n64", 2_304.0);
    for name in ["cycles_per_s_n64", "op_n1_p50_us", "wake_latency_p50_us", "wake_latency_p99_us"] {
        figures.add(name, 16_780.4);
    }
    figures.add("rss_per_parked_bytes_1m", -0.3);
    figures.add("events_per_s", 16_508.0);
    let processor = Some("Some <CPU> & more".to_owned());
    draw(&figures, &Run { date: "2026-01-02".to_owned(), cores: 2, processor })
}

#[test]
fn numbers_have_as_many_digits_as_they_are_good_for() {
    let values = [0.866, 2.4, 9.999, 14.2, 26.5, 280.0, 1456.0, 16_780.4, -0.3, -0.001];
    let written = values.map(number);
    let expected =
        ["0.87", "2.4", "10.0", "14.2", "26.5", "280", "1,456", "16,780", "-0.30", "0.00"];
    assert_eq!(written, expected);
}

/// Returns an attribute of an element, as a number.
fn attribute(line: &str, name: &str) -> f64 {
    let (_, rest) = line.split_once(&format!(" {name}=\"")).unwrap();
    rest.split('"').next().unwrap().parse().unwrap()
}

#[test]
fn nothing_runs_into_a_margin_or_into_the_next() {
    let svg = drawn();
    let mut ends: Vec<(f64, f64, f64)> = Vec::new();
    for line in svg.lines().filter(|line| line.starts_with("<text")) {
        let words = line.split(['<', '>']).nth(2).unwrap();
        let (x, y, size) =
            (attribute(line, "x"), attribute(line, "y"), attribute(line, "font-size"));
        let weight = if line.contains("\"bold\"") { "bold" } else { "normal" };
        let width = Type { size, weight, colour: INK }.width(words);
        let (from, to) = if line.contains("\"end\"") { (x - width, x) } else { (x, x + width) };
        assert!(from >= MARGIN - 0.1 && to <= WIDTH - MARGIN + 0.1, "{from} to {to}: {words}");
        for (other_y, other_from, other_to) in &ends {
            let apart = (y - other_y).abs() > 8.0 || from >= *other_to || to <= *other_from;
            assert!(apart, "over another: {words}");
        }
        ends.push((y, from, to));
    }
    assert!(ends.len() > 20, "{svg}");
}

#[test]
fn it_says_when_on_what_and_what_cannot_be_compared() {
    let svg = drawn();
    assert!(svg.contains("2026-01-02, 2 cores, Some &lt;CPU> &amp; more"));
    assert!(svg.contains("The cycles are not alike") && svg.contains("Ours ends when"));
    // Whole runs come first, and only what runs alike stands beside them.
    let (runs, cycles) = svg.split_once("Durable cycles").unwrap();
    let restate = |part: &str| part.matches("Restate 1.7<").count();
    assert!(runs.contains("Whole runs") && runs.contains("2,107") && !cycles.contains("2,107"));
    assert_eq!(restate(cycles.split("One durable command").next().unwrap()), 0);
    // What was not measured has no panel.
    assert!(!svg.contains("Back after a kill"));
}
