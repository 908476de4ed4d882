// `@a2a-js/sdk` 0.3 as a client: node v03.mjs URL BINDING. Prints what it was told, as JSON.

import { randomUUID } from "node:crypto";
import { Pauses, pauseAndLift, pauseOf, raw, receiver, run, sdk } from "./told.mjs";

const { ClientFactory, ClientFactoryOptions } = await sdk("a2a-sdk-0.3/client");

const message = (text, about = {}) => ({
  message: {
    kind: "message",
    messageId: randomUUID(),
    role: "user",
    parts: [{ kind: "text", text }],
    ...about,
  },
});

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
    for await (const event of client.sendMessageStream(request)) {
      if (event.kind === "task") task = event;
      if (event.kind === "task" || event.kind === "status-update") {
        states.push(event.status.state);
        pauses.look(task.id, event.metadata);
      }
    }
  };

  await told(message("merge it"));
  await pauses.waking;
  const asked = states.at(-1);
  await told(message("yes", { taskId: task.id, contextId: task.contextId }));
  const done = await client.getTask({ id: task.id });

  // Another task, which is watched while it is paused, resumed and canceled.
  const other = await client.sendMessage(message("x"));
  const hook = await receiver();
  const authentication = { schemes: ["Bearer"], credentials: "s3cret" };
  const pushNotificationConfig = { id: "hook", url: hook.url, token: "t0ken", authentication };
  await client.setTaskPushNotificationConfig({ taskId: other.id, pushNotificationConfig });
  const named = { id: other.id, pushNotificationConfigId: "hook" };
  const set = await client.getTaskPushNotificationConfig(named);
  const watched = [];
  let moving;
  const move = async () => {
    await pauseAndLift(call, other.id);
    return await client.cancelTask({ id: other.id });
  };
  for await (const event of client.resubscribeTask({ id: other.id })) {
    watched.push([event.kind, event.status.state, pauseOf(event.metadata)]);
    moving ??= move();
  }
  const canceled = await moving;
  const pushed = await hook.until((body) => body.status.state === "canceled");
  await client.deleteTaskPushNotificationConfig(named);
  const left = await client.listTaskPushNotificationConfig({ id: other.id });
  const unknown = await client.getTask({ id: "nope" }).then(() => "found", (error) => error.constructor.name);
  return {
    card: card.name,
    transport: client.transport.constructor.name,
    paused: [...pauses.seen].sort(),
    asked,
    done: done.status.state,
    said: done.artifacts.at(-1).parts[0].text,
    canceled: canceled.status.state,
    watched,
    pushed,
    receivers: [set.pushNotificationConfig.id, left.length],
    unknown,
  };
});
