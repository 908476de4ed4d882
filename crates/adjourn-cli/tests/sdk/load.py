"""The SDK's example client, in a session that exists: `load.py AGENT SESSION`."""

import asyncio
import os
import sys

from acp import PROTOCOL_VERSION, spawn_agent_process
from client import ExampleClient, interactive_loop


async def main(agent: str, session: str) -> None:
    async with spawn_agent_process(ExampleClient(), agent) as (connection, _process):
        await connection.initialize(protocol_version=PROTOCOL_VERSION)
        await connection.load_session(cwd=os.getcwd(), session_id=session, mcp_servers=[])
        print("loaded")
        await interactive_loop(connection, session)


asyncio.run(main(*sys.argv[1:]))
