//! The hosts of a store that are alive, and why a session waits although they are.

use adjourn_core::Session;
use adjourn_core::id::{HostId, SessionId};
use adjourn_core::session::State;
use adjourn_host::about::About;
use adjourn_store::Store as _;

use crate::failure::Failure;
use crate::place::Place;

/// The hosts that are alive.
pub struct Living(Vec<(HostId, About)>);

impl Living {
    pub fn of(place: &Place) -> Result<Self, Failure> {
        let hosts = place.store.hosts()?.into_iter();
        // One whose lock cannot be looked at is taken for alive, as hosts do.
        let alive = hosts.filter(|host| place.hosts.is_alive(host.id).unwrap_or(true));
        Ok(Self(alive.map(|host| (host.id, About::parse(&host.about))).collect()))
    }

    /// Returns whether there is none at all, not even one that is there for a session of its own:
    /// any of them delivers events.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns those that drive a session, if they can.
    pub fn for_session(&self, id: SessionId) -> impl Iterator<Item = &(HostId, About)> {
        self.0.iter().filter(move |(_, about)| about.drives(id))
    }

    /// Returns whether nobody is there to drive a session.
    pub fn nobody_for(&self, id: SessionId) -> bool {
        self.for_session(id).next().is_none()
    }

    /// Returns why no host can run a session, if all of them said so.
    pub fn refusal(&self, session: &Session) -> Option<String> {
        let declined = self.declined(session);
        let all = self.for_session(session.id).count();
        (!declined.is_empty() && declined.len() == all).then(|| declined.join("; "))
    }

    /// Says what a session waits for that nobody runs.
    pub fn waits_for(&self, session: &Session) -> Option<String> {
        match &session.state {
            State::Ready(_) => Some(self.ready(session)),
            State::Running(_) | State::Quiescing(_) => {
                let owner = session.owner()?.host;
                let alive = self.0.iter().any(|(id, _)| *id == owner);
                (!alive).then(|| match self.nobody_for(session.id) {
                    true => "its host died; start `adjourn serve` to go on".to_owned(),
                    false => "its host died; another takes over".to_owned(),
                })
            }
            State::Idle | State::Suspended(_) | State::Ended(_) => None,
        }
    }

    fn ready(&self, session: &Session) -> String {
        if let Some(refusal) = self.refusal(session) {
            return refusal;
        }
        match self.for_session(session.id).count() {
            0 => "waits for a host: none is running; start `adjourn serve`".to_owned(),
            1 => "waits for a host: one is running".to_owned(),
            all => format!("waits for a host: {all} are running"),
        }
    }

    fn declined(&self, session: &Session) -> Vec<String> {
        let declines = |(_, about): &(HostId, About)| {
            let why = about.declines(session.id)?;
            Some(match about.pid() {
                Some(pid) => format!("host {pid} cannot run it: {why}"),
                None => format!("a host cannot run it: {why}"),
            })
        };
        self.for_session(session.id).filter_map(declines).collect()
    }
}
