// `@a2a-js/sdk` 1.x as a client: node v10.mjs URL BINDING. Prints what it was told, as JSON.

import { randomUUID } from "node:crypto";
import { Pauses, pauseAndLift, pauseOf, raw, receiver, run, sdk } from "./told.mjs";

const { Role, TaskState } = await sdk("a2a-sdk-1.0");
const { ClientFactory, ClientFactoryOptions } = await sdk("a2a-sdk-1.0/client");

const message = (text, about = {}) => ({
  tenant: "",
  message: {
    messageId: randomUUID(),
    contextId: "",
    taskId: "",
    role: Role.ROLE_USER,
    parts: [{ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "" }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...about,
  },
  configuration: undefined,
  metadata: undefined,
});

const by = (id) => ({ tenant: "", id, historyLength: undefined, metadata: undefined });

await run(async (url, binding) => {
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    preferredTransports: [binding],
  });
  const client = await new ClientFactory(options).createFromUrl(url);
  const card = await client.getAgentCard();
  const call = raw(url);
  const pauses = new Pauses(call);
  const states = [];
  let task;

  const told = async (request) => {
    for await (const { payload } of client.sendMessageStream(request)) {
      if (payload.$case === "task") task = payload.value;
      if (payload.$case === "task" || payload.$case === "statusUpdate") {
        states.push(TaskState[payload.value.status.state]);
        pauses.look(task.id, payload.value.metadata);
      }
    }
  };

  await told(message("merge it"));
  await pauses.waking;
  const asked = states.at(-1);
  await told(message("yes", { taskId: task.id, contextId: task.contextId }));
  const done = await client.getTask(by(task.id));

  // Another task, which is watched while it is paused, resumed and canceled.
  const sent = await client.sendMessage(message("x"));
  const other = sent.payload?.value ?? sent;
  const hook = await receiver();
  const authentication = { scheme: "Bearer", credentials: "s3cret" };
  const named = { tenant: "", taskId: other.id, id: "hook" };
  await client.createTaskPushNotificationConfig({ ...named, url: hook.url, token: "t0ken", authentication });
  const set = await client.getTaskPushNotificationConfig(named);
  const watched = [];
  let moving;
  const move = async () => {
    await pauseAndLift(call, other.id);
    return await client.cancelTask(by(other.id));
  };
  for await (const { payload } of client.resubscribeTask(by(other.id))) {
    const { status, metadata } = payload.value;
    watched.push([payload.$case, TaskState[status.state], pauseOf(metadata)]);
    moving ??= move();
  }
  const canceled = await moving;
  const pushed = await hook.until((body) => body.statusUpdate?.status.state === "TASK_STATE_CANCELED");
  await client.deleteTaskPushNotificationConfig(named);
  const left = await client.listTaskPushNotificationConfig({ tenant: "", taskId: other.id, pageSize: 0, pageToken: "" });
  const listed = await client.listTasks({ tenant: "", contextId: "", status: 0, pageToken: "", pageSize: 1 });
  const unknown = await client.getTask(by("nope")).then(() => "found", (error) => error.constructor.name);
  return {
    card: card.name,
    transport: client.transport.protocolName,
    paused: [...pauses.seen].sort(),
    asked,
    done: TaskState[done.status.state],
    said: done.artifacts.at(-1).parts[0].content.value,
    canceled: TaskState[canceled.status.state],
    watched,
    pushed,
    receivers: [set.id, left.configs.length],
    listed: [listed.tasks.length, listed.nextPageToken !== ""],
    unknown,
  };
});
