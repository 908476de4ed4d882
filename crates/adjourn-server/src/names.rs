//! Under which names the server is called.
//!
//! A browser on this machine can reach a listener on loopback, too, and shows pages of strangers. A
//! page that makes its own name mean 127.0.0.1 is let through by the browser, but its requests still
//! bear that name; a page of another name bears it as its origin. Neither is a name of this server:
//! those are the names of loopback, the address that was called, and what others are told to call it.
//! A page that another server on this machine shows bears a name of loopback with another port.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use axum::http::uri::Authority;
use axum::http::{HeaderValue, Method, Request, StatusCode, header};

use crate::problem::Problem;

/// A name under which others call the server, with the scheme and the port that they use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicName {
    /// `http` or `https`; nothing if it was not said.
    scheme: Option<&'static str>,
    /// The name, perhaps with a port.
    authority: Arc<str>,
}

impl PublicName {
    /// Reads a name: `agents.example.org`, perhaps with a port, or `https://agents.example.org`
    /// where something in front of the server speaks TLS.
    ///
    /// # Errors
    /// What is expected instead.
    pub fn read(text: &str) -> Result<Self, String> {
        let (scheme, authority) = match text.trim().trim_end_matches('/').split_once("://") {
            Some(("http", authority)) => (Some("http"), authority),
            Some(("https", authority)) => (Some("https"), authority),
            Some(_) => return Err("expected http:// or https://".to_owned()),
            None => (None, text.trim()),
        };
        let is_plain = |name: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
            !name.is_empty() && name.bytes().all(is_plain)
        };
        match split(authority) {
            Some((name, _)) if is_plain(name) => Ok(Self { scheme, authority: authority.into() }),
            _ => Err("expected a host's name: agents.example.org".to_owned()),
        }
    }

    /// Returns whether a host, perhaps with a port, is called so.
    fn is(&self, host: &str) -> bool {
        let plain = |(name, _): (&'_ str, &str)| name.trim_end_matches('.').to_ascii_lowercase();
        let own = split(&self.authority).map(plain);
        own.is_some() && split(host).map(plain) == own
    }
}

impl std::fmt::Display for PublicName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { scheme, authority } = self;
        scheme.iter().try_for_each(|scheme| write!(f, "{scheme}://"))?;
        f.write_str(authority)
    }
}

/// The names of a server, besides those of loopback and the address that was called.
#[derive(Debug, Clone, Default)]
pub struct Names(Arc<[PublicName]>);

impl Names {
    /// Lets others call it so.
    pub fn of(names: impl IntoIterator<Item = PublicName>) -> Self {
        Self(names.into_iter().collect())
    }

    /// Returns how a caller reaches it that has called it so: the scheme, and the host as the caller
    /// wrote it, unless others are told another one.
    pub(crate) fn base(&self, host: &str) -> String {
        match self.0.iter().find(|name| name.is(host)) {
            Some(PublicName { scheme: Some(scheme), authority }) => {
                format!("{scheme}://{authority}")
            }
            _ => format!("http://{host}"),
        }
    }

    /// Refuses a request that is not meant for this server, or comes from a page of another one, on a
    /// connection that was made to an address.
    pub(crate) fn check<B>(&self, called: IpAddr, request: &Request<B>) -> Result<(), Problem> {
        let Some(host) = self.asked_host(called, request) else {
            let problem = match self.0.first() {
                None if called.is_loopback() => {
                    "this server is for this machine alone; call it localhost or 127.0.0.1"
                        .to_owned()
                }
                None => {
                    format!("this server is called {called}; --public-name gives it another name")
                }
                Some(name) => format!("this server is called {}", name.authority),
            };
            return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, problem));
        };
        let usual = match request.uri().scheme_str() {
            Some("https") => HTTPS,
            _ => HTTP,
        };
        let is_own = |origin: &HeaderValue| {
            let origin = origin.to_str().ok();
            origin.is_some_and(|origin| self.is_own_page(origin, (host, usual)))
        };
        let headers = request.headers();
        let mut origins = headers.get_all(header::ORIGIN).iter().peekable();
        let is_of_another_site = match origins.peek() {
            Some(_) => !origins.all(is_own),
            None => {
                // An image or a link of a page comes without its origin; browsers say that it is another
                // site's. On the same site there are the pages of other ports, too: they may follow a
                // link, and change nothing.
                let reads = matches!(*request.method(), Method::GET | Method::HEAD);
                let is_foreign =
                    |site: &HeaderValue| site == CROSS_SITE || (site == SAME_SITE && !reads);
                headers.get_all(FETCH_SITE).iter().any(is_foreign)
            }
        };
        if is_of_another_site {
            let problem = "pages of other sites cannot use this server";
            return Err(Problem::new(StatusCode::FORBIDDEN, problem));
        }
        Ok(())
    }

    /// Returns the host that a request is addressed to, perhaps with a port; nothing if that is not this
    /// server.
    fn asked_host<'a, B>(&self, called: IpAddr, request: &'a Request<B>) -> Option<&'a str> {
        // A request line may name the host, too.
        let named = request.uri().authority().map(Authority::as_str);
        let mut headed = request.headers().get_all(header::HOST).iter();
        let (first, second) = (headed.next(), headed.next());
        // A host that is no text is none of ours.
        let headed = first.map(|host| host.to_str().unwrap_or_default());
        // Two headers are one for each of two readers, and so are a header and a request line that
        // differ.
        let is_for_here = |host: Option<&str>| host.is_none_or(|host| self.have(host, called));
        let is_clear = second.is_none() && is_for_here(named) && is_for_here(headed);
        named.or(headed).filter(|_| is_clear)
    }

    /// Returns whether a page belongs to what is served where a request is addressed to, or under a
    /// public name: what is in front of the server may have rewritten its host. What else is served on the
    /// same machine is another's.
    fn is_own_page(&self, origin: &str, (asked, usual): (&str, u16)) -> bool {
        let (host, its_usual) = match origin.split_once("://") {
            Some(("http", host)) => (host, HTTP),
            Some(("https", host)) => (host, HTTPS),
            _ => return false,
        };
        if self.0.iter().any(|own| own.is(host)) {
            return true;
        }
        let (page, asked) = (with_port(host, its_usual), with_port(asked, usual));
        page.zip(asked).is_some_and(|((page, its_port), (asked, port))| {
            its_port == port && is_same_host(page, asked)
        })
    }

    fn have(&self, host: &str, called: IpAddr) -> bool {
        let Some((name, _)) = split(host) else { return false };
        let is_meant = match address(name) {
            // A socket for both families has IPv4 addresses in the form of IPv6.
            Some(address) => {
                address.is_loopback() || address.to_canonical() == called.to_canonical()
            }
            None => is_localhost(name),
        };
        is_meant || self.0.iter().any(|own| own.is(host))
    }
}

/// What browsers say of the page that a request comes from, and what it is if that is no page of ours, or
/// may be none.
const FETCH_SITE: &str = "sec-fetch-site";
const CROSS_SITE: &str = "cross-site";
const SAME_SITE: &str = "same-site";

/// The ports of URLs that name none.
const HTTP: u16 = 80;
const HTTPS: u16 = 443;

/// Returns the name of a host and its port, which is the usual one if there is none; nothing if it is
/// no host.
fn with_port(host: &str, usual: u16) -> Option<(&str, u16)> {
    let (name, port) = split(host)?;
    match port.trim_start_matches(':') {
        "" => Some((name, usual)),
        port => Some((name, port.parse().ok()?)),
    }
}

/// Returns whether two names are those of one host: `localhost` is any address of loopback.
fn is_same_host(one: &str, other: &str) -> bool {
    let plain = |name: &str| name.trim_end_matches('.').to_ascii_lowercase();
    let is_loopback = |name: &str| address(name).is_some_and(|address| address.is_loopback());
    match (address(one), address(other)) {
        (Some(one), Some(other)) => one.to_canonical() == other.to_canonical(),
        _ => {
            plain(one) == plain(other)
                || (is_localhost(one) && is_loopback(other))
                || (is_loopback(one) && is_localhost(other))
        }
    }
}

/// Returns the name or the address of a host, and its port behind a colon if it has one; nothing if it
/// is no host.
fn split(host: &str) -> Option<(&str, &str)> {
    if let Some(rest) = host.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        let is_address = address.parse::<Ipv6Addr>().is_ok() && (port.is_empty() || is_port(port));
        return is_address.then(|| (host.strip_suffix(port).unwrap_or(host), port));
    }
    match host.rfind(':').map(|colon| host.split_at(colon)) {
        Some((name, port)) if is_port(port) && !name.contains(':') => Some((name, port)),
        Some(_) => None,
        None => Some((host, "")),
    }
}

/// Returns the address that is written as one; no other spelling than the usual is one.
fn address(name: &str) -> Option<IpAddr> {
    match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(address) => address.parse().ok().map(IpAddr::V6),
        None => name.parse().ok().map(IpAddr::V4),
    }
}

/// Returns whether it is the name of loopback, which cannot be given to another machine.
fn is_localhost(name: &str) -> bool {
    name.trim_end_matches('.').eq_ignore_ascii_case("localhost")
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':').is_some_and(|port| port.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn a_request_line_and_one_header_both_name_this_server() {
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
            let line = named.map_or_else(|| "/".to_owned(), |host| format!("http://{host}/"));
            let mut request = Request::builder().uri(line);
            for host in headed {
                request = request.header(header::HOST, host.as_bytes());
            }
            let checked = Names::default().check(LOOPBACK, &request.body(()).unwrap());
            assert_eq!(checked.is_ok(), is_let_in, "{named:?} {headed:?}");
        }
    }

    #[test]
    fn only_names_that_cannot_be_given_away_are_those_of_loopback() {
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
            assert!(Names::default().have(own, LOOPBACK), "{own}");
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
            assert!(!Names::default().have(other, LOOPBACK), "{other}");
        }
    }

    #[test]
    fn an_address_is_a_public_name_as_any_other_and_ipv4_is_the_same_in_both_families() {
        let names = Names::of([PublicName::read("192.0.2.5").unwrap()]);
        let mapped = "::ffff:10.1.2.3".parse().unwrap();
        for own in ["192.0.2.5", "192.0.2.5:7070", "10.1.2.3", "10.1.2.3:7070", "127.0.0.1"] {
            assert!(names.have(own, mapped), "{own}");
        }
        for other in ["192.0.2.6", "10.1.2.4", "[::2]"] {
            assert!(!names.have(other, mapped), "{other}");
        }
    }

    /// Asks for something that is addressed to a host, as a browser does for a page.
    fn asked(
        names: &Names,
        (method, host): (Method, &str),
        origin: Option<&str>,
        site: Option<&str>,
    ) -> bool {
        let mut request = Request::builder().method(method).header(header::HOST, host);
        for (name, value) in [(header::ORIGIN.as_str(), origin), (FETCH_SITE, site)] {
            request = value.into_iter().fold(request, |request, value| request.header(name, value));
        }
        names.check(LOOPBACK, &request.body(()).unwrap()).is_ok()
    }

    #[test]
    fn what_a_page_of_another_site_asks_for_is_refused_also_without_an_origin() {
        for (origin, site, reads, changes) in [
            (None, None, true, true),
            (None, Some("none"), true, true),
            (None, Some("same-origin"), true, true),
            (None, Some("same-site"), true, false),
            (None, Some("cross-site"), false, false),
            (Some("https://evil.example"), None, false, false),
            (Some("null"), Some("same-origin"), false, false),
            (Some("http://localhost:3000"), Some("same-site"), false, false),
            (Some("http://127.0.0.1:8787"), Some("cross-site"), true, true),
        ] {
            for (method, is_let_in) in [
                (Method::GET, reads),
                (Method::HEAD, reads),
                (Method::POST, changes),
                (Method::DELETE, changes),
            ] {
                let what = format!("{method} {origin:?} {site:?}");
                let here = (method, "localhost:8787");
                assert_eq!(asked(&Names::default(), here, origin, site), is_let_in, "{what}");
            }
        }
    }

    #[test]
    fn a_page_is_own_at_the_host_and_the_port_that_are_asked() {
        for (host, origin, is_own) in [
            ("localhost:8787", "http://localhost:8787", true),
            ("LocalHost.:8787", "http://localhost:8787", true),
            ("127.0.0.1:8787", "http://localhost:8787", true),
            ("localhost:8787", "http://[::1]:8787", true),
            ("127.0.0.1:8787", "https://127.0.0.1:8787", true),
            ("localhost", "http://localhost", true),
            ("localhost:80", "http://localhost", true),
            ("localhost", "http://localhost:80", true),
            ("localhost:443", "https://localhost", true),
            // What else is served on this machine.
            ("localhost:8787", "http://localhost:3000", false),
            ("localhost:8787", "http://127.0.0.1:3000", false),
            ("localhost:8787", "http://localhost", false),
            ("localhost", "http://localhost:3000", false),
            ("localhost", "https://localhost", false),
            ("127.0.0.1:8787", "http://127.0.0.2:8787", false),
            ("127.0.0.1:8787", "http://[::1]:8787", false),
            ("127.0.0.1:8787", "http://10.0.0.1:8787", false),
            ("localhost:8787", "http://evil.example:8787", false),
            ("localhost:8787", "http://localhost:8787@evil.example", false),
            ("localhost:8787", "http://localhost:8787/", false),
            ("localhost:8787", "http://localhost:74323", false),
            ("localhost:8787", "extension://localhost:8787", false),
            ("localhost:8787", "localhost:8787", false),
            ("localhost:8787", "", false),
        ] {
            let asks = |names| asked(names, (Method::POST, host), Some(origin), None);
            assert_eq!(asks(&Names::default()), is_own, "{origin} at {host}");
        }
        // What is in front of it may have rewritten its host, and has a port of its own.
        let names = Names::of([PublicName::read("https://agents.example.org").unwrap()]);
        for (origin, is_own) in [
            ("https://agents.example.org", true),
            ("https://agents.example.org:8443", true),
            ("https://example.org", false),
            ("http://localhost:3000", false),
        ] {
            for host in ["127.0.0.1:8787", "agents.example.org"] {
                let is_let_in = asked(&names, (Method::POST, host), Some(origin), None);
                assert_eq!(is_let_in, is_own, "{origin} at {host}");
            }
        }
        // A request line comes before the header, and says which port is the usual one.
        let request =
            Request::builder().uri("https://localhost/").header(header::HOST, "localhost");
        let request = request.header(header::ORIGIN, "https://localhost").body(()).unwrap();
        assert!(Names::default().check(LOOPBACK, &request).is_ok());
    }

    #[test]
    fn others_call_it_by_its_public_name_or_by_the_address_that_they_reach() {
        let name = |text| PublicName::read(text).unwrap();
        let names = Names::of([name("https://agents.example.org"), name("agents.test:8080")]);
        let called = "10.1.2.3".parse().unwrap();
        for own in ["Agents.Example.Org", "agents.example.org:443", "agents.test", "10.1.2.3:7070"]
        {
            assert!(names.have(own, called), "{own}");
        }
        for other in ["example.org", "x.agents.example.org", "10.1.2.4", "agents.test.evil.example"]
        {
            assert!(!names.have(other, called), "{other}");
        }
        assert_eq!(names.base("AGENTS.example.org"), "https://agents.example.org");
        assert_eq!(names.base("agents.test:8080"), "http://agents.test:8080");
        assert_eq!(names.base("localhost:7070"), "http://localhost:7070");
        for wrong in ["", " ", "ftp://x", "a b", "a/b", "a:b", "https://", "user@x"] {
            assert!(PublicName::read(wrong).is_err(), "{wrong:?}");
        }
    }
}
