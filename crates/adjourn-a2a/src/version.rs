//! Which version of A2A a request speaks, and which extensions it activates.

use serde_json::{Value, json};

use crate::error::Error;

/// Pauses as metadata of working tasks, and the wake on the event that reports it.
pub const PAUSE: &str = "urn:adjourn:a2a:pause:v1";
/// Paused states as states of their own, and `tasks/statusUpdate` frames.
pub const PAUSED_STATES: &str = "urn:adjourn:a2a:paused-states:v1";

/// The version whose words an answer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// 0.3: `kind` says what an object is, states are in lower case.
    V03,
    /// 0.3 over HTTP+JSON, in the words of its proto file: an object is named by its member, as in
    /// 1.0, and some members have other names. Its clients refuse members that they do not know.
    V03Proto,
    /// 1.0: an object is named by its member, states are in upper case.
    V10,
}

impl Version {
    /// Checks what the header `A2A-Version` asks for; an empty one means 0.3.
    ///
    /// # Errors
    /// There is no such version here.
    pub fn check(asked: Option<&str>) -> Result<Self, Error> {
        match asked.map_or("", str::trim) {
            "" | "0.3" => Ok(Self::V03),
            "1.0" => Ok(Self::V10),
            other if other.starts_with("0.3.") => Ok(Self::V03),
            other if other.starts_with("1.0.") => Ok(Self::V10),
            other => Err(Error::version(other)),
        }
    }
}

/// In whose words peers are told of pauses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Profile {
    /// Each in the words that it has activated.
    #[default]
    Adjourn,
    /// Everybody in those of the proposal.
    Rfc,
}

/// What a request activates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Activated {
    /// [`PAUSE`].
    pub pause: bool,
    /// [`PAUSED_STATES`].
    pub states: bool,
}

impl Activated {
    /// Reads the values of `A2A-Extensions` and `X-A2A-Extensions`: lists of names. Those that are
    /// not known are left out.
    pub(crate) fn read<'a>(headers: impl IntoIterator<Item = &'a str>, profile: Profile) -> Self {
        let rfc = profile == Profile::Rfc;
        let mut activated = Self { pause: rfc, states: rfc };
        for name in headers.into_iter().flat_map(|header| header.split(',')).map(str::trim) {
            activated.pause |= name == PAUSE;
            activated.states |= name == PAUSED_STATES;
        }
        activated
    }

    /// Returns whether the peer has shown that it knows pauses.
    pub const fn any(self) -> bool {
        self.pause || self.states
    }

    /// Returns what the answer's header echoes; nothing if nothing was activated.
    pub fn echo(self) -> Option<String> {
        let names = [(self.pause, PAUSE), (self.states, PAUSED_STATES)];
        let names: Vec<_> = names.into_iter().filter_map(|(is, name)| is.then_some(name)).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

/// Describes the extensions, as an agent card has them.
pub(crate) fn extensions(capabilities: &Value) -> Value {
    json!([
        {
            "uri": PAUSE,
            "description": "tasks/pause, tasks/resume, tasks/await_resumption; a paused task is a working one that says so in its metadata",
            "required": false,
            "params": capabilities,
        },
        {
            "uri": PAUSED_STATES,
            "description": "paused-by-client and paused-by-agent as states, and tasks/statusUpdate frames in streams",
            "required": false,
        },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_version_is_the_older_one_and_an_unknown_one_is_refused() {
        for (asked, version) in [
            (None, Version::V03),
            (Some(""), Version::V03),
            (Some("0.3"), Version::V03),
            (Some("0.3.0"), Version::V03),
            (Some("1.0"), Version::V10),
            (Some(" 1.0.1 "), Version::V10),
        ] {
            assert_eq!(Version::check(asked).unwrap(), version, "{asked:?}");
        }
        for unknown in ["0.2", "1.1", "2", "1.00", "x"] {
            assert_eq!(Version::check(Some(unknown)).unwrap_err().code, -32009, "{unknown}");
        }
    }

    #[test]
    fn extensions_are_activated_by_name_and_unknown_ones_are_left_out() {
        let read = |headers: &[&str]| Activated::read(headers.iter().copied(), Profile::Adjourn);
        assert_eq!(read(&[]).echo(), None);
        assert_eq!(read(&["urn:x"]).echo(), None);
        assert_eq!(read(&["urn:x, urn:adjourn:a2a:pause:v1"]).echo().unwrap(), PAUSE);
        let both = read(&[PAUSED_STATES, PAUSE]);
        assert_eq!(both, Activated { pause: true, states: true });
        assert_eq!(both, Activated::read([], Profile::Rfc));
    }
}
