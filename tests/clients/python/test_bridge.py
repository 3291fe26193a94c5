"""`switchboard mcp`: the bridge on standard input and output, as a client's child process."""

import json
import os
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from agents import until
from server import Server, binary

# They speak to the bridge by hand, whatever transport the SDK's clients use.
pytestmark = pytest.mark.http_only

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "by hand", "version": "1"},
}


class Bridge:
    """The child process, one JSON message a line."""

    def __init__(self, data_dir: Path):
        self.process = subprocess.Popen(
            [binary(), "mcp", "--toolset", "a2amcp", "--data-dir", str(data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._id = 0

    def tell(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict | None = None) -> dict:
        """The answer to a request; notifications before it are passed over."""
        self._id += 1
        self.tell(json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params or {}}))
        while True:
            line = self.process.stdout.readline()
            assert line, "the bridge closed its output"
            message = json.loads(line)
            if message.get("id") == self._id:
                return message

    def initialize(self) -> dict:
        result = self.ask("initialize", INITIALIZE)["result"]
        self.tell(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        return result

    def call(self, tool: str, **arguments) -> dict:
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        return json.loads(result["content"][0]["text"])


@contextmanager
def bridge_to(data_dir: Path):
    bridge = Bridge(data_dir)
    try:
        yield bridge
    finally:
        bridge.process.kill()
        bridge.process.wait()


def stop_server_of(data_dir: Path) -> None:
    """Ends the server that a bridge started in the background."""
    described = data_dir / "server.json"
    os.kill(json.loads(described.read_text())["pid"], signal.SIGTERM)
    until(lambda: not described.exists(), 10, "end of the server")


def test_it_starts_a_server_if_there_is_none(tmp_path):
    data_dir = tmp_path / "data"
    with bridge_to(data_dir) as bridge:
        assert bridge.initialize()["serverInfo"]["version"] == "1.0.0"
        assert bridge.call("list_active_agents", project_id="p") == {}
        assert json.loads((data_dir / "server.json").read_text())["pid"] != bridge.process.pid
    stop_server_of(data_dir)


def test_several_bridges_started_at_once_share_one_server(tmp_path):
    data_dir = tmp_path / "data"
    bridges = [Bridge(data_dir) for _ in range(4)]
    try:
        for bridge in bridges:
            bridge.initialize()
        registered = {"project_id": "p", "session_name": "s", "task_id": "1", "branch": "b", "description": "d"}
        assert bridges[0].call("register_agent", **registered)["status"] == "registered"
        for bridge in bridges:
            assert bridge.call("list_active_agents", project_id="p").keys() == {"s"}
    finally:
        for bridge in bridges:
            bridge.process.kill()
            bridge.process.wait()
    stop_server_of(data_dir)


def test_it_ends_with_its_input(server):
    with bridge_to(server.data_dir) as bridge:
        bridge.initialize()
        bridge.process.stdin.close()
        closed_at = time.monotonic()
        assert bridge.process.wait(timeout=10) == 0
        assert time.monotonic() - closed_at < 2


def test_it_ends_with_its_input_although_a_call_waits(server, project):
    with bridge_to(server.data_dir) as bridge:
        bridge.initialize()
        for session in ("a", "b"):
            who = {"project_id": project, "session_name": session}
            bridge.call("register_agent", **who, task_id="1", branch="b", description="d")
        question = {"project_id": project, "from_session": "b", "to_session": "a", "query": "?", "timeout": 60}
        params = {"name": "query_agent", "arguments": question}
        bridge.tell(json.dumps({"jsonrpc": "2.0", "id": "waiting", "method": "tools/call", "params": params}))
        # The question has been asked for certain once it is seen.
        until(lambda: bridge.call("check_messages", project_id=project, session_name="a"), 5, "question")
        bridge.process.stdin.close()
        closed_at = time.monotonic()
        bridge.process.wait(timeout=10)
        assert time.monotonic() - closed_at < 2


def test_a_line_that_is_no_json_does_not_end_it(server):
    with bridge_to(server.data_dir) as bridge:
        bridge.initialize()
        bridge.tell("this is no JSON")
        bridge.tell("")
        assert "tools" in bridge.ask("tools/list")["result"]


def test_it_survives_a_restart_of_the_server(own_server):
    server: Server = own_server()
    with bridge_to(server.data_dir) as bridge:
        bridge.initialize()
        registered = {"project_id": "p", "session_name": "s", "task_id": "1", "branch": "b", "description": "d"}
        bridge.call("register_agent", **registered)
        server.kill()
        server.start()
        assert bridge.call("list_active_agents", project_id="p").keys() == {"s"}
