// `@agentclientprotocol/sdk`, the draft of version 2 of the protocol, as a client of `adjourn acp`.

import assert from "node:assert/strict";
import { Client, EXTENSION, adjourn, run, says, sdk, status, text } from "./agent.mjs";

const acp = await sdk("@agentclientprotocol/sdk/experimental/v2");
// Only this entry checks what `session/status` answers.
const unstable = await sdk("@agentclientprotocol/sdk/experimental/v2/unstable");

/** Connects, and says what the client can do. */
async function connect(capabilities, handlers, entry = acp) {
  const client = new Client(entry, handlers);
  const agent = await client.request("initialize", {
    protocolVersion: entry.PROTOCOL_VERSION,
    capabilities,
    info: { name: "editor", version: "1.0" },
  });
  assert.equal(agent.protocolVersion, 2);
  assert.equal(status(agent.capabilities.session).version, 1, "the extension is announced");
  return client;
}

const knowsExtension = { _meta: { [EXTENSION]: {} } };

async function newSession(client) {
  return (await client.request("session/new", { cwd: "/tmp", mcpServers: [] })).sessionId;
}

async function prompt(client, sessionId, words) {
  const { messageId } = await client.request("session/prompt", { sessionId, prompt: text(words) });
  const said = await client.update("said", (update) => update.messageId === messageId);
  assert.equal(said.sessionUpdate, "user_message");
}

/** Replays a session on a connection of its own, and returns the words in it. */
async function load(capabilities, sessionId) {
  const client = await connect(capabilities);
  const replayFrom = { type: "start" };
  await client.request("session/resume", { sessionId, cwd: "/tmp", mcpServers: [], replayFrom });
  await client.caughtUp();
  const told = client.updates.filter(({ title }) => title === undefined);
  assert.equal(told.at(-1).sessionUpdate, "state_update", "the state comes last, but for the title");
  const words = client.updates
    .filter(({ sessionUpdate }) => sessionUpdate.endsWith("_message"))
    .map(({ content }) => content[0].text);
  await client.close();
  return words;
}

const isState = (state) => (update) => update.state === state;
const isEnd = (update) => update.state === "idle" && update.stopReason === "end_turn";

/** Suspends in the middle of a call, asks after the session, and wakes it with a value. */
async function suspend(capabilities, method) {
  const client = await connect(capabilities, {}, unstable);
  const sessionId = await newSession(client);
  await prompt(client, sessionId, "go");
  await client.update("in progress", (update) => update.status === "in_progress");
  const suspended = await client.request(method, { sessionId, reason: "review" });
  const parked = await client.update("parked", (update) => update.stopReason === "_suspended");
  assert.equal(status(parked).handle, suspended.handle);
  const asked = await client.request("session/status", { sessionId });
  assert.equal(asked.status, "open");
  assert.equal(status(asked).state, "suspended");
  const listed = await client.request("session/list", {});
  assert.equal(status(listed.sessions[0]).handle, suspended.handle);
  const resume = {
    sessionId, cwd: "/tmp", mcpServers: [],
    _meta: { [EXTENSION]: { handle: suspended.handle, input: "looks fine" } },
  };
  await client.request("session/resume", resume);
  await client.update("built", says("built"));
  await client.update("idle", isEnd);
  const again = await client.refused("session/resume", resume);
  assert.equal(again.code, 4003);
  assert.equal(again.data.reason, "ALREADY_RESUMED");
  await client.request("session/close", { sessionId });
  await client.close();
  const words = await load(capabilities, sessionId);
  assert.deepEqual(words, ["go", "building", "looks fine", "built"]);
  return client;
}

await run({
  async suspends() {
    const client = await suspend(knowsExtension, "_session/suspend");
    assert(client.updates.some(isState("_suspended")));
  },

  async streams() {
    const client = await connect({});
    const sessionId = await newSession(client);
    await prompt(client, sessionId, "go");
    await client.update("idle", isEnd);
    const kinds = client.updates.map(({ sessionUpdate }) => sessionUpdate);
    assert(kinds.includes("agent_message_chunk") && kinds.includes("agent_thought_chunk"));
    await client.close();
    await load({}, sessionId);
  },

  // Version 2 hands on what it does not know, so that the proposal's own words arrive.
  async bare() {
    const client = await suspend({}, "session/suspend");
    const kinds = client.updates.map(({ sessionUpdate }) => sessionUpdate);
    assert(kinds.indexOf("suspended") < kinds.indexOf("resumed"));
  },

  async parks() {
    const answer = () => ({ handle: "mine", suspendedAt: "2026-11-15T10:00:00Z" });
    const client = await connect(knowsExtension, {
      "_session/await_resumption": { parse: (params) => params, answer },
    });
    const sessionId = await newSession(client);
    await prompt(client, sessionId, "go");
    const parked = await client.update("parked", isState("_suspended"));
    const call = client.updates.find((update) => update.status === "paused");
    assert.deepEqual(parked.background, [{ type: "tool_call", toolCallId: call.toolCallId }]);
    const { params } = await client.until("asked", () => client.asked[0]);
    assert.equal(params.reason, "waiting on ci");
    adjourn("event", "ci.passed");
    await client.update("done", says("done"));
    await client.update("idle", isEnd);
    await client.close();
  },

  async asks() {
    const answer = () => ({ action: "accept", content: { answer: "monthly" } });
    const client = await connect(
      { elicitation: { form: {} } },
      { "elicitation/create": { answer } },
    );
    const sessionId = await newSession(client);
    await prompt(client, sessionId, "go");
    await client.update("question", isState("requires_action"));
    const { params } = await client.until("asked", () => client.asked[0]);
    assert.deepEqual(params.requestedSchema.properties.answer.enum, ["raw", "monthly"]);
    await client.update("done", says("done"));
    await client.update("idle", isEnd);
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
    await prompt(client, sessionId, "go");
    await client.until("asked", () => client.asked[0]);
    adjourn("prompt", sessionId, "monthly", "--detach");
    await client.update("done", says("done"));
    await client.update("idle", isEnd);
    await client.close();
  },

  // What is asked for is allowed the first time, and refused the second.
  async permits() {
    const options = ["allow", "reject"];
    const answer = () => ({ outcome: { outcome: "selected", optionId: options.shift() } });
    const client = await connect({}, { "session/request_permission": { answer } });
    for (const ending of ["completed", "failed"]) {
      const sessionId = await newSession(client);
      await prompt(client, sessionId, "go");
      const { params } = await client.until("asked", () => {
        return client.asked.find(({ params }) => params.sessionId === sessionId);
      });
      const kinds = params.options.map(({ kind }) => kind);
      assert.deepEqual(kinds, ["allow_once", "allow_always", "reject_once"]);
      const { toolCallId } = params.subject.toolCall;
      await client.update(ending, (update) => {
        return update.toolCallId === toolCallId && update.status === ending;
      });
      await client.until("idle", () => {
        const ends = client.handled.filter(({ sessionId: id }) => id === sessionId);
        return ends.some(({ update }) => isEnd(update));
      });
    }
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
    await prompt(client, sessionId, "go");
    await client.until("asked", () => client.asked[0]);
    await client.update("waits", isState("requires_action"));
    adjourn("suspend", sessionId);
    await client.update("parked", (update) => update.stopReason === "_suspended");
    adjourn("resume", sessionId, "--detach");
    await client.update("over", says("over"));
    await client.update("idle", isEnd);
    assert.equal(client.asked.length, 2);
    await client.close();
  },

  async today() {
    const client = await connect({});
    const sessionId = await newSession(client);
    await prompt(client, sessionId, "go");
    const question = "which table?\n\ntwo match\n- raw\n- monthly";
    await client.update("asked", says(question));
    await client.update("question", isState("requires_action"));
    await prompt(client, sessionId, "monthly");
    const parked = await client.update("parked", (update) => update.stopReason === "_suspended");
    assert.equal(parked.state, "idle", "a state of the standard");
    assert.equal(status(parked).reason, "waiting on ci");
    adjourn("event", "ci.passed");
    await client.update("done", says("done"));
    await client.update("idle", isEnd);
    await client.close();
    const words = await load({}, sessionId);
    assert.deepEqual(words, ["go", question, "monthly", "done"]);
  },
});
