// What both SDKs share: where they are, the pause, which they have no methods for, and the report.

import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

/** How long a client may take: not for ever, whatever is not answered. */
const PATIENCE_MS = 50_000;

const installed = createRequire(path.join(process.env.SDK_CLIENTS, "a2a", "node", "package.json"));

/** Loads an entry of an SDK from where `make sdk-clients` has put it. */
export async function sdk(entry) {
  return await import(pathToFileURL(installed.resolve(entry)));
}

/** Runs a client with what it was started with, and prints what it was told, as JSON. */
export async function run(client) {
  const late = setTimeout(() => {
    process.stderr.write("the client takes for ever\n");
    process.exit(1);
  }, PATIENCE_MS);
  const report = await client(...process.argv.slice(2));
  clearTimeout(late);
  process.stdout.write(JSON.stringify(report));
}

/** Plain JSON-RPC. */
export function raw(url) {
  return async (method, params) => {
    const response = await fetch(`${url}/a2a`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    });
    const answer = await response.json();
    if (answer.result === undefined) throw new Error(JSON.stringify(answer));
    return answer.result;
  };
}

/** The paused state that metadata tells of. */
export const pauseOf = (metadata) => metadata?.harn?.pause?.state ?? null;

/** Lays a hold over the agent's own wait, and lifts it. */
export async function pauseAndLift(call, taskId) {
  const paused = expect(await call("tasks/pause", { taskId, reason: "review" }), "paused-by-client");
  expect(await call("tasks/resume", { taskId, handle: paused.handle }), "paused-by-agent");
}

function expect(answer, state) {
  if (answer.state !== state) throw new Error(`expected ${state}: ${JSON.stringify(answer)}`);
  return answer;
}

/** The pauses that a client is told of in metadata; the first one is held, lifted and ended. */
export class Pauses {
  constructor(call) {
    this.call = call;
    this.seen = new Set();
    this.waking = undefined;
  }

  look(task, metadata) {
    const pause = pauseOf(metadata);
    if (pause) {
      this.seen.add(pause);
      this.waking ??= this.pauseAndWake(task);
    }
  }

  async pauseAndWake(taskId) {
    await pauseAndLift(this.call, taskId);
    expect(await this.call("tasks/resume", { taskId, input: "ci is green" }), "working");
  }
}
