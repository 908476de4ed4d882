//! The methods: their names in both versions and in the proposal.

use crate::caller::Scope;
use crate::version::Version;

/// Something that a peer can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Says something to the agent.
    Send,
    /// Says something to the agent, and watches what comes of it.
    Stream,
    /// Reads a task.
    Get,
    /// Lists tasks.
    List,
    /// Ends a task.
    Cancel,
    /// Watches a task.
    Subscribe,
    /// Pauses a task.
    Pause,
    /// Wakes a task.
    Resume,
    /// Parks a task for its agent.
    Await,
    /// Describes the agent to a peer that is known.
    Card,
    /// Has a receiver told of a task by push notifications.
    SetPush,
    /// Reads how a receiver is told.
    GetPush,
    /// Lists the receivers of a task.
    ListPushes,
    /// Has a receiver told nothing more.
    DeletePush,
}

/// Whose error codes a method has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// A method of A2A itself.
    Standard,
    /// A method of the proposal, by its name.
    Proposal,
    /// The same by another name, or over REST.
    Alias,
}

/// A method, by one of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// What is asked for.
    pub verb: Verb,
    /// The version that has this name for it, and whose words the answer has.
    pub version: Version,
    /// Whose error codes it has.
    pub family: Family,
}

static METHODS: [(&str, Verb, Version, Family); 28] = {
    use Family::{Alias, Proposal, Standard};
    use Version::{V03, V10};
    [
        ("message/send", Verb::Send, V03, Standard),
        ("message/stream", Verb::Stream, V03, Standard),
        ("tasks/get", Verb::Get, V03, Standard),
        ("tasks/list", Verb::List, V03, Standard),
        ("tasks/cancel", Verb::Cancel, V03, Standard),
        ("tasks/resubscribe", Verb::Subscribe, V03, Standard),
        ("SendMessage", Verb::Send, V10, Standard),
        ("SendStreamingMessage", Verb::Stream, V10, Standard),
        ("GetTask", Verb::Get, V10, Standard),
        ("ListTasks", Verb::List, V10, Standard),
        ("CancelTask", Verb::Cancel, V10, Standard),
        ("SubscribeToTask", Verb::Subscribe, V10, Standard),
        ("agent/getAuthenticatedExtendedCard", Verb::Card, V03, Standard),
        ("GetExtendedAgentCard", Verb::Card, V10, Standard),
        ("tasks/pushNotificationConfig/set", Verb::SetPush, V03, Standard),
        ("tasks/pushNotificationConfig/get", Verb::GetPush, V03, Standard),
        ("tasks/pushNotificationConfig/list", Verb::ListPushes, V03, Standard),
        ("tasks/pushNotificationConfig/delete", Verb::DeletePush, V03, Standard),
        ("CreateTaskPushNotificationConfig", Verb::SetPush, V10, Standard),
        ("GetTaskPushNotificationConfig", Verb::GetPush, V10, Standard),
        ("ListTaskPushNotificationConfigs", Verb::ListPushes, V10, Standard),
        ("DeleteTaskPushNotificationConfig", Verb::DeletePush, V10, Standard),
        ("tasks/pause", Verb::Pause, V03, Proposal),
        ("tasks/resume", Verb::Resume, V03, Proposal),
        ("tasks/await_resumption", Verb::Await, V03, Proposal),
        ("PauseTask", Verb::Pause, V10, Alias),
        ("ResumeTask", Verb::Resume, V10, Alias),
        ("AwaitTaskResumption", Verb::Await, V10, Alias),
    ]
};

impl Method {
    /// Finds a method by its name.
    pub fn named(name: &str) -> Option<Self> {
        let &(_, verb, version, family) = METHODS.iter().find(|(known, ..)| *known == name)?;
        Some(Self { verb, version, family })
    }

    /// Returns the name that its version has for it; over REST, the one that JSON-RPC has.
    pub(crate) fn name(self) -> &'static str {
        let is_old = self.version != Version::V10;
        let same = |version: Version| (version != Version::V10) == is_old;
        let known =
            METHODS.iter().find(|(_, verb, version, _)| *verb == self.verb && same(*version));
        known.map_or("", |(name, ..)| name)
    }
}

impl Verb {
    /// Returns what a caller must be allowed to do for it; nothing if it is enough to be known.
    pub const fn scope(self) -> Option<Scope> {
        Some(match self {
            Self::Get | Self::List | Self::Subscribe => Scope::Read,
            // Each peer is told what it may do, and no more.
            Self::Card => return None,
            // A caller that may give work may take it back, and say who is told of it.
            Self::Send
            | Self::Stream
            | Self::Cancel
            | Self::SetPush
            | Self::GetPush
            | Self::ListPushes
            | Self::DeletePush => Scope::Send,
            Self::Pause => Scope::Pause,
            Self::Resume => Scope::Resume,
            Self::Await => Scope::Agent,
        })
    }
}
