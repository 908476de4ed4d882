// Pausing tasks over A2A: see ../a2a-pause.md.

import type { ResumeConditions, SuspensionInitiator } from "./suspend";

/** How soon a pause takes effect. */
export type PauseMode = "finish_step" | "interrupt_immediate" | "wait_for_completion";

/** The two states of a paused task. */
export type PausedState = "paused-by-client" | "paused-by-agent";

/** Every state that a task can be in. */
export type TaskState = "working" | "input-required" | "auth-required" | "completed" | "canceled" | "failed" | "rejected" | "paused-by-client" | "paused-by-agent";

/** Why a task was woken. */
export type ResumeCause = "explicit_resume" | "condition_fired" | "timeout" | "external_event";

/** The parameters of `tasks/pause`, and of `PauseTask`. */
export type PauseTaskRequest = {
  taskId: string;
  reason?: string;
  mode?: PauseMode;
  conditions?: ResumeConditions;
  graceMs?: number;
  metadata?: Record<string, unknown>;
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
};

/** The parameters of `tasks/await_resumption`, and of `AwaitTaskResumption`. */
export type AwaitTaskResumptionRequest = {
  taskId: string;
  reason: string;
  conditions?: ResumeConditions;
  summary?: string;
  metadata?: Record<string, unknown>;
};

/** The parameters of `tasks/resume`, and of `ResumeTask`. */
export type ResumeTaskRequest = {
  taskId: string;
  handle?: string;
  input?: unknown;
  continueTranscript?: boolean;
  idempotencyKey?: string;
  addBudget?: AddBudget;
  metadata?: Record<string, unknown>;
};

/** What is added to the budget of a task that has used it up. */
export type AddBudget = {
  usd?: number;
  tokens?: number;
  steps?: number;
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
