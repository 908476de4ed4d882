"""a2a-sdk 0.3 as a client: python v03.py URL. Prints what it was told, as JSON."""

import asyncio
import json
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationAuthenticationInfo,
    PushNotificationConfig,
    Role,
    Task,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TextPart,
)
from raw import Pauses, Raw, Receiver


def message(text, **about):
    return Message(
        message_id=str(uuid.uuid4()), role=Role.user, parts=[Part(root=TextPart(text=text))], **about
    )


async def main(url):
    async with httpx.AsyncClient(timeout=60) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        client = ClientFactory(ClientConfig(httpx_client=http)).create(card)
        raw = Raw(http, f"{url}/a2a")
        pauses, states, task = Pauses(raw), [], None

        async def told(request):
            nonlocal task
            async for shown, update in client.send_message(request):
                task = shown
                states.append(shown.status.state.value)
                pauses.look(task.id, getattr(update, "metadata", None) or shown.metadata)

        await told(message("merge it"))
        await pauses.waking
        asked = states[-1]
        await told(message("yes", task_id=task.id, context_id=task.context_id))
        done = await client.get_task(TaskQueryParams(id=task.id))

        # Another task, which is watched while it is paused, and canceled.
        whole = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
        async for shown, _ in whole.send_message(message("x")):
            sent = shown
        await raw.call("tasks/pause", {"taskId": sent.id})
        receiver = Receiver()
        about = PushNotificationAuthenticationInfo(schemes=["Bearer"], credentials="s3cret")
        config = PushNotificationConfig(url=receiver.url, token="t0ken", authentication=about)
        push = await client.set_task_callback(
            TaskPushNotificationConfig(task_id=sent.id, push_notification_config=config)
        )
        got = await client.get_task_callback(
            GetTaskPushNotificationConfigParams(
                id=sent.id, push_notification_config_id=push.push_notification_config.id
            )
        )
        assert got == push, (got, push)
        watched = []

        async def watch(begun):
            async for _, update in client.resubscribe(TaskIdParams(id=sent.id)):
                watched.append("task" if update is None else update.kind)
                begun.set()

        begun = asyncio.Event()
        watching = asyncio.create_task(watch(begun))
        await begun.wait()
        canceled = await client.cancel_task(TaskIdParams(id=sent.id))
        await watching
        headers = await receiver.until(
            lambda body: Task.model_validate(body).status.state.value == "canceled"
        )
        try:
            await client.get_task(TaskQueryParams(id="nope"))
        except Exception as error:
            unknown = error.error.code
        print(
            json.dumps(
                {
                    "card": card.name,
                    "paused": sorted(set(pauses.seen)),
                    "asked": asked,
                    "done": done.status.state.value,
                    "said": done.artifacts[-1].parts[0].root.text,
                    "canceled": canceled.status.state.value,
                    "watched": watched,
                    "pushed": [headers["authorization"], headers["x-a2a-notification-token"]],
                    "unknown": unknown,
                }
            )
        )


asyncio.run(main(*sys.argv[1:]))
