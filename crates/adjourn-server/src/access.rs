//! Who may do what, for all that is served but the card and how the process is: bearer tokens with
//! scopes and a tenant.

use std::sync::Arc;

use adjourn::core::transcript::Digest;
use adjourn_a2a::{Caller, Scope, Scopes};
use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::connections::ConnectionSlot;
use crate::problem::Problem;

/// The name of those who show the one token for events.
const EVENTS: &str = "events";
/// The name of those who show no token where none is needed.
const ANYONE: &str = "anyone";

/// A token that callers show. The token itself is not kept, but its SHA-256 digest.
#[derive(Debug, Clone)]
pub struct Token {
    digest: Digest,
    caller: Caller,
}

impl Token {
    /// Makes a token from the digest of what callers show.
    pub const fn new(digest: Digest, caller: Caller) -> Self {
        Self { digest, caller }
    }

    /// Makes the token of those who tell of events, and do nothing else.
    pub fn for_events(shown: &str, tenant: &str) -> Self {
        let scopes = [Scope::Event].into_iter().collect();
        let caller = Caller { name: EVENTS.into(), tenant: tenant.into(), scopes };
        Self::new(Digest::of(shown.as_bytes()), caller)
    }

    /// Returns whether its bearer may do something.
    pub const fn allows(&self, scope: Scope) -> bool {
        self.caller.may(scope)
    }

    /// Reads a token from a line of a file: its name, the SHA-256 digest of what callers show, its
    /// scopes with commas between, and its tenant, which may be absent.
    ///
    /// # Errors
    /// What is wrong with the line.
    pub fn read(line: &str, tenant: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let mut word = |what: &str| words.next().ok_or_else(|| format!("expected {what}"));
        let (name, digest) = (word("a name")?, word("the SHA-256 digest of the token")?);
        let scopes = word("scopes, as read,send,pause,resume")?;
        let tenant = words.next().unwrap_or(tenant);
        if let Some(more) = words.next() {
            return Err(format!("expected nothing behind the tenant, found {more:?}"));
        }
        let digest = digest
            .to_ascii_lowercase()
            .parse()
            .map_err(|_| "expected a SHA-256 digest: 64 hex digits".to_owned())?;
        if digest == Digest::of(b"") {
            // As of a variable that was not set.
            let problem =
                "this is the digest of an empty text: there was no token when it was made";
            return Err(problem.to_owned());
        }
        let scope = |word: &str| {
            let known = Scope::ALL.map(Scope::as_str).join(", ");
            let scope = Scope::named(word);
            scope.ok_or_else(|| format!("there is no scope {word:?}; there are {known}"))
        };
        let scopes = scopes.split(',').map(scope).collect::<Result<Scopes, _>>()?;
        Ok(Self::new(digest, Caller { name: name.into(), tenant: tenant.into(), scopes }))
    }
}

/// Who may do what.
#[derive(Debug, Clone, Default)]
pub struct Access {
    tokens: Arc<[Token]>,
    /// Who a caller is that shows no token; nobody if there has to be one.
    open: Option<Caller>,
}

impl Access {
    /// Lets those in who show one of these tokens.
    pub fn with(tokens: impl IntoIterator<Item = Token>) -> Self {
        Self { tokens: tokens.into_iter().collect(), open: None }
    }

    /// Lets everybody in who shows no token, too, and do everything.
    #[must_use]
    pub fn open_to_all(mut self, tenant: &str) -> Self {
        let scopes = [Scope::Admin].into_iter().collect();
        self.open = Some(Caller { name: ANYONE.into(), tenant: tenant.into(), scopes });
        self
    }

    /// Returns whether a token has to be shown.
    pub const fn is_secured(&self) -> bool {
        self.open.is_none()
    }

    /// Finds out who calls.
    fn caller(&self, headers: &HeaderMap) -> Result<Caller, Problem> {
        let Some(shown) = bearer(headers) else {
            return self.open.clone().ok_or_else(unauthorised);
        };
        if shown.is_empty() {
            return Err(unauthorised());
        }
        let shown = Digest::of(shown.as_bytes());
        // All of them are compared, so that the time it takes tells nothing.
        let found = self.tokens.iter().fold(None, |found, token| {
            match same(shown.as_bytes(), token.digest.as_bytes()) {
                true => Some(&token.caller),
                false => found,
            }
        });
        found.cloned().ok_or_else(unauthorised)
    }
}

/// Lets requests through whose caller is known, and tells what is asked who that is. Nothing is read
/// for strangers.
pub(crate) async fn only_known(
    State(access): State<Access>,
    Extension(slot): Extension<Arc<ConnectionSlot>>,
    mut request: Request,
    next: Next,
) -> Response {
    match access.caller(request.headers()) {
        Ok(caller) => {
            let Some(_under_way) = slot.work() else { return no_room().into_response() };
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// Refuses a caller that may not do something.
pub(crate) fn allowed(caller: &Caller, scope: Scope) -> Result<(), Problem> {
    match caller.may(scope) {
        true => Ok(()),
        false => {
            let problem = format!("the token does not have the scope {:?}", scope.as_str());
            Err(Problem::new(StatusCode::FORBIDDEN, problem))
        }
    }
}

/// Returns the bearer token that a caller shows.
///
/// One that shows something else, or a text that cannot be read, has shown an empty one, which is no
/// token of any caller.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let shown = headers.get(header::AUTHORIZATION)?.to_str().ok();
    let (scheme, token) = shown.and_then(|value| value.split_once(' ')).unwrap_or_default();
    Some(if scheme.eq_ignore_ascii_case("bearer") { token.trim_start() } else { "" })
}

fn unauthorised() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "the bearer token is missing or wrong")
}

/// Says that there is no place for one more caller who is known.
fn no_room() -> Problem {
    let problem = "too many connections are at work; try again";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, problem)
}

/// Compares without telling by its duration how much was right.
fn same(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    /// The digest of `secret`.
    const DIGEST: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

    #[test]
    fn a_line_of_a_file_is_a_token_and_what_is_wrong_in_it_is_said() {
        let token = Token::read(&format!("ci {DIGEST} read,pause team"), "local").unwrap();
        assert_eq!((&*token.caller.name, &*token.caller.tenant), ("ci", "team"));
        assert!(token.caller.may(Scope::Pause) && !token.caller.may(Scope::Resume));
        let token = Token::read(&format!("ci {DIGEST} read"), "local").unwrap();
        assert_eq!(&*token.caller.tenant, "local");
        for (line, problem) in [
            ("", "expected a name"),
            ("ci", "expected the SHA-256 digest of the token"),
            ("ci secret read", "expected a SHA-256 digest: 64 hex digits"),
        ] {
            assert_eq!(Token::read(line, "local").unwrap_err(), problem);
        }
        let unknown = Token::read(&format!("ci {DIGEST} write"), "local").unwrap_err();
        assert!(unknown.starts_with("there is no scope \"write\"; there are read, "), "{unknown}");
        assert!(Token::read(&format!("ci {DIGEST} read team x"), "local").is_err());
        // As of a variable that is not set.
        let empty = Token::read(&format!("ci {} read", Digest::of(b"")), "local").unwrap_err();
        assert_eq!(
            empty,
            "this is the digest of an empty text: there was no token when it was made"
        );
    }

    #[test]
    fn who_shows_a_token_is_known_by_it_and_a_wrong_one_is_none() {
        let shown = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            headers
        };
        let token = Token::read(&format!("ci {DIGEST} read"), "local").unwrap();
        let access = Access::with([token]);
        assert_eq!(&*access.caller(&shown("Bearer secret")).unwrap().name, "ci");
        assert_eq!(&*access.caller(&shown("bearer  secret")).unwrap().name, "ci");
        let open = access.clone().open_to_all("local");
        for wrong in ["Bearer secre", "Bearer secrets", "Basic secret", "Bearer"] {
            assert!(access.caller(&shown(wrong)).is_err(), "{wrong}");
        }
        for wrong in ["Bearer wrong", "Basic x", "secret"] {
            assert!(open.caller(&shown(wrong)).is_err(), "{wrong}: a wrong token is no token");
        }
        let caller = open.caller(&HeaderMap::new()).unwrap();
        let empty = Access::with([Token::new(Digest::of(b""), caller)]);
        for nothing in ["Basic x", "Bearer ", "Bearer", "\u{e9}"] {
            assert!(empty.caller(&shown(nothing)).is_err(), "{nothing}: an empty token is none");
        }
        let events = Token::for_events("ring", "local");
        assert!(events.allows(Scope::Event) && !events.allows(Scope::Read));
        let access = Access::with([events]);
        assert_eq!(&*access.caller(&shown("Bearer ring")).unwrap().name, "events");
        assert!(access.caller(&HeaderMap::new()).is_err());
        assert!(open.caller(&HeaderMap::new()).unwrap().may(Scope::Agent));
    }
}
