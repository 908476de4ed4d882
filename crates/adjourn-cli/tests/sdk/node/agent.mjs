// The agent in a process of its own, and everything that passes between it and the SDK.
//
// What the agent writes is noted before the SDK sees it, and what the SDK hands on is noted by the
// client. The report has both: whoever reads it can tell what the SDK dropped or changed.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import path from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

/** How long something may take that should take no time. */
const PATIENCE_MS = 20_000;
/** How long a scenario may take: not for ever, whatever is not answered. */
const SCENARIO_MS = 50_000;

const { ADJOURN, SCRIPT, SDK_CLIENTS } = process.env;

const installed = createRequire(path.join(SDK_CLIENTS, "node", "package.json"));

/** Loads an entry of the SDK from where `make sdk-clients` has put it. */
export async function sdk(entry) {
  return await import(pathToFileURL(installed.resolve(entry)));
}

const report = { connections: [], logged: [] };

for (const level of ["error", "warn", "info", "log", "debug"]) {
  console[level] = (...words) => report.logged.push([level, ...words]);
}

/** Runs one of the scenarios, the one that was asked for, and prints what passed. */
export async function run(scenarios) {
  const late = setTimeout(() => {
    process.stderr.write("the scenario takes for ever\n");
    process.exit(1);
  }, SCENARIO_MS);
  await scenarios[process.argv[2]]();
  clearTimeout(late);
  process.stdout.write(JSON.stringify(report) + "\n");
}

/** Runs a command of the program, as somebody in another terminal would. */
export function adjourn(...args) {
  return execFileSync(ADJOURN, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** A connection of the SDK to an agent. */
export class Client {
  /** The updates that the SDK handed on. */
  handled = [];
  /** The requests of the agent's that the SDK handed on. */
  asked = [];
  #waiting = [];

  constructor({ client, ndJsonStream }, handlers = {}) {
    this.process = spawn(ADJOURN, ["acp", "--script", SCRIPT]);
    const written = [];
    const noted = new TransformStream({
      transform(chunk, controller) {
        written.push(Buffer.from(chunk));
        controller.enqueue(chunk);
      },
    });
    const talk = [];
    this.process.stderr.on("data", (chunk) => talk.push(chunk));
    const input = Readable.toWeb(this.process.stdout).pipeThrough(noted);
    const stream = ndJsonStream(Writable.toWeb(this.process.stdin), input);
    const app = client({ name: "editor" });
    app.onNotification("session/update", ({ params }) => {
      this.handled.push(params);
      this.#look();
    });
    for (const [method, { parse, answer }] of Object.entries(handlers)) {
      const handle = ({ params, signal }) => {
        this.asked.push({ method, params });
        this.#look();
        return answer(params, signal);
      };
      parse ? app.onRequest(method, parse, handle) : app.onRequest(method, handle);
    }
    this.connection = app.connect(stream);
    this.lines = () => Buffer.concat(written).toString("utf8").split("\n").filter(Boolean);
    this.talk = () => Buffer.concat(talk).toString("utf8");
  }

  /** Sends a request. */
  request(method, params, options) {
    return this.connection.agent.request(method, params, options);
  }

  /** Sends a request that is refused, and returns the refusal. */
  async refused(method, params, options) {
    try {
      await this.request(method, params, options);
    } catch (error) {
      return error;
    }
    throw new Error(`${method} was not refused`);
  }

  /** Returns the updates that the SDK handed on. */
  get updates() {
    return this.handled.map(({ update }) => update);
  }

  /** Waits until something has been handed on. */
  async until(what, found) {
    return await new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        const seen = JSON.stringify([this.handled, this.asked], null, 1);
        reject(new Error(`never ${what}: ${seen}\n${this.talk()}`));
      }, PATIENCE_MS);
      this.#waiting.push({
        found,
        resolve: (value) => {
          clearTimeout(late);
          resolve(value);
        },
      });
      this.#look();
    });
  }

  /** Waits for an update. */
  async update(what, wanted) {
    return await this.until(what, () => this.updates.find(wanted));
  }

  /**
   * Waits until everything that was written has been handed on.
   *
   * The SDK hands on each update in its own time; an answer may overtake them.
   */
  async caughtUp() {
    const isUpdate = (line) => JSON.parse(line).method === "session/update";
    const written = this.lines().filter(isUpdate).length;
    await this.until("caught up", () => this.handled.length >= written);
  }

  #look() {
    this.#waiting = this.#waiting.filter(({ found, resolve }) => {
      const value = found();
      if (value) resolve(value);
      return !value;
    });
  }

  /** Goes away as an editor does. */
  async close() {
    this.process.stdin.end();
    const [code] = await once(this.process, "exit");
    await this.connection.closed;
    report.connections.push({
      code,
      talk: this.talk(),
      wire: this.lines().map((line) => JSON.parse(line)),
      handled: this.handled,
      asked: this.asked,
    });
  }
}

/** The key of the extension, in `_meta`. */
export const EXTENSION = "adjourn/suspend";

/** Returns what an object says about the suspension. */
export const status = (object) => object?._meta?.[EXTENSION];

/** Something said. */
export const text = (words) => [{ type: "text", text: words }];

/** Returns whether an update has words. */
export const says = (words) => (update) => {
  const content = [update.content].flat();
  return content.some((block) => block?.text === words);
};
