"""A Letta server that answers by script and remembers what it was asked."""

import json
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

PAGE = 50
WITHIN = 10.0


@dataclass(frozen=True)
class Seen:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    # When it was read, by a clock that never jumps.
    at: float


@dataclass
class Reply:
    """What one prompt or upload is answered. A reply that is held waits until `go` is set."""

    status: int = 200
    body: Any = field(default_factory=lambda: {"messages": [], "usage": {}})
    go: threading.Event | None = None

    @classmethod
    def held(cls) -> "Reply":
        return cls(go=threading.Event())


class FakeLetta:
    """Listens on a free port. Its agents are `agents`; what is posted is answered by `replies`, then by `default`."""

    def __init__(self, *agents: str):
        self.agents = [describe(agent) for agent in agents]
        self.replies: deque[Reply] = deque()
        self.default = Reply()
        self._seen: list[Seen] = []
        self._changed = threading.Condition()
        self._held: list[threading.Event] = []
        letta = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self):
                length = int(self.headers.get("Content-Length") or 0)
                text = self.rfile.read(length)
                seen = Seen(
                    self.command,
                    unquote(self.path),
                    {name.lower(): value for name, value in self.headers.items()},
                    json.loads(text) if text else None,
                    time.monotonic(),
                )
                reply = letta._answer(seen)
                if reply.go is not None:
                    reply.go.wait()
                body = json.dumps(reply.body).encode()
                try:
                    self.send_response(reply.status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    # Whoever asked is gone.
                    self.close_connection = True

            do_GET = do_POST = do_PUT = _serve

            def log_message(self, *_):
                pass

        class Listening(ThreadingHTTPServer):
            request_queue_size = 128
            daemon_threads = True

        self._http = Listening(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        with self._changed:
            for go in self._held:
                go.set()
        self._http.shutdown()
        self._http.server_close()

    @property
    def seen(self) -> list[Seen]:
        with self._changed:
            return list(self._seen)

    @property
    def posts(self) -> list[Seen]:
        """The prompts that came, those that were refused included."""
        return [seen for seen in self.seen if seen.method == "POST"]

    def prompts(self) -> list[tuple[str, str]]:
        """Whom was said what."""
        return [(seen.path.split("/")[3], seen.body["messages"][0]["content"][0]["text"]) for seen in self.posts]

    def wait_for_posts(self, count: int, within: float = WITHIN) -> list[Seen]:
        with self._changed:
            came = self._changed.wait_for(lambda: len(self._posts_now()) >= count, within)
            assert came, f"{len(self._posts_now())} of {count} prompts within {within} s"
            return self._posts_now()

    def _posts_now(self) -> list[Seen]:
        return [seen for seen in self._seen if seen.method == "POST"]

    def _answer(self, seen: Seen) -> Reply:
        with self._changed:
            self._seen.append(seen)
            self._changed.notify_all()
            if seen.method == "GET":
                return self._described(seen.path)
            reply = self.replies.popleft() if self.replies else self.default
            if reply.go is not None:
                self._held.append(reply.go)
            return reply

    def _described(self, path: str) -> Reply:
        address = urlsplit(path)
        if address.path.rstrip("/") == "/v1/agents":
            asked = parse_qs(address.query)
            ids = [agent["id"] for agent in self.agents]
            first = ids.index(asked["after"][0]) + 1 if "after" in asked else 0
            limit = int(asked.get("limit", [str(PAGE)])[0])
            return Reply(body=self.agents[first : first + limit])
        wanted = address.path.removeprefix("/v1/agents/")
        for agent in self.agents:
            if agent["id"] == wanted:
                return Reply(body=agent)
        return Reply(404, {"detail": f"Agent {wanted} not found"})


def describe(agent: str) -> dict[str, Any]:
    """An agent as Letta describes it, with something that nobody asks for."""
    return {
        "id": agent,
        "name": agent.title(),
        "description": None,
        "created_at": "2025-01-01T09:00:00Z",
        "updated_at": "2025-01-02T09:00:00Z",
        "tools": [],
    }
