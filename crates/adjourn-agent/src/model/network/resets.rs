//! When a provider that has had enough wants to be asked again: what the headers of its answer say.

use std::time::Duration;

use adjourn_core::time::Timestamp;
use reqwest::header::HeaderMap;

/// A moment that a provider names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// From now on.
    In(Duration),
    /// By the calendar.
    At(Timestamp),
}

/// Numbers above this one are seconds since 1970, not seconds to wait.
const EPOCH_SECONDS: f64 = 1e9;
/// Numbers above this one are milliseconds since 1970.
const EPOCH_MILLISECONDS: f64 = 1e12;
/// Numbers above this one name no moment: in milliseconds since 1970, this is the year 2286.
const NO_MOMENT: f64 = 1e13;
/// No provider means a wait that is longer than ten years.
const LONGEST_WAIT: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);

/// Returns when the provider wants to be asked again: what `retry-after` says, or else when the
/// limits that are used up refill.
pub(super) fn moment(headers: &HeaderMap) -> Option<Moment> {
    retry_after(headers).or_else(|| refilled(headers))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// Reads `retry-after`: seconds or a date, and milliseconds where a provider gives them, too.
fn retry_after(headers: &HeaderMap) -> Option<Moment> {
    let milliseconds = text(headers, "retry-after-ms").and_then(|text| text.parse::<f64>().ok());
    if let Some(wait) = milliseconds.and_then(|ms| wait(ms / 1e3)) {
        return Some(Moment::In(wait));
    }
    let text = text(headers, "retry-after")?;
    let seconds = text.parse::<f64>().ok().and_then(wait);
    seconds.map(Moment::In).or_else(|| Timestamp::parse_http_date(text).map(Moment::At))
}

/// Reads when limits refill: `x-ratelimit-reset-*` of `OpenAI` and those like it,
/// `anthropic-ratelimit-*-reset` of Anthropic. A limit that has something left is not why the
/// provider refused, unless all of them have.
fn refilled(headers: &HeaderMap) -> Option<Moment> {
    let mut limits = Vec::new();
    for name in headers.keys().map(reqwest::header::HeaderName::as_str) {
        let remaining = if name.starts_with("x-ratelimit-reset") {
            name.replacen("reset", "remaining", 1)
        } else if let Some(limit) = name.strip_suffix("-reset")
            && name.starts_with("anthropic-ratelimit-")
        {
            format!("{limit}-remaining")
        } else {
            continue;
        };
        if let Some(moment) = text(headers, name).and_then(read) {
            limits.push((moment, text(headers, &remaining) == Some("0")));
        }
    }
    let used_up = limits.iter().any(|(_, used_up)| *used_up);
    let counted = limits.iter().filter(|(_, limit)| *limit || !used_up);
    // A provider gives all of them in one form.
    counted.map(|(moment, _)| *moment).max_by_key(|moment| match moment {
        Moment::In(wait) => i64::try_from(wait.as_millis()).unwrap_or(i64::MAX),
        Moment::At(time) => time.as_millis(),
    })
}

/// Reads a moment: RFC 3339, seconds or milliseconds since 1970, seconds to wait, or a length of
/// time such as `6m0s`.
fn read(text: &str) -> Option<Moment> {
    if let Ok(time) = Timestamp::parse(text) {
        return Some(Moment::At(time));
    }
    let Ok(number) = text.parse::<f64>() else { return length(text).map(Moment::In) };
    let seconds = match number {
        since if since >= NO_MOMENT => return None,
        since if since >= EPOCH_MILLISECONDS => since / 1e3,
        since if since >= EPOCH_SECONDS => since,
        seconds => return wait(seconds).map(Moment::In),
    };
    let since = duration(seconds)?;
    Some(Moment::At(Timestamp::from_millis(0).after(since)))
}

/// Reads a length of time as Go writes it: `1h2m3.5s`, `20ms`.
fn length(mut text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    while !text.is_empty() {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, rest) = text.split_at(digits);
        let unit = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(unit);
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        total = total.checked_add(duration(number.parse::<f64>().ok()? * seconds)?)?;
        text = rest;
    }
    Some(total).filter(|total| *total <= LONGEST_WAIT)
}

fn duration(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// Returns a length of time to wait, if it can be meant.
fn wait(seconds: f64) -> Option<Duration> {
    duration(seconds).filter(|wait| *wait <= LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn said(headers: &[(&'static str, &'static str)]) -> Option<Moment> {
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        moment(&headers.iter().map(header).collect())
    }

    fn at(text: &str) -> Option<Moment> {
        Some(Moment::At(Timestamp::parse(text).unwrap()))
    }

    const fn after(millis: u64) -> Option<Moment> {
        Some(Moment::In(Duration::from_millis(millis)))
    }

    #[test]
    fn retry_after_is_read_in_each_of_its_forms() {
        assert_eq!(said(&[("retry-after", "7")]), after(7_000));
        assert_eq!(said(&[("retry-after", "0.5")]), after(500));
        assert_eq!(said(&[("retry-after-ms", "1500"), ("retry-after", "2")]), after(1_500));
        let date = "Mon, 16 Nov 2026 06:00:00 GMT";
        assert_eq!(said(&[("retry-after", date)]), at("2026-11-16T06:00:00Z"));
        for wrong in ["", "-1", "soon", "Mon, 16 Nov", "Mon, 99 Nov 2026 06:00:00 GMT"] {
            let value = HeaderValue::from_static(wrong);
            let headers = [(HeaderName::from_static("retry-after"), value)];
            assert_eq!(moment(&headers.into_iter().collect()), None, "{wrong:?}");
        }
    }

    #[test]
    fn the_limit_that_is_used_up_counts() {
        let openai = [
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "20ms"),
            ("x-ratelimit-remaining-tokens", "149"),
            ("x-ratelimit-reset-tokens", "6m0s"),
        ];
        assert_eq!(said(&openai), after(20));
        let anthropic = [
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "2026-11-16T09:00:00Z"),
            ("anthropic-ratelimit-input-tokens-remaining", "0"),
            ("anthropic-ratelimit-input-tokens-reset", "2026-11-16T06:00:00Z"),
        ];
        assert_eq!(said(&anthropic), at("2026-11-16T06:00:00Z"));
    }

    #[test]
    fn if_none_is_used_up_the_last_one_counts() {
        let headers =
            [("x-ratelimit-reset-requests", "1s"), ("x-ratelimit-reset-tokens", "1m0.5s")];
        assert_eq!(said(&headers), after(60_500));
        assert_eq!(said(&[("x-ratelimit-reset", "1794808800")]), at("2026-11-16T06:00:00Z"));
        assert_eq!(said(&[("x-ratelimit-reset", "1794808800000")]), at("2026-11-16T06:00:00Z"));
        assert_eq!(said(&[("x-ratelimit-reset-tokens", "6x")]), None);
        // Microseconds, and what else is no moment that anybody means.
        assert_eq!(said(&[("x-ratelimit-reset", "1794808800000000")]), None);
        assert_eq!(said(&[("x-ratelimit-reset", "99999999h")]), None);
        assert_eq!(said(&[("retry-after", "1e12")]), None);
        assert_eq!(said(&[("content-type", "text/plain")]), None);
    }
}
