//! Who may speak to a listener that only this machine can reach.
//!
//! A browser on this machine can reach it, too, and shows pages of strangers. A page that makes its
//! own name mean 127.0.0.1 is let through by the browser, but its requests still bear that name;
//! a page of another name bears it as its origin. Neither is this machine's.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::problem::Problem;

/// Lets requests through that are from this machine, and meant for it.
pub(crate) async fn only_local(request: Request, next: Next) -> Response {
    // A request line may name the host, too.
    let named = request.uri().authority().map(|authority| authority.as_str().to_owned());
    match check(named.as_deref(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn check(named: Option<&str>, headers: &HeaderMap) -> Result<(), Problem> {
    let headed: Vec<_> = headers.get_all(header::HOST).iter().collect();
    let headed_for_here = |host: &&HeaderValue| host.to_str().is_ok_and(is_this_machine);
    let is_named = named.is_some() || !headed.is_empty();
    // Two headers are one for each of two readers, and so are a header and a request line that
    // differ.
    let is_for_here = named.is_none_or(is_this_machine)
        && headed.len() <= 1
        && headed.iter().all(headed_for_here);
    if !is_named || !is_for_here {
        return Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "this listener is for this machine alone; call it localhost or 127.0.0.1",
        ));
    }
    for origin in headers.get_all(header::ORIGIN) {
        let page = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        if !page.is_some_and(|(_, host)| is_this_machine(host)) {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                "events are not taken from pages of other machines",
            ));
        }
    }
    Ok(())
}

/// Returns whether a host, perhaps with a port, is a name of this machine that cannot be given to
/// another.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((address, port)) if port.is_empty() || is_port(port) => {
            return address.parse().is_ok_and(|address: std::net::Ipv6Addr| address.is_loopback());
        }
        Some(_) => return false,
        None => match host.rfind(':').map(|colon| host.split_at(colon)) {
            Some((name, port)) if is_port(port) => name,
            Some(_) => return false,
            None => host,
        },
    };
    let literal = name.parse().is_ok_and(|address: std::net::Ipv4Addr| address.is_loopback());
    literal || name.trim_end_matches('.').eq_ignore_ascii_case("localhost")
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':').is_some_and(|port| port.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_line_and_one_header_both_name_this_machine() {
        const HERE: &str = "127.0.0.1:8787";
        for (named, headed, is_let_in) in [
            (None, &[HERE] as &[&'static str], true),
            // The absolute form, which has to bear the header as well.
            (Some(HERE), &[HERE], true),
            (Some(HERE), &[], true),
            (None, &[], false),
            (None, &[HERE, HERE], false),
            (Some(HERE), &[HERE, HERE], false),
            (Some(HERE), &["evil.example"], false),
            (Some("evil.example"), &[HERE], false),
            (None, &["\u{e9}"], false),
        ] {
            let mut headers = HeaderMap::new();
            for host in headed {
                headers.append(header::HOST, HeaderValue::from_bytes(host.as_bytes()).unwrap());
            }
            let checked = check(named, &headers);
            assert_eq!(checked.is_ok(), is_let_in, "{named:?} {headed:?}");
        }
    }

    #[test]
    fn only_names_that_cannot_be_given_away_are_this_machine() {
        for own in [
            "localhost",
            "LocalHost:8787",
            "localhost.:1",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.9.9.9",
            "[::1]",
            "[::1]:8787",
        ] {
            assert!(is_this_machine(own), "{own}");
        }
        for other in [
            "",
            "evil.example",
            "evil.example:8787",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "10.0.0.1",
            "[::2]",
            "[::1]x",
            "::1",
            "localhost:8787@evil.example",
            "0.0.0.0",
            "localhost:x",
            "2130706433",
            "[127.0.0.1]",
        ] {
            assert!(!is_this_machine(other), "{other}");
        }
    }
}
