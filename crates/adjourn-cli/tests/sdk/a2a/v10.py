"""a2a-sdk 1.x as a client: python v10.py URL BINDING. Prints what it was told, as JSON."""

import asyncio
import json
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict, ParseDict
from raw import Pauses, Raw, Receiver, pause_of


def message(text, **about):
    return pb.Message(
        message_id=str(uuid.uuid4()), role=pb.ROLE_USER, parts=[pb.Part(text=text)], **about
    )


async def main(url, binding):
    async with httpx.AsyncClient(timeout=60) as http:
        card = await A2ACardResolver(http, url).get_agent_card()

        def connect(**config):
            config = ClientConfig(
                httpx_client=http,
                supported_protocol_bindings=[binding],
                use_client_preference=True,
                **config,
            )
            return ClientFactory(config).create(card)

        client = connect()
        raw = Raw(http, f"{url}/a2a")
        pauses, states, task = Pauses(raw), [], None

        async def told(request):
            nonlocal task
            async for event in client.send_message(pb.SendMessageRequest(message=request)):
                if event.HasField("task"):
                    task, shown = event.task, event.task
                elif event.HasField("status_update"):
                    shown = event.status_update
                else:
                    continue
                states.append(pb.TaskState.Name(shown.status.state))
                pauses.look(task.id, MessageToDict(shown.metadata))

        await told(message("merge it"))
        await pauses.waking
        asked = states[-1]
        await told(message("yes", task_id=task.id, context_id=task.context_id))
        done = await client.get_task(pb.GetTaskRequest(id=task.id))

        # Another task, which is watched while it is paused, resumed and canceled.
        whole = connect(streaming=False)
        async for event in whole.send_message(pb.SendMessageRequest(message=message("x"))):
            sent = event.task
        receiver = Receiver()
        about = pb.AuthenticationInfo(scheme="Bearer", credentials="s3cret")
        push = await client.create_task_push_notification_config(
            pb.TaskPushNotificationConfig(
                task_id=sent.id, url=receiver.url, token="t0ken", authentication=about
            )
        )
        named = {"task_id": sent.id, "id": push.id}
        got = await client.get_task_push_notification_config(
            pb.GetTaskPushNotificationConfigRequest(**named)
        )
        assert got == push, (got, push)
        watched = []

        async def watch(begun):
            async for event in client.subscribe(pb.SubscribeToTaskRequest(id=sent.id)):
                kind = event.WhichOneof("payload")
                shown = getattr(event, kind)
                state = pb.TaskState.Name(shown.status.state)
                watched.append([kind, state, pause_of(MessageToDict(shown.metadata))])
                begun.set()

        begun = asyncio.Event()
        watching = asyncio.create_task(watch(begun))
        await begun.wait()
        await raw.pause_and_lift(sent.id)
        canceled = await client.cancel_task(pb.CancelTaskRequest(id=sent.id))
        await watching

        def is_canceled(body):
            event = ParseDict(body, pb.StreamResponse(), ignore_unknown_fields=True)
            return event.status_update.status.state == pb.TASK_STATE_CANCELED

        headers = await receiver.until(is_canceled)
        await client.delete_task_push_notification_config(
            pb.DeleteTaskPushNotificationConfigRequest(**named)
        )
        left = await client.list_task_push_notification_configs(
            pb.ListTaskPushNotificationConfigsRequest(task_id=sent.id)
        )
        listed = await client.list_tasks(pb.ListTasksRequest(page_size=1))
        try:
            await client.get_task(pb.GetTaskRequest(id="nope"))
        except Exception as error:
            unknown = type(error).__name__
        print(
            json.dumps(
                {
                    "card": card.name,
                    "paused": sorted(set(pauses.seen)),
                    "asked": asked,
                    "done": pb.TaskState.Name(done.status.state),
                    "said": done.artifacts[-1].parts[0].text,
                    "canceled": pb.TaskState.Name(canceled.status.state),
                    "watched": watched,
                    "pushed": [headers["authorization"], headers["x-a2a-notification-token"]],
                    "receivers": len(left.configs),
                    "listed": [len(listed.tasks), bool(listed.next_page_token)],
                    "unknown": unknown,
                }
            )
        )


asyncio.run(main(*sys.argv[1:]))
