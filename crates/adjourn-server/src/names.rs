//! Under which names the server is called.
//!
//! A browser on this machine can reach a listener on loopback, too, and shows pages of strangers. A
//! page that makes its own name mean 127.0.0.1 is let through by the browser, but its requests still
//! bear that name; a page of another name bears it as its origin. Neither is a name of this server:
//! those are the names of loopback, the address that was called, and what others are told to call it.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, header};

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
            Some(name) if is_plain(name) => Ok(Self { scheme, authority: authority.into() }),
            _ => Err("expected a host's name: agents.example.org".to_owned()),
        }
    }

    /// Returns whether a host, perhaps with a port, is called so.
    fn is(&self, host: &str) -> bool {
        let plain = |host| split(host).map(|name: &str| name.trim_end_matches('.'));
        let own = plain(&*self.authority);
        plain(host).zip(own).is_some_and(|(host, own)| host.eq_ignore_ascii_case(own))
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
        // A request line may name the host, too.
        let named = request.uri().authority().map(Authority::as_str);
        check(self, called, named, request.headers())
    }

    fn have(&self, host: &str, called: IpAddr) -> bool {
        let Some(name) = split(host) else { return false };
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

/// What browsers say of the page that a request comes from, and what it is if that is no page of ours.
const FETCH_SITE: &str = "sec-fetch-site";
const CROSS_SITE: &str = "cross-site";

fn check(
    names: &Names,
    called: IpAddr,
    named: Option<&str>,
    headers: &HeaderMap,
) -> Result<(), Problem> {
    let have = |host: &str| names.have(host, called);
    let mut headed = headers.get_all(header::HOST).iter();
    let (first, second) = (headed.next(), headed.next());
    let headed_for_here = |host: &HeaderValue| host.to_str().is_ok_and(have);
    let is_named = named.is_some() || first.is_some();
    // Two headers are one for each of two readers, and so are a header and a request line that
    // differ.
    let is_for_here =
        named.is_none_or(have) && second.is_none() && first.is_none_or(headed_for_here);
    if !is_named || !is_for_here {
        let problem = match names.0.first() {
            None if called.is_loopback() => {
                "this server is for this machine alone; call it localhost or 127.0.0.1".to_owned()
            }
            None => format!("this server is called {called}; --public-name gives it another name"),
            Some(name) => format!("this server is called {}", name.authority),
        };
        return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, problem));
    }
    let is_own = |origin: &HeaderValue| {
        let page = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        page.is_some_and(|(_, host)| have(host))
    };
    let mut origins = headers.get_all(header::ORIGIN).iter().peekable();
    // An image or a link of a page comes without its origin; browsers say that it is another site's.
    let is_of_another_site = match origins.peek() {
        Some(_) => !origins.all(is_own),
        None => headers.get_all(FETCH_SITE).iter().any(|site| site == CROSS_SITE),
    };
    if is_of_another_site {
        let problem = "pages of other sites cannot use this server";
        return Err(Problem::new(StatusCode::FORBIDDEN, problem));
    }
    Ok(())
}

/// Returns the name or the address of a host that perhaps has a port; nothing if it is none.
fn split(host: &str) -> Option<&str> {
    if let Some(rest) = host.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        let is_address = address.parse::<Ipv6Addr>().is_ok() && (port.is_empty() || is_port(port));
        return is_address.then(|| host.strip_suffix(port).unwrap_or(host));
    }
    match host.rfind(':').map(|colon| host.split_at(colon)) {
        Some((name, port)) if is_port(port) && !name.contains(':') => Some(name),
        Some(_) => None,
        None => Some(host),
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
            let mut headers = HeaderMap::new();
            for host in headed {
                headers.append(header::HOST, HeaderValue::from_bytes(host.as_bytes()).unwrap());
            }
            let checked = check(&Names::default(), LOOPBACK, named, &headers);
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

    #[test]
    fn what_a_page_of_another_site_asks_for_is_refused_also_without_an_origin() {
        for (origin, site, is_let_in) in [
            (None, None, true),
            (None, Some("none"), true),
            (None, Some("same-origin"), true),
            (None, Some("same-site"), true),
            (None, Some("cross-site"), false),
            (Some("https://evil.example"), None, false),
            (Some("null"), Some("same-origin"), false),
            // A page on loopback may use it, whatever name of loopback it has.
            (Some("http://127.0.0.1:3000"), Some("cross-site"), true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("localhost:8787"));
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            }
            if let Some(site) = site {
                headers.insert(FETCH_SITE, HeaderValue::from_static(site));
            }
            let checked = check(&Names::default(), LOOPBACK, None, &headers);
            assert_eq!(checked.is_ok(), is_let_in, "{origin:?} {site:?}");
        }
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
