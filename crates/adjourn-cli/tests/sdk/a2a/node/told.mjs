// What both SDKs share: where they are, the pause, which they have no methods for, and the report.

import { createServer } from "node:http";
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

/** A receiver of push notifications on loopback, which waits for one that tells of a state. */
export async function receiver() {
  const received = [];
  let arrived = () => {};
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    received.push({ headers: request.headers, body: JSON.parse(body) });
    response.writeHead(204).end();
    arrived();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/hook`,
    async until(isLast) {
      for (;;) {
        const last = received.find(({ body }) => isLast(body));
        if (last) {
          server.closeAllConnections();
          server.close();
          return [last.headers.authorization, last.headers["x-a2a-notification-token"]];
        }
        await new Promise((resolve) => (arrived = resolve));
      }
    },
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
