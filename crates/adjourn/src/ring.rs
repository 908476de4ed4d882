//! What a ring says between processes: which sessions have changed.
//!
//! It is a hint, and a lost one costs a moment: whoever is rung finds in the journal what has
//! changed. A ring that names sessions spares those the look who have nothing to do with them.

use adjourn_core::id::SessionId;
use uuid::Uuid;

/// The most sessions that one ring names: with more of them, it says that there is something.
const NAMED: usize = 128;
/// How long a ring can be, in bytes.
pub(crate) const BYTES: usize = 1 + NAMED * ID;
/// How long the name of a session is.
const ID: usize = 16;
/// Set in the first byte if hosts have something to do.
const WORK: u8 = 1;

/// What was rung.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ring {
    /// Whether anything may have changed, named or not.
    anything: bool,
    /// Whether hosts may have something to do.
    work: bool,
    sessions: Vec<SessionId>,
}

impl Ring {
    /// A ring that says that anything may have changed.
    pub fn anything() -> Self {
        Self { anything: true, work: true, sessions: Vec::new() }
    }

    /// Adds a session, and whether hosts may have something to do with it.
    pub fn name(&mut self, id: SessionId, work: bool) {
        self.work |= work;
        if self.anything || self.sessions.contains(&id) {
            return;
        }
        if self.sessions.len() < NAMED {
            self.sessions.push(id);
        } else {
            self.anything = true;
            self.sessions = Vec::new();
        }
    }

    /// Adds that hosts may have something to do.
    pub fn add_work(&mut self) {
        self.work = true;
    }

    /// Returns whether it says nothing, so that there is no need to ring.
    pub fn is_empty(&self) -> bool {
        !self.anything && !self.work && self.sessions.is_empty()
    }

    /// Returns whether a session may have changed.
    #[cfg(any(test, feature = "testing"))]
    pub fn concerns(&self, id: SessionId) -> bool {
        self.anything || self.sessions.contains(&id)
    }

    /// Returns whether one of the sessions that are followed may have changed.
    pub fn concerns_any(&self, mut is_followed: impl FnMut(SessionId) -> bool) -> bool {
        self.anything || self.sessions.iter().any(|id| is_followed(*id))
    }

    /// Returns whether hosts may have something to do.
    pub const fn leaves_work(&self) -> bool {
        self.anything || self.work
    }

    /// Adds what another ring says.
    pub fn merge(&mut self, other: Self) {
        self.anything |= other.anything;
        self.work |= other.work;
        for id in other.sessions {
            self.name(id, false);
        }
    }

    /// Returns its bytes; none say that anything may have changed, as rings without names do.
    pub(crate) fn encode(&self) -> Vec<u8> {
        if self.anything {
            return Vec::new();
        }
        let mut bytes = Vec::with_capacity(1 + self.sessions.len() * ID);
        bytes.push(if self.work { WORK } else { 0 });
        for id in &self.sessions {
            bytes.extend_from_slice(id.uuid().as_bytes());
        }
        bytes
    }

    /// Reads a ring; what is none, or was cut short, says that anything may have changed.
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let Some((flags, ids)) = bytes.split_first() else { return Self::anything() };
        let (ids, rest) = ids.as_chunks::<ID>();
        if *flags > WORK || !rest.is_empty() || ids.len() > NAMED {
            return Self::anything();
        }
        let sessions = ids.iter().map(|id| SessionId::new(Uuid::from_bytes(*id))).collect();
        Self { anything: false, work: *flags == WORK, sessions }
    }
}

#[cfg(test)]
mod tests {
    use adjourn_store::Environment as _;

    use super::*;
    use crate::clock::Machine;

    fn session() -> SessionId {
        SessionId::new(Machine.uuid())
    }

    #[test]
    fn a_ring_comes_through_as_it_was_sent() {
        let (one, two, other) = (session(), session(), session());
        let mut ring = Ring::default();
        assert!(ring.is_empty());
        ring.name(one, false);
        ring.name(two, false);
        ring.name(one, false);
        let heard = Ring::decode(&ring.encode());
        assert_eq!(heard, ring);
        assert!(heard.concerns(one) && heard.concerns(two) && !heard.concerns(other));
        assert!(!heard.leaves_work());
        ring.add_work();
        assert!(Ring::decode(&ring.encode()).leaves_work());
    }

    #[test]
    fn what_names_too_many_or_cannot_be_read_is_about_anything() {
        let mut ring = Ring::default();
        for _ in 0..NAMED {
            ring.name(session(), false);
        }
        assert!(!ring.concerns(session()));
        assert_eq!(ring.encode().len(), BYTES);
        ring.name(session(), false);
        assert!(ring.concerns(session()) && ring.encode().is_empty());
        for bytes in [&[][..], &[9], &[0, 1, 2, 3], &[0; BYTES + ID]] {
            let heard = Ring::decode(bytes);
            assert!(heard.concerns(session()) && heard.leaves_work(), "{bytes:?}");
        }
    }

    #[test]
    fn rings_that_are_heard_together_say_what_each_said() {
        let (one, two) = (session(), session());
        let (mut first, mut second) = (Ring::default(), Ring::default());
        first.name(one, false);
        second.name(two, true);
        first.merge(second);
        assert!(first.concerns(one) && first.concerns(two) && first.leaves_work());
        assert!(!first.concerns(session()));
        first.merge(Ring::anything());
        assert!(first.concerns(session()));
    }
}
