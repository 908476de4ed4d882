"""What the SDKs have no methods for: the pause, as plain JSON-RPC, and a receiver of push
notifications."""

import asyncio
import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer


class Raw:
    def __init__(self, http, url):
        self.http, self.url = http, url

    async def call(self, method, params):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = (await self.http.post(self.url, json=body)).json()
        assert "result" in answer, answer
        return answer["result"]

    async def pause_and_lift(self, task):
        """Lays a hold over the agent's own wait, and lifts it."""
        paused = await self.call("tasks/pause", {"taskId": task, "reason": "review"})
        assert paused["state"] == "paused-by-client", paused
        lifted = await self.call("tasks/resume", {"taskId": task, "handle": paused["handle"]})
        assert lifted["state"] == "paused-by-agent", lifted

    async def pause_and_wake(self, task):
        """Lays a hold over the agent's own wait, lifts it, and wakes the agent."""
        await self.pause_and_lift(task)
        woken = await self.call("tasks/resume", {"taskId": task, "input": "ci is green"})
        assert woken["state"] == "working", woken


def pause_of(metadata):
    """The paused state that metadata tells of."""
    pause = ((metadata or {}).get("harn") or {}).get("pause")
    return pause and pause["state"]


class Pauses:
    """The pauses that a client is told of in metadata; the first one is held, lifted and ended."""

    def __init__(self, raw):
        self.raw, self.seen, self.waking = raw, [], None

    def look(self, task, metadata):
        pause = pause_of(metadata)
        if pause:
            self.seen.append(pause)
            if self.waking is None:
                self.waking = asyncio.create_task(self.raw.pause_and_wake(task))


class Receiver:
    """Listens on loopback, and keeps the push notifications that come in."""

    def __init__(self):
        self.received = received = queue.Queue()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                received.put((dict(self.headers.items()), json.loads(body)))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    async def until(self, is_last):
        """Waits for notifications up to one, and returns its headers, in lower case."""
        while True:
            headers, body = await asyncio.to_thread(self.received.get, timeout=30)
            if is_last(body):
                return {name.lower(): value for name, value in headers.items()}
