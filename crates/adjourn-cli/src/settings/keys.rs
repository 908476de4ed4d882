//! Everything that can be set: its names, what it is for, and its default.

/// Something that can be set.
#[derive(Debug)]
pub struct Key {
    /// Its name in the file, with its section.
    pub name: &'static str,
    /// Its flag; empty if there is none.
    pub flag: &'static str,
    pub variable: &'static str,
    /// Whether its value in the file is a whole number; otherwise it is a string.
    pub whole: bool,
    /// What it is for, for the commented file.
    pub about: &'static str,
    /// A value for the commented file: the default, or an example where there is none.
    pub example: &'static str,
}

pub const STORE: Key = Key {
    name: "store",
    flag: "--store",
    variable: "ADJOURN_STORE",
    whole: false,
    about: "The file that sessions are kept in, on a local disk.\n\
            Without it: adjourn/store.db in the user's data directory.",
    example: r#""~/.local/share/adjourn/store.db""#,
};
pub const TENANT_KEY: Key = Key {
    name: "tenant",
    flag: "--tenant",
    variable: "ADJOURN_TENANT",
    whole: false,
    about: "Whose the sessions are that are made here, and the events that come in here.\n\
            An event wakes sessions of its own tenant only.",
    example: r#""local""#,
};
pub const AS: Key = Key {
    name: "as",
    flag: "--as",
    variable: "ADJOURN_AS",
    whole: false,
    about: "Who asks for what is typed here: the journal and refusals name it.\n\
            Without it: the user's name.",
    example: r#""ann""#,
};
pub const SOURCE: Key = Key {
    name: "events.source",
    flag: "--source",
    variable: "ADJOURN_SOURCE",
    whole: false,
    about: "Where events of `adjourn event` come from.\n\
            The same id from the same source is taken once.",
    example: r#""cli""#,
};
pub const LISTEN: Key = Key {
    name: "serve.listen",
    flag: "--listen",
    variable: "ADJOURN_LISTEN",
    whole: false,
    about: "Where `adjourn serve` takes events over HTTP, and where other agents talk to its agent over\n\
            A2A, if it has one; callers show a token. Without it: nowhere.",
    example: r#""127.0.0.1:7070""#,
};
pub const TOKEN: Key = Key {
    name: "serve.token",
    flag: "--token",
    variable: "ADJOURN_TOKEN",
    whole: false,
    about: "",
    example: "",
};
pub const TOKEN_FILE: Key = Key {
    name: "serve.token_file",
    flag: "--token-file",
    variable: "ADJOURN_TOKEN_FILE",
    whole: false,
    about: "A file that holds what those who send events show as a bearer token.",
    example: r#""token""#,
};
pub const TOKENS_FILE: Key = Key {
    name: "serve.tokens_file",
    flag: "--tokens-file",
    variable: "ADJOURN_TOKENS_FILE",
    whole: false,
    about: "A file of the tokens that callers show to `adjourn serve`: on each line a name, the\n\
            SHA-256 digest of the token, its scopes (read,send) and perhaps its tenant. The scopes\n\
            are read, send, pause, resume and agent for A2A, event for events, admin for everything.",
    example: r#""tokens""#,
};
pub const PUBLIC_NAME: Key = Key {
    name: "serve.public_name",
    flag: "--public-name",
    variable: "ADJOURN_PUBLIC_NAME",
    whole: false,
    about: "What others call `adjourn serve`, besides its address: requests for another name are refused.\n\
            With https:// if something in front of it speaks TLS.",
    example: r#""https://agents.example.org""#,
};
pub const PUSH: Key = Key {
    name: "serve.push",
    flag: "--push",
    variable: "ADJOURN_PUSH",
    whole: false,
    about: "Where agents that `adjourn serve` talks to may have push notifications sent:\n\
            off (nowhere), public (hosts on the public internet, over https) or loopback (this\n\
            machine, too).",
    example: r#""public""#,
};
pub const MAX_RUNNING: Key = Key {
    name: "host.max_running",
    flag: "--max-running",
    variable: "ADJOURN_MAX_RUNNING",
    whole: true,
    about: "Sessions that one host drives at once.",
    example: "64",
};
pub const WARM_FOR: Key = Key {
    name: "host.warm_for",
    flag: "",
    variable: "ADJOURN_WARM_FOR",
    whole: false,
    about: "How long a host keeps what an agent has loaded, once it is parked or idle, to go on sooner.",
    example: r#""5m""#,
};
pub const MAX_WARM: Key = Key {
    name: "host.max_warm",
    flag: "",
    variable: "ADJOURN_MAX_WARM",
    whole: true,
    about: "Parked and idle agents that a host keeps so at once; 0 keeps none.",
    example: "8",
};
pub const DRAIN: Key = Key {
    name: "host.drain",
    flag: "--drain",
    variable: "ADJOURN_DRAIN",
    whole: false,
    about: "How long calls in flight may go on when a host stops.",
    example: r#""30s""#,
};
pub const CANCEL_GRACE: Key = Key {
    name: "host.cancel_grace",
    flag: "",
    variable: "ADJOURN_CANCEL_GRACE",
    whole: false,
    about: "How long calls in flight may go on when their run is canceled; at most a day.",
    example: r#""2s""#,
};
pub const CACHE: Key = Key {
    name: "host.cache",
    flag: "--cache",
    variable: "ADJOURN_CACHE",
    whole: true,
    about: "Sessions that a process keeps in memory, at one or two KiB each, to be quick.\n\
            Nothing depends on it: what is not there is read from the store.",
    example: "4096",
};
pub const RETRIES: Key = Key {
    name: "failures.retries",
    flag: "",
    variable: "ADJOURN_FAILURES_RETRIES",
    whole: true,
    about: "How often a failed step of an agent is tried again, in a row, before its run fails; 0 tries none again.",
    example: "4",
};
pub const RETRY_DELAY: Key = Key {
    name: "failures.delay",
    flag: "",
    variable: "ADJOURN_FAILURES_DELAY",
    whole: false,
    about: "How long a host waits before it tries a step again; twice as long each time, up to half of it less by chance.",
    example: r#""1s""#,
};
pub const LONGEST_DELAY: Key = Key {
    name: "failures.longest_delay",
    flag: "",
    variable: "ADJOURN_FAILURES_LONGEST_DELAY",
    whole: false,
    about: "How long it waits at most between two tries.",
    example: r#""30s""#,
};
pub const LONGEST_PARK: Key = Key {
    name: "failures.longest_park",
    flag: "",
    variable: "ADJOURN_FAILURES_LONGEST_PARK",
    whole: false,
    about: "How long a session is parked at most until the time that a failure names; a run that would wait longer fails.",
    example: r#""7d""#,
};
pub const RETRY_ON: Key = Key {
    name: "failures.retry_on",
    flag: "",
    variable: "ADJOURN_FAILURES_RETRY_ON",
    whole: false,
    about: "Kinds of failures that pass by themselves: the step is tried again.",
    example: r#""connection, overloaded, rate_limit, timeout, transient_provider, unavailable""#,
};
pub const ASK_ON: Key = Key {
    name: "failures.ask_on",
    flag: "",
    variable: "ADJOURN_FAILURES_ASK_ON",
    whole: false,
    about: "Kinds of failures that a person is asked about. All other kinds fail the run.",
    example: r#""auth_required""#,
};
pub const ENDED: Key = Key {
    name: "retention.ended",
    flag: "",
    variable: "ADJOURN_RETENTION_ENDED",
    whole: false,
    about: "How long hosts keep what happened in sessions that have ended; or never, to drop nothing.",
    example: r#""30d""#,
};
pub const LOG: Key = Key {
    name: "log.level",
    flag: "--log",
    variable: "ADJOURN_LOG",
    whole: false,
    about: "What `adjourn serve` and `adjourn acp` log on stderr: off, error, warn, info, debug or trace.\n\
            Without it: info for serve, warn for acp. Other commands log what their flag or ADJOURN_LOG asks for.",
    example: r#""info""#,
};
pub const LOG_FORMAT: Key = Key {
    name: "log.format",
    flag: "--log-format",
    variable: "ADJOURN_LOG_FORMAT",
    whole: false,
    about: "How lines of the log are written: text or json.",
    example: r#""text""#,
};
pub const PROFILE: Key = Key {
    name: "acp.profile",
    flag: "--profile",
    variable: "ADJOURN_ACP_PROFILE",
    whole: false,
    about: "In whose words clients of `adjourn acp` are told about suspensions:\n\
            adjourn (each in the words it has shown to understand) or rfc (the proposals').",
    example: r#""adjourn""#,
};
pub const A2A_PROFILE: Key = Key {
    name: "a2a.profile",
    flag: "--profile",
    variable: "ADJOURN_A2A_PROFILE",
    whole: false,
    about: "In whose words other agents are told about pauses of tasks:\n\
            adjourn (each in the words it has activated) or rfc (the proposals').",
    example: r#""adjourn""#,
};
pub const STATUS_WORDS: Key = Key {
    name: "acp.status_words",
    flag: "--status-words",
    variable: "ADJOURN_ACP_STATUS_WORDS",
    whole: false,
    about: "In which words session/status answers: auto (by protocol version), live or open.",
    example: r#""auto""#,
};
pub const ON_DISCONNECT: Key = Key {
    name: "acp.on_disconnect",
    flag: "--on-disconnect",
    variable: "ADJOURN_ACP_ON_DISCONNECT",
    whole: false,
    about: "What becomes of running sessions when the editor goes away:\n\
            continue, suspend or cancel.",
    example: r#""continue""#,
};

/// Everything that a file may say, in the order of the commented file: sections come last.
pub const KEYS: &[Key] = &[
    STORE,
    TENANT_KEY,
    AS,
    SOURCE,
    LISTEN,
    TOKEN_FILE,
    TOKENS_FILE,
    PUBLIC_NAME,
    PUSH,
    MAX_RUNNING,
    WARM_FOR,
    MAX_WARM,
    DRAIN,
    CANCEL_GRACE,
    CACHE,
    RETRIES,
    RETRY_DELAY,
    LONGEST_DELAY,
    LONGEST_PARK,
    RETRY_ON,
    ASK_ON,
    ENDED,
    LOG,
    LOG_FORMAT,
    PROFILE,
    STATUS_WORDS,
    ON_DISCONNECT,
    A2A_PROFILE,
];
