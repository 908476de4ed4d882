// Suspending sessions over ACP: see ../acp.md.

/**
 * `session/suspend`: pauses a session; answered when it is paused.
 */
export type SessionSuspendRequest = { 
/**
 * The id of the session.
 */
sessionId: string, 
/**
 * Why it is to be paused; kept with the suspension.
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
 * The `_meta` of the request.
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
 * The id of the session.
 */
sessionId: string, 
/**
 * Why the agent waits.
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
 * Extensions of the sender.
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
 * Extensions of the sender.
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
 * The US dollars that are added.
 */
usd?: number, 
/**
 * The tokens that are added.
 */
tokens?: number, 
/**
 * The steps that a run may have more.
 */
steps?: number, };

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
 * Why it is paused.
 */
reason?: string, 
/**
 * Whether a client or the agent suspended the session.
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
 * The `_meta` of the request.
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
 * When it woke, RFC 3339.
 */
resumedAt: string, 
/**
 * Extensions of the sender.
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
 * It takes `session/suspend`; not if absent.
 */
supportsSuspend?: boolean, 
/**
 * It sends `session/await_resumption`; not if absent.
 */
supportsAwaitResumption?: boolean, 
/**
 * The causes it can wake for; `["explicit_resume"]` if absent.
 */
resumeCauses?: Array<ResumeCause>, };

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
 * Where a session stands: whether the agent has it, and in what form.
 */
export type SessionStatus = "live" | "not_found" | "open" | "saved" | "_suspended";

/**
 * Where a session stands: `_meta["adjourn/suspend"]` of answers and updates. What does not apply
 * is absent.
 */
export type SuspendStatus = { sessionId: string, 
/**
 * The run under way, or the last one.
 */
runId?: string, state: SuspendState, phase: SuspendPhase, 
/**
 * How the last run ended, while none is under way.
 */
outcome?: RunOutcome, 
/**
 * What went wrong with it.
 */
error?: string, 
/**
 * The pause that is pending or in force.
 */
handle?: string, initiator?: SuspensionInitiator, wait?: SuspendWait, reason?: string, 
/**
 * RFC 3339; absent while it is pending.
 */
suspendedAt?: string, resumeWhen?: ResumeConditions, 
/**
 * When a deadline acts, RFC 3339.
 */
dueAt?: string, 
/**
 * One sentence to show.
 */
summary?: string, question?: string, 
/**
 * What one should know to answer.
 */
context?: string, choices?: Array<string>, 
/**
 * The agent's own suspension, while a client's lies over it.
 */
held?: string, 
/**
 * The last wake, unless a prompt has begun another run since.
 */
cause?: ResumeCause, hadResumeInput?: boolean, continueTranscript?: boolean, 
/**
 * RFC 3339.
 */
resumedAt?: string, 
/**
 * Tools whose calls are in flight.
 */
inFlight?: Array<string>, 
/**
 * Tools whose calls were cut off, so that it is not known what came of them.
 */
unknownCalls?: Array<string>, totals: SuspendTotals, 
/**
 * The last revision of the journal of which everything has been told.
 */
seq: number, 
/**
 * What a resume did, in the answer to it: the fields of `resumed`.
 */
resumed?: Record<string, unknown>, 
/**
 * The id of the host that keeps the session's agent warm, in the answer to `session/status`.
 */
keptWarmBy?: string, };

export type SuspendState = "idle" | "ready" | "running" | "quiescing" | "suspended" | "ended";

/**
 * The state, and what it is about: `requested` and `quiescing` on the way to a suspension,
 * `canceling` on the way to the end of the run, `asking` suspended with a question.
 */
export type SuspendPhase = "idle" | "ready" | "running" | "requested" | "quiescing" | "canceling" | "suspended" | "asking" | "ended";

export type RunOutcome = "completed" | "failed" | "canceled" | "rejected";

export type SuspendWait = "open" | "question";

/**
 * What a session has used; zero if absent.
 */
export type SuspendTotals = { 
/**
 * Millionths of a US dollar.
 */
costMicroUsd?: number, promptTokens?: number, completionTokens?: number, };

/**
 * `_meta["adjourn/suspend"]` of the session capabilities.
 */
export type SuspendExtension = { version: number, modes: Array<SuspendMode>, resumeCauses: Array<ResumeCause>, };

/**
 * `_meta.harn.suspend` of answers and updates, for clients that use it. Deprecated.
 */
export type HarnSuspend = { handle: string, reason: string | null, 
/**
 * Conditions, with snake_case names.
 */
resume_when: Record<string, unknown> | null, initiator: SuspensionInitiator, 
/**
 * RFC 3339.
 */
suspended_at: string, };
