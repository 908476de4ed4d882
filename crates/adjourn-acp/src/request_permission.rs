//! `session/request_permission`: when a client is asked, and when it need not answer any more.
//!
//! A client is asked after it has been told of the call, so never before the answer that attaches
//! it. A request is taken back as soon as the journal shows that no host waits for it, so never
//! after the client has been told that the session is suspended.

use adjourn::core::Session;
use adjourn::core::ledger::{CallId, CallState};
use adjourn::driver::{PermissionAnswer, PermissionOption, PermissionRequest};
use adjourn::store::Store;
use serde_json::Value;

use crate::permissions::PendingPermissions;
use crate::session::{Attachment, Ours};
use crate::update::{self, Foreground};

/// The option that lets a call start.
pub(crate) const ALLOW: &str = "allow";
/// The option that lets this call and all further ones of its tool start.
pub(crate) const ALLOW_ALWAYS: &str = "allow_always";
/// The option that does not let it start.
pub(crate) const REJECT: &str = "reject";

impl<S: Store> Attachment<S> {
    /// Asks for what has to be allowed, and takes back what no host waits for any more.
    pub(crate) fn ask_permissions(&mut self) {
        self.take_back_permissions();
        let fresh = self.awaited().into_iter().filter(|(n, _)| !self.asks(*n)).collect();
        self.request_permissions(fresh);
    }

    /// Asks once more for what was asked outside of a prompt, where some clients never answer. The
    /// first answer counts, whichever request it is to; the other is taken back then.
    pub(crate) fn ask_again(&mut self) {
        let open = self.awaited().into_iter().filter(|(n, _)| self.asks(*n)).collect();
        self.request_permissions(open);
    }

    fn request_permissions(&mut self, open: Vec<(u64, PermissionRequest)>) {
        let requests: Vec<_> = open.into_iter().map(|(n, asks)| (self.number(), n, asks)).collect();
        for (id, number, _) in &requests {
            self.ours.insert(id.clone(), Ours::Permission(*number));
        }
        if !requests.is_empty() {
            self.restate();
        }
        for (id, _, asks) in &requests {
            let request = update::permission(self.peer.version, asks);
            self.lines.request(id, "session/request_permission", &request);
        }
    }

    /// Takes back what was asked and no host waits for any more.
    pub(crate) fn take_back_permissions(&mut self) {
        let mut asked: Vec<_> = self
            .ours
            .iter()
            .filter_map(|(id, ours)| match ours {
                Ours::Permission(number) => Some((*number, id.clone())),
                Ours::Question(_)
                | Ours::Await(_)
                | Ours::Request { .. }
                | Ours::UnwantedTerminal => None,
            })
            .collect();
        if asked.is_empty() {
            return;
        }
        let awaited = self.awaited();
        asked.retain(|(number, _)| !awaited.iter().any(|(open, _)| open == number));
        asked.sort_unstable_by_key(|(number, _)| *number);
        for (_, id) in &asked {
            self.call_off(id);
        }
        if !asked.is_empty() {
            self.restate();
        }
    }

    /// Answers a request with what the client said.
    pub(crate) fn permitted(&mut self, number: u64, result: Result<Value, Value>) {
        // Before anything comes of the answer.
        self.restate();
        if let Some(viewer) = &self.viewer {
            let asked = viewer.open().into_iter().find(|(open, _)| *open == number);
            let options = asked.map(|(_, asks)| asks.options).unwrap_or_default();
            viewer.answer(number, read(result, &options));
        }
    }

    /// Returns what the foreground of the session does, as far as this client is concerned.
    pub(crate) fn foreground_of(&self, session: &Session) -> Foreground {
        let asks = self.ours.values().any(|ours| matches!(ours, Ours::Permission(_)));
        foreground(session, asks)
    }

    /// Returns what is asked for, of calls that this client knows to wait.
    fn awaited(&self) -> Vec<(u64, PermissionRequest)> {
        let (Some(viewer), Some(view)) = (&self.viewer, &self.view) else { return Vec::new() };
        let mut open = viewer.open();
        open.retain(|(_, asks)| waits(view.session(), &asks.call.id));
        open
    }

    /// Tells the state, if a request for permission, or its end, has changed it.
    fn restate(&mut self) {
        // A client that has not been told any state yet is told it elsewhere.
        if self.foreground.is_some() {
            self.state(true);
        }
    }

    fn asks(&self, number: u64) -> bool {
        self.ours.values().any(|ours| *ours == Ours::Permission(number))
    }
}

/// Returns what the foreground of a session does, by whether a client is asked for permission.
pub(crate) fn foreground(session: &Session, asks: bool) -> Foreground {
    match Foreground::of(session) {
        // While other calls run, not everything waits for this person.
        Foreground::Running if asks && !session.in_flight() => Foreground::RequiresAction,
        foreground => foreground,
    }
}

/// Returns whether a client of this process is asked to allow a call of a session.
pub(crate) fn is_asked(permissions: &PendingPermissions, session: &Session) -> bool {
    permissions.open(session.id).iter().any(|(_, asks)| waits(session, &asks.call.id))
}

/// Returns whether a call could still be started if it were allowed.
fn waits(session: &Session, call: &CallId) -> bool {
    session.calls.get(call).is_some_and(|open| open.state == CallState::Asked)
        && session.owner().is_some()
        && !session.withdraws_permissions()
}

/// Reads the answer to a request that came with these options, or with ours; whatever does not
/// allow it refuses it.
fn read(result: Result<Value, Value>, options: &[PermissionOption]) -> PermissionAnswer {
    let why = match result {
        Ok(result) => {
            let at = |path: &str| result.pointer(path).and_then(Value::as_str).unwrap_or_default();
            match (at("/outcome/outcome"), at("/outcome/optionId")) {
                ("selected", id) if options.iter().any(|option| option.id == id) => {
                    return PermissionAnswer::Chosen(id.to_owned());
                }
                ("selected", _) if !options.is_empty() => "no option was chosen that there is",
                ("selected", ALLOW) => return PermissionAnswer::Granted { always: false },
                ("selected", ALLOW_ALWAYS) => return PermissionAnswer::Granted { always: true },
                ("selected", _) => "permission was refused",
                _ => "the request for permission was dismissed",
            }
        }
        Err(_) => "the client cannot be asked for permission",
    };
    PermissionAnswer::Refused(format!("not run: {why}"))
}
