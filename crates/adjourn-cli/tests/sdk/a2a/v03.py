"""a2a-sdk 0.3 as a client: python v03.py URL BINDING. Prints what it was told, as JSON."""

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
from raw import Pauses, Raw, Receiver, pause_of


def message(text, **about):
    return Message(
        message_id=str(uuid.uuid4()), role=Role.user, parts=[Part(root=TextPart(text=text))], **about
    )


def code(error):
    """The code of an error; over HTTP+JSON this SDK tells only the status."""
    return getattr(error, "status_code", None) or error.error.code


async def main(url, binding):
    async with httpx.AsyncClient(timeout=60) as http:
        card = await A2ACardResolver(http, url).get_agent_card()

        def connect(**config):
            config = ClientConfig(
                httpx_client=http,
                supported_transports=[binding],
                use_client_preference=True,
                **config,
            )
            return ClientFactory(config).create(card)

        client = connect()
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

        # Another task, which is watched while it is paused, resumed and canceled.
        async for shown, _ in connect(streaming=False).send_message(message("x")):
            sent = shown
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
            async for shown, update in client.resubscribe(TaskIdParams(id=sent.id)):
                event = update or shown
                watched.append([event.kind, event.status.state.value, pause_of(event.metadata)])
                begun.set()

        begun = asyncio.Event()
        watching = asyncio.create_task(watch(begun))
        await begun.wait()
        await raw.pause_and_lift(sent.id)
        canceled = await client.cancel_task(TaskIdParams(id=sent.id))
        await watching
        headers = await receiver.until(
            lambda body: Task.model_validate(body).status.state.value == "canceled"
        )
        try:
            await client.get_task(TaskQueryParams(id="nope"))
        except Exception as error:
            unknown = code(error)
        print(
            json.dumps(
                {
                    "card": card.name,
                    "transport": type(client._transport).__name__,
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
