"""`agent-client-protocol` from PyPI, version 1 of the protocol, as a client of `adjourn acp`.

What the agent writes is noted before the SDK sees it, and what the SDK hands on is noted by the
client. The report has both: whoever reads it can tell what the SDK dropped or changed.
"""

import asyncio
import json
import logging
import os
import subprocess
import sys
import warnings
from contextlib import asynccontextmanager

import acp
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ClientCapabilities,
    Implementation,
    RequestPermissionResponse,
    TextContentBlock,
)

# How long something may take that should take no time, in seconds.
PATIENCE = 20
# How long a scenario may take: not for ever, whatever is not answered.
SCENARIO = 50
# The key of the extension, in `_meta`.
EXTENSION = "adjourn/suspend"
KNOWS_EXTENSION = {"_meta": {EXTENSION: {}}}

report = {"connections": [], "logged": []}


class Logged(logging.Handler):
    """Notes what the SDK logs, of every level."""

    def emit(self, record):
        report["logged"].append([record.levelname, self.format(record)])


def spelled(model):
    """Returns a model as it is on the wire."""
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


def status(thing):
    """Returns what an object says about the suspension."""
    meta = thing.get("_meta") if isinstance(thing, dict) else thing.field_meta
    return (meta or {}).get(EXTENSION, {})


def adjourn(*arguments):
    """Runs a command of the program, as somebody in another terminal would."""
    command = [os.environ["ADJOURN"], *arguments]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)


async def answered(answer):
    """Returns an answer, when there is one."""
    return await answer if asyncio.isfuture(answer) else answer


class Client:
    """What the SDK hands on."""

    def __init__(self, wire, answer=None):
        self.wire = wire
        self.handled = []
        self.asked = []
        self.answer = answer
        self.changed = asyncio.Condition()

    async def note(self, where, what):
        async with self.changed:
            where.append(what)
            self.changed.notify_all()

    async def session_update(self, session_id, update, **meta):
        params = {"sessionId": session_id, "update": spelled(update)}
        await self.note(self.handled, params | ({"_meta": meta} if meta else {}))

    async def create_elicitation(self, message, mode, **meta):
        # The SDK tells the mode by the class of its fields, and sets all of them.
        fields = {name: value for name, value in spelled(mode).items() if value is not None}
        params = {"mode": "form", "message": message, **fields}
        assert not meta
        await self.note(self.asked, {"method": "elicitation/create", "params": params})
        return await answered(self.answer)

    async def request_permission(self, session_id, tool_call, options, **meta):
        params = {
            "sessionId": session_id,
            "toolCall": spelled(tool_call),
            "options": [spelled(option) for option in options],
        }
        assert not meta
        await self.note(self.asked, {"method": "session/request_permission", "params": params})
        return await answered(self.answer.pop(0))

    async def ext_method(self, method, params):
        await self.note(self.asked, {"method": f"_{method}", "params": params})
        return self.answer

    @property
    def updates(self):
        return [params["update"] for params in self.handled]

    async def until(self, what, found):
        """Waits until something has been handed on."""
        try:
            async with self.changed:
                await asyncio.wait_for(self.changed.wait_for(found), PATIENCE)
        except asyncio.TimeoutError:
            raise AssertionError(f"never {what}: {self.handled} {self.asked}") from None
        return found()

    async def update(self, what, wanted):
        """Waits for an update."""
        return await self.until(what, lambda: next(filter(wanted, self.updates), None))

    async def caught_up(self):
        """Waits until everything that was written has been handed on.

        The SDK hands on each update in a task of its own; an answer may overtake them.
        """
        written = sum(message.get("method") == "session/update" for message in self.wire)
        await self.until("caught up", lambda: len(self.handled) >= written)


def says(words):
    """Returns a test for an update that has words."""

    def wanted(update):
        content = update.get("content")
        return isinstance(content, dict) and content.get("text") == words

    return wanted


def is_idle(update):
    return status(update).get("state") == "idle"


@asynccontextmanager
async def connected(capabilities, answer=None):
    """An agent in a process of its own, and a client of the SDK that is connected to it."""
    command = [os.environ["ADJOURN"], "acp", "--script", os.environ["SCRIPT"]]
    pipe = asyncio.subprocess.PIPE
    agent = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    wire = []
    output = asyncio.StreamReader(limit=acp.core.DEFAULT_STDIO_BUFFER_LIMIT_BYTES)

    async def note():
        while line := await agent.stdout.readline():
            wire.append(json.loads(line))
            output.feed_data(line)
        output.feed_eof()

    noting = asyncio.create_task(note())
    client = Client(wire, answer)
    connection = acp.connect_to_agent(client, agent.stdin, output, use_unstable_protocol=True)
    introduced = await connection.initialize(
        acp.PROTOCOL_VERSION,
        ClientCapabilities.model_validate(capabilities),
        Implementation(name="editor", version="1.0"),
    )
    assert introduced.protocol_version == 1
    session_capabilities = introduced.agent_capabilities.session_capabilities
    assert status(session_capabilities)["version"] == 1, "the extension is announced"
    yield client, connection
    agent.stdin.close()
    talk = await agent.stderr.read()
    code = await agent.wait()
    await noting
    await connection.close()
    report["connections"].append(
        {
            "code": code,
            "talk": talk.decode(),
            "wire": wire,
            "handled": client.handled,
            "asked": client.asked,
        }
    )


async def new_session(connection):
    return (await connection.new_session(cwd="/tmp")).session_id


def prompt(connection, session, words):
    return connection.prompt(session, [TextContentBlock(type="text", text=words)])


async def load(capabilities, session):
    """Replays a session on a connection of its own, and returns the words in it."""
    async with connected(capabilities) as (client, connection):
        await connection.load_session(cwd="/tmp", session_id=session)
        await client.caught_up()
        said = [update for update in client.updates if "_message_chunk" in update["sessionUpdate"]]
        return [update["content"]["text"] for update in said]


async def suspends():
    async with connected(KNOWS_EXTENSION) as (client, connection):
        session = await new_session(connection)
        prompted = asyncio.create_task(prompt(connection, session, "go"))
        await client.update("in progress", lambda update: update.get("status") == "in_progress")
        suspend = {"sessionId": session, "reason": "review"}
        # The SDK sends methods of extensions only, with the underscore in front.
        suspended = await connection.ext_method("session/suspend", suspend)
        assert suspended["reason"] == "review"
        stopped = await prompted
        assert stopped.stop_reason == "end_turn"
        assert status(stopped)["handle"] == suspended["handle"]
        # No method of the SDK asks after a session; what it sends with can send any.
        asked = await connection._conn.send_request("session/status", {"sessionId": session})
        assert asked["status"] == "live"
        assert status(asked)["state"] == "suspended"
        listed = await connection.list_sessions()
        assert status(listed.sessions[0])["handle"] == suspended["handle"]
        fields = {EXTENSION: {"handle": suspended["handle"], "input": "looks fine"}}
        await connection.resume_session(session, "/tmp", **fields)
        await client.update("built", says("built"))
        await client.update("idle", is_idle)
        try:
            await connection.resume_session(session, "/tmp", **fields)
        except acp.RequestError as refused:
            assert refused.code == 4003, refused.code
            assert refused.data["reason"] == "ALREADY_RESUMED", refused.data
        else:
            raise AssertionError("it was resumed twice")
        await connection.close_session(session)
    words = await load(KNOWS_EXTENSION, session)
    assert words == ["go", "building", "looks fine", "built"], words


async def streams():
    async with connected({}) as (client, connection):
        session = await new_session(connection)
        await prompt(connection, session, "go")
    words = await load({}, session)
    assert "".join(words) == "goI look around. built", words


async def parks():
    answer = {"handle": "mine", "suspendedAt": "2026-11-15T10:00:00Z"}
    async with connected(KNOWS_EXTENSION, answer) as (client, connection):
        session = await new_session(connection)
        stopped = await prompt(connection, session, "go")
        assert status(stopped)["state"] == "suspended"
        await client.until("asked", lambda: client.asked)
        asked = client.asked[0]
        assert asked["method"] == "_session/await_resumption"
        assert status(asked["params"])["handle"] == status(stopped)["handle"]
        await asyncio.to_thread(adjourn, "event", "ci.passed")
        await client.update("done", says("done"))
        await client.update("idle", is_idle)


async def asks():
    answer = AcceptElicitationResponse(action="accept", content={"answer": "monthly"})
    async with connected({"elicitation": {"form": {}}}, answer) as (client, connection):
        session = await new_session(connection)
        await prompt(connection, session, "go")
        await client.until("asked", lambda: client.asked)
        schema = client.asked[0]["params"]["requestedSchema"]
        assert schema["properties"]["answer"]["enum"] == ["raw", "monthly"], schema
        await client.update("done", says("done"))


async def asks_elsewhere():
    late = asyncio.get_running_loop().create_future()
    async with connected({"elicitation": {"form": {}}}, late) as (client, connection):
        session = await new_session(connection)
        await prompt(connection, session, "go")
        await client.until("asked", lambda: client.asked)
        await asyncio.to_thread(adjourn, "prompt", session, "monthly", "--detach")
        await client.update("done", says("done"))
        # This answer comes too late to count.
        late.set_result(AcceptElicitationResponse(action="accept", content={"answer": "raw"}))
        # It is on its way before this is answered.
        listed = await connection.list_sessions()
        assert not status(listed.sessions[0]), "it stays idle"


def selected(option):
    """Returns the answer to a request for permission."""
    outcome = AllowedOutcome(outcome="selected", option_id=option)
    return RequestPermissionResponse(outcome=outcome)


async def permits():
    # What is asked for is allowed the first time, and refused the second.
    answers = [selected("allow"), selected("reject")]
    async with connected({}, answers) as (client, connection):
        for ending in ["completed", "failed"]:
            session = await new_session(connection)
            await prompt(connection, session, "go")
            params = client.asked[-1]["params"]
            assert params["sessionId"] == session, params
            kinds = [option["kind"] for option in params["options"]]
            assert kinds == ["allow_once", "allow_always", "reject_once"], kinds
            call = params["toolCall"]["toolCallId"]

            def ends(update):
                return update.get("toolCallId") == call and update.get("status") == ending

            await client.update(ending, ends)
        await client.caught_up()


async def permits_later():
    # A suspend takes the request back; whoever resumes is asked again.
    late = asyncio.get_running_loop().create_future()
    async with connected({}, [late, selected("allow")]) as (client, connection):
        session = await new_session(connection)
        prompted = asyncio.create_task(prompt(connection, session, "go"))
        await client.until("asked", lambda: client.asked)
        await asyncio.to_thread(adjourn, "suspend", session)
        assert status(await prompted)["state"] == "suspended"
        # This answer comes too late to count.
        late.set_result(selected("reject"))
        await asyncio.to_thread(adjourn, "resume", session, "--detach")
        await client.update("completed", lambda update: update.get("status") == "completed")
        await client.update("over", says("over"))
        assert len(client.asked) == 2, client.asked


async def today():
    async with connected({}) as (client, connection):
        session = await new_session(connection)
        await prompt(connection, session, "go")
        question = "which table?\n\ntwo match\n- raw\n- monthly"
        await client.update("asked", says(question))
        parked = await prompt(connection, session, "monthly")
        assert parked.stop_reason == "end_turn"
        assert status(parked)["reason"] == "waiting on ci"
        call = await client.update("shown", lambda update: update.get("title") == "waiting on ci")
        assert call["sessionUpdate"] == "tool_call", call
        await asyncio.to_thread(adjourn, "event", "ci.passed")

        def woken(update):
            changed = update["sessionUpdate"] == "tool_call_update"
            return changed and update["toolCallId"] == call["toolCallId"]

        await client.update("woken", woken)
        await client.update("done", says("done"))
    words = await load({}, session)
    assert words == ["go", question, "monthly", "done"], words


SCENARIOS = {
    "streams": streams,
    "suspends": suspends,
    "parks": parks,
    "asks": asks,
    "asksElsewhere": asks_elsewhere,
    "permits": permits,
    "permitsLater": permits_later,
    "today": today,
}

if __name__ == "__main__":
    warnings.simplefilter("always")
    logging.captureWarnings(True)
    logging.getLogger().addHandler(Logged())
    # The event loop talks of itself below this level.
    logging.getLogger().setLevel(logging.INFO)
    asyncio.run(asyncio.wait_for(SCENARIOS[sys.argv[1]](), SCENARIO))
    print(json.dumps(report))
