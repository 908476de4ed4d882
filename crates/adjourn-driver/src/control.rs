//! What a driver is told outside of its steps.

/// Something that a running driver is told, beside what it does at the moment.
///
/// It is meant for all traffic between a client and an agent that is no step: modes, options,
/// commands and authentication.
///
/// - A mode is an option, and an option that is set is all that there is to tell.
/// - Commands need no control: an agent tells which ones there are with
///   [`Shown::Commands`](crate::Shown::Commands), and a person types one as a prompt.
/// - Authentication has no control yet, because no face takes it. ACP's `authenticate` names a method
///   that the agent offered before there was a session, so it belongs to agents which speak a
///   protocol of their own. A driver that is not let in says so with a
///   [`Failure`](crate::Failure) of the kind `auth_required`, and the host asks a person.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Control {
    /// An option of the session has another value. It is durable: whatever the driver replies, its
    /// next step is given a session that has it.
    SetOption {
        /// The id of the option.
        option: String,
        /// The id of the value that holds from now on.
        value: String,
    },
}

/// What a driver replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// It has passed it on to what runs.
    Done,
    /// It does nothing about it before its next step.
    NotSupported,
}
