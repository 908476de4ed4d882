//! Where push notifications may go: a peer names the URL, and must not reach through this server what
//! it cannot reach itself.
//!
//! A URL is checked when it is configured, and its host again at every connection: the addresses that
//! are connected to are those that were looked at here, so that a name that leads elsewhere a moment
//! later gains nothing.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// How long a name is looked up when it is configured.
const LOOKUP_TIME: Duration = Duration::from_secs(3);

/// Which receivers of push notifications are let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PushGuard {
    /// Whether those on loopback addresses are, which only tests and people on one machine need.
    pub(crate) loopback: bool,
}

impl PushGuard {
    /// Checks a URL by itself, without looking its name up.
    ///
    /// # Errors
    /// Why nothing is sent there.
    pub(crate) fn url(self, text: &str) -> Result<Url, String> {
        let url = Url::parse(text).map_err(|_| "expected a URL, as https://example.org/hook")?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("expected no name and password; authentication has its own fields".into());
        }
        // Whatever way a number is written, it is an address here.
        let (is_loopback, is_allowed) = match Host::of(&url) {
            Some(Host::Address(address)) => (is_loopback(address), self.allows(address)),
            Some(Host::Name(name)) => {
                let name = name.trim_end_matches('.').to_ascii_lowercase();
                let is_local = name == "localhost" || name.ends_with(".localhost");
                (is_local, !name.is_empty() && (!is_local || self.loopback))
            }
            None => (false, false),
        };
        if !is_allowed {
            return Err("expected a host on the public internet".to_owned());
        }
        match url.scheme() {
            "https" => Ok(url),
            // Nobody listens between.
            "http" if is_loopback => Ok(url),
            _ => Err("expected https".to_owned()),
        }
    }

    /// Checks a URL, and the addresses that its name leads to now. A name that cannot be looked up now
    /// may be there later.
    ///
    /// # Errors
    /// Why nothing is sent there.
    pub(crate) async fn url_now(self, text: &str) -> Result<(), String> {
        let url = self.url(text)?;
        let Some(Host::Name(name)) = Host::of(&url) else { return Ok(()) };
        let lookup = tokio::net::lookup_host((name, 0));
        let Ok(Ok(found)) = tokio::time::timeout(LOOKUP_TIME, lookup).await else { return Ok(()) };
        match self.filtered(found).is_empty() {
            true => Err("expected a host on the public internet".to_owned()),
            false => Ok(()),
        }
    }

    /// Returns whether an address may be connected to.
    pub(crate) fn allows(self, address: IpAddr) -> bool {
        is_public(address) || (self.loopback && is_loopback(address))
    }

    fn filtered(self, found: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
        found.filter(|address| self.allows(address.ip())).collect()
    }
}

/// The host of a URL.
enum Host<'a> {
    Address(IpAddr),
    Name(&'a str),
}

impl<'a> Host<'a> {
    fn of(url: &'a Url) -> Option<Self> {
        let host = url.host_str()?;
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        Some(match inner.unwrap_or(host).parse() {
            Ok(address) => Self::Address(address),
            Err(_) => Self::Name(host),
        })
    }
}

/// Looks names up for the HTTP client, which connects to nothing else.
impl Resolve for PushGuard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = *self;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed = guard.filtered(found);
            if allowed.is_empty() {
                let problem = "the name leads to no address on the public internet";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem).into());
            }
            let allowed: Addrs = Box::new(allowed.into_iter());
            Ok(allowed)
        })
    }
}

/// Returns whether an address is this machine's own.
fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => {
            address.is_loopback() || address.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback())
        }
    }
}

/// Returns whether an address is one that anyone on the internet can reach.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// The registry of special addresses (RFC 6890 and after): these are not public.
const fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !matches!(
        (a, b, c),
        (0 | 10 | 127 | 224..=255, ..)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (192, 168, _)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    )
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        // Other spellings of IPv4: mapped, translated (NAT64) and tunnelled (6to4).
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => v4(high, low),
        // Protocols and tunnels, and documentation.
        [0x2001, 0..=0x01ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0x0fff, ..] => false,
        // Nothing else was given out: loopback, local, private and multicast addresses lie outside.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: PushGuard = PushGuard { loopback: false };
    const LOCAL: PushGuard = PushGuard { loopback: true };

    #[test]
    fn addresses_that_are_not_public_are_refused_in_every_form() {
        for refused in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.7",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.0.1",
            "198.51.100.1",
            "203.0.113.9",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::2",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::10.0.0.1",
            "::8.8.8.8",
            "64:ff9b::10.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b:1::1",
            "2002:0a00:0001::1",
            "2002:7f00:0001::",
            "2001::1",
            "2001:0:1::",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "3fff::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
            "4000::1",
        ] {
            let address = refused.parse().unwrap();
            assert!(!PUBLIC.allows(address) && !LOCAL.allows(address), "{refused}");
        }
        for loopback in ["127.0.0.1", "127.255.0.1", "::1", "::ffff:127.0.0.1"] {
            let address = loopback.parse().unwrap();
            assert!(!PUBLIC.allows(address) && LOCAL.allows(address), "{loopback}");
        }
        for public in [
            "8.8.8.8",
            "1.1.1.1",
            "100.63.0.1",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2002:0808:0808::1",
            "2001:4860:4860::8888",
            "2001:200::1",
            "3ffe::1",
        ] {
            assert!(PUBLIC.allows(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn urls_that_lead_to_this_machine_or_its_neighbours_are_refused_however_they_are_spelled() {
        for refused in [
            "",
            "x",
            "/hook",
            "ftp://example.org",
            "file:///etc/passwd",
            "gopher://example.org",
            "javascript:alert(1)",
            "data:,x",
            "https://",
            "https://.",
            "http://example.org/",
            "https://user@example.org/",
            "https://user:pass@example.org/",
            "https://:pass@example.org",
            "https://10.0.0.1/",
            "https://169.254.169.254/latest/meta-data",
            "https://[fd00::1]/",
            "https://192.168.1.1./",
            "https://0/",
            "https://[::]/",
            "https://0.0.0.0:8080",
        ] {
            assert!(PUBLIC.url(refused).is_err() && LOCAL.url(refused).is_err(), "{refused}");
        }
        for loopback in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://127.0.0.1./",
            "http://[::1]:80/",
            "http://[::ffff:127.0.0.1]/",
            "http://localhost:7/",
            "http://LOCALHOST/",
            "http://localhost./",
            "http://a.localhost/",
            "https://localhost/",
            "http://１２７.0.0.1/",
            "http://127。0。0。1/",
        ] {
            assert!(PUBLIC.url(loopback).is_err(), "{loopback}");
            assert!(LOCAL.url(loopback).is_ok(), "{loopback}");
        }
        for public in
            ["https://example.org/hook?x=1", "https://example.org:8443", "https://8.8.8.8/"]
        {
            assert!(PUBLIC.url(public).is_ok(), "{public}");
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_to_loopback_is_refused_when_it_is_configured_and_when_it_is_connected()
     {
        let name = || "localhost".parse::<Name>().unwrap();
        let refused = PUBLIC.resolve(name()).await.err().expect("it is refused");
        assert!(refused.to_string().contains("no address on the public internet"), "{refused}");
        let mut found = LOCAL.resolve(name()).await.unwrap();
        assert!(found.all(|address| address.ip().is_loopback()));
        // Whatever it is called.
        let own =
            PUBLIC.filtered(["127.0.0.1:0", "8.8.8.8:0"].map(|a| a.parse().unwrap()).into_iter());
        assert_eq!(own, ["8.8.8.8:0".parse().unwrap()]);
        assert!(LOCAL.url_now("https://localhost/").await.is_ok());
        assert!(
            PUBLIC.url_now("https://a-name.invalid/hook").await.is_ok(),
            "it may be there later"
        );
    }
}
