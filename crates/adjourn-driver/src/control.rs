//! What a driver is told outside of its steps.

/// Something that a running driver is told, beside what it does at the moment.
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
