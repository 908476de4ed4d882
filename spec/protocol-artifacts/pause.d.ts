// Pausing tasks over A2A: see ../a2a-pause.md.

import type { ResumeConditions, SuspensionInitiator } from "./suspend";

/** How soon a pause takes effect. */
export type PauseMode = "finish_step" | "interrupt_immediate" | "wait_for_completion";

/** The two states of a paused task. */
export type PausedState = "paused-by-client" | "paused-by-agent";

/** Every state that a task can be in. */
export type TaskState = "submitted" | "working" | "input-required" | "auth-required" | "completed" | "canceled" | "failed" | "rejected" | "paused-by-client" | "paused-by-agent";

/** Why a task was woken. */
export type ResumeCause = "explicit_resume" | "condition_fired" | "timeout" | "external_event";

/** The parameters of `tasks/pause`, and of `PauseTask`. */
export type PauseTaskRequest = {
  taskId: string;
  reason?: string | null;
  mode?: PauseMode | null;
  conditions?: ResumeConditions | null;
  graceMs?: number | null;
  metadata?: Record<string, unknown> | null;
};

/** The answer, when the pause is in force; also to an await. */
export type PauseTaskResponse = {
  taskId: string;
  state: PausedState;
  handle: string;
  pausedAt: string;
  reason?: string;
  conditions?: ResumeConditions;
  metadata?: Record<string, unknown>;
};

/** The answer while calls in flight keep it from coming into force. */
export type PauseTaskPending = {
  taskId: string;
  state: "working";
  phase: "quiescing";
  handle: string;
  reason?: string;
  conditions?: ResumeConditions;
  metadata?: Record<string, unknown>;
};

/** The parameters of `tasks/await_resumption`, and of `AwaitTaskResumption`. */
export type AwaitTaskResumptionRequest = {
  taskId: string;
  reason: string;
  conditions?: ResumeConditions | null;
  summary?: string | null;
  metadata?: Record<string, unknown> | null;
};

/** The parameters of `tasks/resume`, and of `ResumeTask`. */
export type ResumeTaskRequest = {
  taskId: string;
  handle?: string | null;
  input?: unknown;
  continueTranscript?: boolean | null;
  idempotencyKey?: string | null;
  addBudget?: AddBudget | null;
  metadata?: Record<string, unknown> | null;
};

/** What is added to the budget of a task that has used it up. */
export type AddBudget = {
  usd?: number | null;
  tokens?: number | null;
  steps?: number | null;
};

/** The answer to a resume, and the parameters of the notification that reports a wake. */
export type ResumeTaskResponse = {
  taskId: string;
  state: TaskState;
  previousState: TaskState;
  cause: ResumeCause;
  hadResumeInput: boolean;
  continueTranscript: boolean;
  resumedAt: string;
};

/** The parameters of the notification `tasks/statusUpdate` that reports a pause. */
export type PausedStatusUpdate = {
  taskId: string;
  state: PausedState;
  handle?: string;
  reason?: string;
  initiator: SuspensionInitiator;
  pausedAt: string;
  conditions: ResumeConditions | null;
  metadata?: Record<string, unknown>;
};

/** The notification, as a frame of a stream. */
export type TaskStatusUpdateNotification = {
  jsonrpc: "2.0";
  method: "tasks/statusUpdate";
  params: PausedStatusUpdate | ResumeTaskResponse;
};

/** What the metadata of a paused task has under `urn:adjourn:a2a:pause:v1`. */
export type PauseMetadata = {
  state: PausedState;
  handle?: string;
  reason?: string;
  initiator: SuspensionInitiator;
  pausedAt: string;
  conditions?: ResumeConditions;
  summary?: string;
  metadata?: Record<string, unknown>;
};

/** What the metadata of the event that reports a wake has there. */
export type WakeMetadata = {
  previousState: TaskState;
  cause: ResumeCause;
  hadResumeInput: boolean;
  continueTranscript: boolean;
  resumedAt: string;
};

/** What the metadata of a paused task has under `harn.pause`; deprecated. */
export type HarnPause = {
  state: PausedState;
  reason?: string;
  initiator: SuspensionInitiator;
  handle?: string;
  conditions?: Record<string, unknown>;
};

/** What the metadata of a message has under `harn.pause`, which pauses the task that the message names; `true` in its place pauses, too. Its conditions have snake_case names, and may be called `resume_when`; deprecated. */
export type HarnPauseRequest = {
  reason?: string | null;
  mode?: PauseMode | null;
  conditions?: Record<string, unknown> | null;
  resume_when?: Record<string, unknown> | null;
  grace_ms?: number | null;
};

/** What the `capabilities` of an agent card have; what is absent is not supported. An agent whose tasks cannot be paused names no causes. */
export type PauseFlags = {
  supportsPause: boolean;
  supportsAwaitResumption: boolean;
  resumeCauses?: ResumeCause[];
};

/** The same under `capabilities._meta.harn.pause`; deprecated. */
export type HarnPauseCapabilities = {
  supports_pause: boolean;
  supports_await_resumption: boolean;
  resume_causes: ResumeCause[];
};

/** The `params` of `urn:adjourn:a2a:pause:v1` on an agent card. */
export type PauseCapabilities = {
  supportsPause: boolean;
  supportsAwaitResumption: boolean;
  resumeCauses: ResumeCause[];
  modes: PauseMode[];
  methods: Record<string, unknown>;
  pausedStates: string;
  caller?: Record<string, unknown>;
};

/** The one entry of `error.data`; the message begins with its reason. */
export type ErrorInfo = {
  "@type": "type.googleapis.com/google.rpc.ErrorInfo";
  reason: string;
  domain: string;
  metadata: Record<string, unknown>;
};

/** Why a request about pauses is refused. */
export type PauseError =
  /** A parameter is missing or malformed. */
  | { code: -32602; message: string; data: [ErrorInfo & { reason: "INVALID_PARAMS" | "EMPTY_REPLY" }] }
  /** Tasks of this agent cannot be paused. */
  | { code: -32601; message: string; data: [ErrorInfo & { reason: "METHOD_NOT_FOUND" }] }
  /** There is no such task (the names of the proposal); or the task does not take a message as it stands, or not the pause that a message asks for. */
  | { code: -32004; message: string; data: [ErrorInfo & { reason: "TASK_NOT_FOUND" | "TASK_PAUSED" | "TASK_BUSY" | "TASK_NOT_PAUSABLE" | "TASK_NOT_PAUSED" | "ALREADY_RESUMED" | "BUDGET_NOT_RAISED" | "CONDITIONS_DIFFER" | "DUPLICATE_MESSAGE" | "ENDED" | "GATED" | "SUSPENSION_HANDLE_MISMATCH" | "UNSUPPORTED_OPERATION" | "WITHDRAWN" }] }
  /** There is no such task (aliases and REST). */
  | { code: -32001; message: string; data: [ErrorInfo & { reason: "TASK_NOT_FOUND" }] }
  /** The state of the task does not allow it. */
  | { code: -32011; message: string; data: [ErrorInfo & { reason: "TASK_NOT_PAUSABLE" | "TASK_NOT_PAUSED" | "TASK_PAUSED" | "TASK_BUSY" | "ALREADY_RESUMED" | "BUDGET_NOT_RAISED" | "CONDITIONS_DIFFER" | "ENDED" | "GATED" | "HELD" | "IDEMPOTENCY_KEY_REUSED" | "LIMIT_REACHED" | "STOPPING" | "WITHDRAWN" }] }
  /** The handle is not that of the pause. */
  | { code: -32012; message: string; data: [ErrorInfo & { reason: "SUSPENSION_HANDLE_MISMATCH" | "HANDLE_REQUIRED" }] }
  /** The token does not allow it; over HTTP with the status 403. */
  | { code: -32050; message: string; data: [ErrorInfo & { reason: "PERMISSION_DENIED" }] }
  /** The agent cannot do it now: its store or its host failed, and its log says why. */
  | { code: -32603; message: string; data: [ErrorInfo & { reason: "INTERNAL" }] };
