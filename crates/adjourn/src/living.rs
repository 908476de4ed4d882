//! The hosts of a store that are alive, and why a session waits although they are.

use adjourn_core::Session;
use adjourn_core::id::{HostId, SessionId};
use adjourn_core::session::State;
use adjourn_host::about::About;
use adjourn_store::Store as _;
use adjourn_store::rows::HostRow;

use crate::failure::Failure;
use crate::place::Place;

/// The hosts that are alive.
pub struct Living(Vec<Host>);

/// A host that is alive.
struct Host {
    id: HostId,
    about: About,
    /// The sessions that it drives.
    drives: Vec<SessionId>,
}

impl Host {
    /// Returns why it does not take a session, if it is known.
    fn refusal(&self, id: SessionId) -> Option<String> {
        let name = match self.about.pid() {
            Some(pid) => format!("host {pid}"),
            None => "a host".to_owned(),
        };
        if let Some(why) = self.about.declines(id) {
            return Some(format!("{name} cannot run it: {why}"));
        }
        let most = self.about.max_running()?;
        // It may have claimed this very session since that was read.
        let full = self.drives.len() >= most && !self.drives.contains(&id);
        full.then(|| format!("{name} has no room: it runs {most}, as many as it may"))
    }
}

impl Living {
    pub fn of(place: &Place) -> Result<Self, Failure> {
        let hosts = place.store.hosts()?.into_iter();
        // Nobody is told to wait for one whose lock cannot be looked at.
        let alive = hosts.filter(|host| place.hosts.is_alive(host.id).unwrap_or(false));
        let host = |host: HostRow| {
            let drives = place.store.driven_by(host.id)?;
            Ok(Host { id: host.id, about: About::parse(&host.about), drives })
        };
        Ok(Self(alive.map(host).collect::<Result<_, Failure>>()?))
    }

    /// Returns whether there is none at all, not even one that is there for a session of its own:
    /// any of them delivers events.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether nobody is there to drive a session.
    pub fn nobody_for(&self, id: SessionId) -> bool {
        self.for_session(id).next().is_none()
    }

    /// Returns whether nobody but one host is there to drive a session.
    pub fn nobody_but(&self, host: HostId, id: SessionId) -> bool {
        self.for_session(id).all(|other| other.id == host)
    }

    /// Returns those that drive a session, if they can.
    fn for_session(&self, id: SessionId) -> impl Iterator<Item = &Host> {
        self.0.iter().filter(move |host| host.about.drives(id))
    }

    /// Returns why no host takes a session, if it is known of all of them.
    pub fn refusal(&self, session: &Session) -> Option<String> {
        let refusals = self.for_session(session.id).map(|host| host.refusal(session.id));
        let refusals = refusals.collect::<Option<Vec<_>>>()?;
        (!refusals.is_empty()).then(|| refusals.join("; "))
    }

    /// Says what a session waits for that nobody runs.
    pub fn waits_for(&self, session: &Session) -> Option<String> {
        match &session.state {
            State::Ready(_) => Some(self.ready(session)),
            State::Running(_) | State::Quiescing(_) => {
                let owner = session.owner()?.host;
                let alive = self.0.iter().any(|host| host.id == owner);
                (!alive).then(|| match self.nobody_for(session.id) {
                    true => "its host died; start `adjourn serve` to go on".to_owned(),
                    false => "its host died; another takes over".to_owned(),
                })
            }
            State::Suspended(_) => self
                .nobody_wakes(session)
                .then(|| "nobody is there to wake it; start `adjourn serve`".to_owned()),
            State::Idle | State::Ended(_) => None,
        }
    }

    /// Returns whether nobody is there to wake a session that waits for more than a resume.
    pub fn nobody_wakes(&self, session: &Session) -> bool {
        let Some(suspended) = session.suspended() else { return false };
        let shown = suspended.shown();
        let conditions = shown.pause.conditions.as_ref();
        let events = conditions.is_some_and(|all| all.on_event.is_some() || all.trigger.is_some());
        self.nobody_for(session.id) && (shown.due.is_some() || events)
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
}

#[cfg(test)]
mod tests {
    use adjourn_host::clock::Machine;
    use adjourn_store::Environment as _;

    use super::*;

    #[test]
    fn a_host_is_not_full_of_the_session_that_it_has_just_claimed() {
        let [own, other] = [0, 1].map(|_| SessionId::new(Machine.uuid()));
        let id = HostId::new(Machine.uuid());
        let about = About::parse(r#"{"pid":7}"#).at_most(1);
        let host = Host { id, about, drives: vec![own] };
        assert_eq!(host.refusal(own), None);
        let full = "host 7 has no room: it runs 1, as many as it may";
        assert_eq!(host.refusal(other).as_deref(), Some(full));
        let busy = Host { drives: Vec::new(), ..host };
        assert_eq!(busy.refusal(other), None);
    }
}
