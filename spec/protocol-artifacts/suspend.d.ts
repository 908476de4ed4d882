// Suspending sessions over ACP: see ../acp.md.

/**
 * `session/suspend`: pauses a session; answered when it is paused.
 */
export type SessionSuspendRequest = { 
/**
 * The session.
 */
sessionId: string, 
/**
 * Why; kept with the suspension.
 */
reason?: string, 
/**
 * What wakes it besides `session/resume`.
 */
resumeWhen?: ResumeConditions, 
/**
 * How soon it takes effect; `finish_step` if absent.
 */
mode?: SuspendMode, 
/**
 * How long calls in flight may go on, in milliseconds; for ever if absent.
 */
graceMs?: number, 
/**
 * Kept with the suspension and echoed, at most 4 KiB.
 */
_meta?: Record<string, unknown>, };

/**
 * The answer to `session/suspend`: the session is paused.
 */
export type SessionSuspendResponse = { 
/**
 * The suspension's name, for `session/resume`.
 */
handle: string, 
/**
 * Why it is paused.
 */
reason?: string, 
/**
 * When it took effect, RFC 3339.
 */
suspendedAt: string, 
/**
 * What wakes it besides `session/resume`.
 */
resumeWhen?: ResumeConditions, 
/**
 * One sentence to show.
 */
summary?: string, 
/**
 * What the request had in its own.
 */
_meta?: Record<string, unknown>, };

export type SuspendMode = "interrupt_immediate" | "finish_step" | "wait_for_completion";

export type ResumeConditions = { onEvent?: string, trigger?: Record<string, unknown>, timeout?: ResumeTimeoutSpec, since?: number, };

export type ResumeTimeoutSpec = { durationMinutes: number, onTimeout?: ResumeTimeoutAction, input?: unknown, };

export type ResumeTimeoutAction = "resume_with_summary" | "fail" | "resume_with_input";

/**
 * `session/await_resumption`: the agent has parked itself.
 */
export type SessionAwaitResumptionRequest = { 
/**
 * The session.
 */
sessionId: string, 
/**
 * Why.
 */
reason: string, 
/**
 * What wakes it besides `session/resume`.
 */
conditions?: ResumeConditions, 
/**
 * One sentence to show meanwhile.
 */
summary?: string, 
/**
 * For extensions.
 */
_meta?: Record<string, unknown>, };

/**
 * The answer to `session/await_resumption`.
 */
export type SessionAwaitResumptionResponse = { 
/**
 * A name for the suspension, valid on this connection.
 */
handle: string, 
/**
 * When the other side took note of it, RFC 3339.
 */
suspendedAt: string, 
/**
 * For extensions.
 */
_meta?: Record<string, unknown>, };

/**
 * What `session/resume` takes besides the protocol's own fields.
 */
export type SessionResumeFields = { 
/**
 * The suspension that is meant.
 */
handle?: string, 
/**
 * A value for the agent; `null` is none.
 */
input?: unknown, 
/**
 * Whether the turn sees the whole transcript (`true` if absent) or a digest.
 */
continueTranscript?: boolean, 
/**
 * From where to replay the conversation; not at all if absent.
 */
replayFrom?: ReplayFrom | null, 
/**
 * Makes a retry harmless.
 */
idempotencyKey?: string, 
/**
 * What is added to the budget.
 */
addBudget?: AddBudget, };

export type ReplayFrom = { "type": "start" } | { "type": "_adjourn_from", seq: number, };

/**
 * What is added to a session's budget.
 */
export type AddBudget = { 
/**
 * US dollars.
 */
usd?: number, 
/**
 * Tokens.
 */
tokens?: number, };

/**
 * `session/update` with `sessionUpdate: "suspended"`.
 */
export type SuspendedUpdate = { 
/**
 * Which update this is.
 */
sessionUpdate: SuspendedTag, 
/**
 * The suspension's name.
 */
handle: string, 
/**
 * Why.
 */
reason?: string, 
/**
 * Whose wish it is.
 */
initiator: SuspensionInitiator, 
/**
 * When it took effect, RFC 3339.
 */
suspendedAt: string, 
/**
 * What wakes it besides `session/resume`.
 */
resumeWhen?: ResumeConditions, 
/**
 * What the request had in its own.
 */
_meta?: Record<string, unknown>, };

/**
 * `suspended`.
 */
export type SuspendedTag = "suspended";

export type SuspensionInitiator = "client" | "agent";

/**
 * `session/update` with `sessionUpdate: "resumed"`.
 */
export type ResumedUpdate = { 
/**
 * Which update this is.
 */
sessionUpdate: ResumedTag, 
/**
 * The suspension that is over.
 */
handle: string, 
/**
 * Why it woke.
 */
cause: ResumeCause, 
/**
 * Whether a value was fed to the agent.
 */
hadResumeInput: boolean, 
/**
 * Whether the turn sees the whole transcript.
 */
continueTranscript: boolean, 
/**
 * When, RFC 3339.
 */
resumedAt: string, 
/**
 * For extensions.
 */
_meta?: Record<string, unknown>, };

/**
 * `resumed`.
 */
export type ResumedTag = "resumed";

export type ResumeCause = "explicit_resume" | "condition_fired" | "timeout" | "external_event";

/**
 * What an agent says at `initialize`, beside the protocol's own capabilities.
 */
export type SuspendCapabilities = { 
/**
 * It takes `session/suspend`.
 */
supportsSuspend: boolean, 
/**
 * It sends `session/await_resumption`.
 */
supportsAwaitResumption: boolean, 
/**
 * The causes it can wake for; `["explicit_resume"]` if absent.
 */
resumeCauses: Array<ResumeCause>, };

/**
 * The answer to `session/status`.
 */
export type SessionStatusResponse = { 
/**
 * Where the session stands.
 */
status: SessionStatus, 
/**
 * What its foreground does, if it is open (v2); as in `state_update`.
 */
state?: Record<string, unknown>, 
/**
 * `adjourn/suspend`: the state, since when and why.
 */
_meta?: Record<string, unknown>, };

/**
 * Where a session stands, for whoever wants to know whether it can be talked to.
 */
export type SessionStatus = "live" | "not_found" | "open" | "saved" | "_suspended";
