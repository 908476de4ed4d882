//! The hosts of a store: which are alive, what they run, and why a session waits although they are.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use adjourn::KnownHost;
use adjourn::about::About;
use adjourn::core::Session;
use adjourn::core::driver::Need;
use adjourn::core::id::{HostId, SessionId};
use adjourn::core::session::State;
use adjourn::core::time::Timestamp;

use serde_json::{Value, json};

use crate::durations::span;
use crate::failure::Failure;
use crate::place::Place;

/// The hosts that are alive.
pub struct Living(Vec<Host>);

/// A host that was announced.
pub struct Host {
    pub id: HostId,
    /// Since when it is there.
    pub since: Timestamp,
    pub about: About,
    /// The sessions that it drives.
    pub drives: Vec<SessionId>,
    /// The sessions whose agents it keeps warm.
    pub keeps: HashSet<SessionId>,
    /// Whether it holds its lock.
    pub alive: bool,
    /// How long ago it last gave a sign of life.
    pub sign: Option<Duration>,
}

/// How a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Alive,
    /// It holds its lock, and gives no sign of life.
    Silent,
    /// It holds its lock, and the system says that it was stopped.
    Stopped,
    Dead,
}

impl Health {
    /// Returns the word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Silent => "silent",
            Self::Stopped => "stopped",
            Self::Dead => "dead",
        }
    }
}

impl Host {
    fn of(known: KnownHost) -> Self {
        let KnownHost { id, since, about, drives, keeps, alive, last_sign } = known;
        // A time in the future is one of before the clock was set back.
        let sign = last_sign.map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
        Self { id, since, about, drives, keeps, alive, sign }
    }

    /// Describes it to programs.
    pub fn json(&self) -> Value {
        json!({ "hostId": self.id, "pid": self.about.pid(), "since": self.since.to_string() })
    }

    /// Returns how it is called.
    pub fn name(&self) -> String {
        match self.about.pid() {
            Some(pid) => format!("host {pid}"),
            None => "a host".to_owned(),
        }
    }

    /// Returns how it is.
    pub fn health(&self) -> Health {
        if !self.alive {
            return Health::Dead;
        }
        if self.about.pid().is_some_and(is_stopped) {
            return Health::Stopped;
        }
        match self.sign {
            Some(sign) if self.about.is_silent(sign) => Health::Silent,
            _ => Health::Alive,
        }
    }

    /// Says what keeps it from going on, if it is alive and does not.
    fn hangs(&self) -> Option<String> {
        let name = self.name();
        match self.health() {
            Health::Alive | Health::Dead => None,
            Health::Stopped => Some(format!("{name} is stopped; `adjourn hosts` says more")),
            Health::Silent => {
                let sign = span(self.sign.unwrap_or_default());
                Some(format!("{name} gave its last sign of life {sign} ago; `adjourn hosts`"))
            }
        }
    }

    /// Returns why it does not take a session, if it is known.
    fn refusal(&self, id: SessionId) -> Option<String> {
        let name = self.name();
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
    pub async fn of(place: &Place) -> Result<Self, Failure> {
        let hosts = Self::and_dead(place).await?;
        Ok(Self(hosts.into_iter().filter(|host| host.alive).collect()))
    }

    /// Returns all hosts that were announced, also those that died since.
    pub async fn and_dead(place: &Place) -> Result<Vec<Host>, Failure> {
        Ok(place.adjourn.known_hosts().await?.into_iter().map(Host::of).collect())
    }

    /// Returns the host that drives a session, if it is alive.
    pub fn driving(&self, session: &Session) -> Option<&Host> {
        let owner = session.owner()?.host;
        self.0.iter().find(|host| host.id == owner)
    }

    /// Returns the host that keeps the agent of a session warm, if it is alive.
    pub fn keeping(&self, id: SessionId) -> Option<&Host> {
        self.0.iter().find(|host| host.keeps.contains(&id))
    }

    /// Returns whether there is none at all, not even one that is there for a session of its own:
    /// any of them delivers events.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether no living host can drive a session.
    pub fn nobody_for(&self, id: SessionId) -> bool {
        self.for_session(id).next().is_none()
    }

    /// Returns whether no living host can drive a session, but those that the system has stopped.
    pub fn nobody_awake_for(&self, id: SessionId) -> bool {
        self.awake_for(id).next().is_none()
    }

    /// Returns whether no living host but one can drive a session.
    pub fn nobody_but(&self, host: HostId, id: SessionId) -> bool {
        self.for_session(id).all(|other| other.id == host)
    }

    /// Returns those that drive a session, if they can.
    fn for_session(&self, id: SessionId) -> impl Iterator<Item = &Host> {
        self.0.iter().filter(move |host| host.about.drives(id))
    }

    /// Returns those of them that the system has not stopped.
    fn awake_for(&self, id: SessionId) -> impl Iterator<Item = &Host> {
        self.for_session(id).filter(|host| host.health() != Health::Stopped)
    }

    /// Returns why no host takes a session, if it is known of all of them that are awake.
    pub fn refusal(&self, session: &Session) -> Option<String> {
        let refusals = self.awake_for(session.id).map(|host| host.refusal(session.id));
        let refusals = refusals.collect::<Option<Vec<_>>>()?;
        (!refusals.is_empty()).then(|| refusals.join("; "))
    }

    /// Says what a session waits for that no host runs.
    pub fn waits_for(&self, session: &Session) -> Option<String> {
        match &session.state {
            State::Ready(_) => Some(self.ready(session)),
            State::Running(_) | State::Quiescing(_) => match self.driving(session) {
                Some(host) => host.hangs(),
                None if self.nobody_for(session.id) => {
                    Some(format!("its host died; {}", starts(session)))
                }
                None => Some("its host died; another takes over".to_owned()),
            },
            State::Suspended(_) => self
                .nobody_wakes(session)
                .then(|| format!("nobody is there to wake it; {}", starts(session))),
            State::Idle | State::Ended(_) => None,
        }
    }

    /// Returns whether no host is there to wake a session that waits for more than a resume.
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
        let hosts: Vec<_> = self.for_session(session.id).collect();
        if hosts.is_empty() {
            return format!("waits for a host: none is running; {}", starts(session));
        }
        let hangs = hosts.iter().map(|host| host.hangs()).collect::<Option<Vec<_>>>();
        match hangs {
            Some(hangs) => format!("waits for a host: {}", hangs.join("; ")),
            None => "a host is about to take it".to_owned(),
        }
    }
}

/// Says what starts a host that can run a session.
pub fn starts(session: &Session) -> &'static str {
    let asks = session.driver.needs.contains(&Need::Permissions);
    match (asks, session.driver.name.is_some()) {
        (true, true) => "`adjourn resume` at a terminal runs it, or an editor",
        (true, false) => "an editor runs it: `adjourn acp --script …`",
        (false, _) => "start `adjourn serve`",
    }
}

/// Returns whether the system says that a process of this machine stands still.
fn is_stopped(pid: u64) -> bool {
    let about = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name, which stands in brackets: `T` is stopped, `t` by a debugger.
    let state = about.rsplit(") ").next().and_then(|rest| rest.chars().next());
    matches!(state, Some('T' | 't'))
}

#[cfg(test)]
mod tests {
    use adjourn::clock::Environment as _;
    use adjourn::clock::Machine;

    use super::*;

    #[test]
    fn a_host_is_not_full_of_the_session_that_it_has_just_claimed() {
        let [own, other] = [0, 1].map(|_| SessionId::new(Machine.uuid()));
        let id = HostId::new(Machine.uuid());
        let about = About::parse(r#"{"pid":7}"#).at_most(1);
        let since = Machine.now();
        let (drives, keeps) = (vec![own], HashSet::new());
        let host = Host { id, since, about, drives, keeps, alive: true, sign: None };
        assert_eq!(host.refusal(own), None);
        let full = "host 7 has no room: it runs 1, as many as it may";
        assert_eq!(host.refusal(other).as_deref(), Some(full));
        let busy = Host { drives: Vec::new(), ..host };
        assert_eq!(busy.refusal(other), None);
    }
}
