// `@agentclientprotocol/sdk`, version 1 of the protocol, as a client of `adjourn acp`.

import assert from "node:assert/strict";
import { Client, EXTENSION, adjourn, run, says, sdk, status, text } from "./agent.mjs";

const acp = await sdk("@agentclientprotocol/sdk");

/** Connects, and says what the client can do. */
async function connect(capabilities, handlers) {
  const client = new Client(acp, handlers);
  const agent = await client.request("initialize", {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: capabilities,
    clientInfo: { name: "editor", version: "1.0" },
  });
  assert.equal(agent.protocolVersion, 1);
  const { sessionCapabilities } = agent.agentCapabilities;
  assert.equal(status(sessionCapabilities).version, 1, "the extension is announced");
  return client;
}

const knowsExtension = { _meta: { [EXTENSION]: {} } };

async function newSession(client) {
  return (await client.request("session/new", { cwd: "/tmp", mcpServers: [] })).sessionId;
}

/** Replays a session on a connection of its own, and returns the words in it. */
async function load(capabilities, sessionId) {
  const client = await connect(capabilities);
  await client.request("session/load", { sessionId, cwd: "/tmp", mcpServers: [] });
  await client.caughtUp();
  const words = client.updates
    .filter(({ sessionUpdate }) => sessionUpdate.endsWith("_message_chunk"))
    .map(({ content }) => content.text);
  await client.close();
  return words;
}

const isIdle = (update) => status(update)?.state === "idle";

await run({
  async suspends() {
    const client = await connect(knowsExtension);
    const sessionId = await newSession(client);
    const prompt = client.request("session/prompt", { sessionId, prompt: text("go") });
    await client.update("in progress", (update) => update.status === "in_progress");
    const suspended = await client.request("_session/suspend", { sessionId, reason: "review" });
    assert.equal(suspended.reason, "review");
    const stopped = await prompt;
    assert.equal(stopped.stopReason, "end_turn");
    assert.equal(status(stopped).handle, suspended.handle);
    const asked = await client.request("session/status", { sessionId });
    assert.equal(asked.status, "live");
    assert.equal(status(asked).state, "suspended");
    const listed = await client.request("session/list", {});
    assert.equal(status(listed.sessions[0]).handle, suspended.handle);
    const resume = {
      sessionId, cwd: "/tmp", mcpServers: [],
      _meta: { [EXTENSION]: { handle: suspended.handle, input: "looks fine" } },
    };
    await client.request("session/resume", resume);
    await client.update("built", says("built"));
    await client.update("idle", isIdle);
    const again = await client.refused("session/resume", resume);
    assert.equal(again.code, 4003);
    assert.equal(again.data.reason, "ALREADY_RESUMED");
    await client.request("session/close", { sessionId });
    await client.close();
    const words = await load(knowsExtension, sessionId);
    assert.deepEqual(words, ["go", "building", "looks fine", "built"]);
  },

  // Without the extension: everything that is told here is in the protocol.
  async streams() {
    const client = await connect({});
    const sessionId = await newSession(client);
    await client.request("session/prompt", { sessionId, prompt: text("go") });
    await client.close();
    const words = await load({}, sessionId);
    assert.equal(words.join(""), "goI look around. built");
  },

  async takesBack() {
    const client = await connect(knowsExtension);
    const sessionId = await newSession(client);
    const prompt = client.request("session/prompt", { sessionId, prompt: text("go") });
    await client.update("in progress", (update) => update.status === "in_progress");
    const taken = new AbortController();
    const options = { cancellationSignal: taken.signal };
    const refused = client.refused("_session/suspend", { sessionId }, options);
    await client.update("requested", (update) => status(update)?.phase === "requested");
    taken.abort();
    assert.equal((await refused).code, -32800);
    assert.equal((await prompt).stopReason, "end_turn");
    await client.update("built", says("built"));
    await client.close();
  },

  async parks() {
    const answer = () => ({ handle: "mine", suspendedAt: "2026-11-15T10:00:00Z" });
    const client = await connect(knowsExtension, {
      "_session/await_resumption": { parse: (params) => params, answer },
    });
    const sessionId = await newSession(client);
    const stopped = await client.request("session/prompt", { sessionId, prompt: text("go") });
    assert.equal(status(stopped).state, "suspended");
    const { params } = await client.until("asked", () => client.asked[0]);
    assert.equal(params.reason, "waiting on ci");
    assert.equal(status(params).handle, status(stopped).handle);
    adjourn("event", "ci.passed");
    await client.update("done", says("done"));
    await client.update("idle", isIdle);
    await client.close();
  },

  async asks() {
    const answer = () => ({ action: "accept", content: { answer: "monthly" } });
    const client = await connect(
      { elicitation: { form: {} } },
      { "elicitation/create": { answer } },
    );
    const sessionId = await newSession(client);
    await client.request("session/prompt", { sessionId, prompt: text("go") });
    const { params } = await client.until("asked", () => client.asked[0]);
    assert.deepEqual(params.requestedSchema.properties.answer.enum, ["raw", "monthly"]);
    await client.update("done", says("done"));
    await client.close();
  },

  async asksElsewhere() {
    const answer = (_, signal) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    const client = await connect(
      { elicitation: { form: {} } },
      { "elicitation/create": { answer } },
    );
    const sessionId = await newSession(client);
    await client.request("session/prompt", { sessionId, prompt: text("go") });
    await client.until("asked", () => client.asked[0]);
    adjourn("prompt", sessionId, "monthly", "--detach");
    await client.update("done", says("done"));
    await client.close();
  },

  // What is asked for is allowed the first time, and refused the second.
  async permits() {
    const options = ["allow", "reject"];
    const answer = () => ({ outcome: { outcome: "selected", optionId: options.shift() } });
    const client = await connect({}, { "session/request_permission": { answer } });
    for (const ending of ["completed", "failed"]) {
      const sessionId = await newSession(client);
      await client.request("session/prompt", { sessionId, prompt: text("go") });
      const { params } = client.asked.at(-1);
      assert.equal(params.sessionId, sessionId);
      const kinds = params.options.map(({ kind }) => kind);
      assert.deepEqual(kinds, ["allow_once", "allow_always", "reject_once"]);
      const { toolCallId } = params.toolCall;
      await client.update(ending, (update) => {
        return update.toolCallId === toolCallId && update.status === ending;
      });
    }
    await client.caughtUp();
    await client.close();
  },

  // A suspend takes the request back; whoever resumes is asked again.
  async permitsLater() {
    const answers = [
      (signal) => new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      }),
      () => ({ outcome: { outcome: "selected", optionId: "allow" } }),
    ];
    const answer = (_, signal) => answers.shift()(signal);
    const client = await connect({}, { "session/request_permission": { answer } });
    const sessionId = await newSession(client);
    const prompt = client.request("session/prompt", { sessionId, prompt: text("go") });
    await client.until("asked", () => client.asked[0]);
    adjourn("suspend", sessionId);
    assert.equal(status(await prompt).state, "suspended");
    adjourn("resume", sessionId, "--detach");
    await client.update("over", says("over"));
    assert.equal(client.asked.length, 2);
    await client.close();
  },

  async today() {
    const client = await connect({ session: { notices: {} } });
    const sessionId = await newSession(client);
    await client.request("session/prompt", { sessionId, prompt: text("go") });
    const question = "which table?\n\ntwo match\n- raw\n- monthly";
    await client.update("asked", says(question));
    const parked = await client.request("session/prompt", { sessionId, prompt: text("monthly") });
    assert.equal(parked.stopReason, "end_turn");
    assert.equal(status(parked).reason, "waiting on ci");
    await client.update("told", (update) => update.title === "Paused: waiting on ci");
    const call = await client.update("shown", (update) => update.title === "waiting on ci");
    assert.equal(call.sessionUpdate, "tool_call");
    adjourn("event", "ci.passed");
    await client.update("woken", (update) => {
      return update.toolCallId === call.toolCallId && update.sessionUpdate === "tool_call_update";
    });
    await client.update("done", says("done"));
    await client.close();
    const words = await load({}, sessionId);
    assert.deepEqual(words, ["go", question, "monthly", "done"]);
  },

  // The proposal's own method earns the proposal's own updates, which this SDK does not know.
  async bare() {
    const client = await connect({});
    const sessionId = await newSession(client);
    client.request("session/prompt", { sessionId, prompt: text("go") });
    await client.update("in progress", (update) => update.status === "in_progress");
    const { handle } = await client.request("session/suspend", { sessionId });
    const _meta = { [EXTENSION]: { handle } };
    await client.request("session/resume", { sessionId, cwd: "/tmp", mcpServers: [], _meta });
    await client.update("built", says("built"));
    await client.update("idle", isIdle);
    await client.close();
  },
});
