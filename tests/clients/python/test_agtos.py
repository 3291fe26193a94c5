"""The acceptance checks of the agtOS contract that concern its scheduler, with their numbers.

The rest of check 13 (a cron time that passes while the server is down) is in `crates/tools/tests/schedules`, where the
clock is the test's own.
"""

import json
import time
from contextlib import ExitStack

import pytest

from agents import until
from raw import Http
from sdk import ProtocolError, connected
from server import Server

pytestmark = pytest.mark.http_only

TASK_KEYS = {"taskId", "name", "status", "nextRunAt", "scheduleType"}


@pytest.fixture
def start(tmp_path):
    """Starts a server whose bare `/mcp` is agtOS's."""
    with ExitStack() as started:

        def start(data: str = "data") -> Server:
            own = Server(tmp_path / data, toolset="agtos")
            started.callback(own.stop)
            return own.start()

        yield start


@pytest.fixture
def tasks(start, portal):
    """agtOS's scheduler through the official SDK."""
    with ExitStack() as opened:
        server = start()
        yield Tasks(server, portal, opened)


class Tasks:
    def __init__(self, server: Server, portal, opened: ExitStack):
        self.server = server
        self._portal = portal
        self._connection = opened.enter_context(portal.wrap_async_context_manager(connected(server, "http")))

    def text(self, tool: str, **arguments) -> tuple[str, bool]:
        """The one text of an answer, and whether it is an error."""
        result = self._portal.call(self._connection.result, f"schedule.{tool}", arguments)
        assert "structuredContent" not in result, result
        [item] = result["content"]
        assert item["type"] == "text", item
        return item["text"], result.get("isError", False)

    def refused(self, tool: str, **arguments) -> str:
        text, is_error = self.text(tool, **arguments)
        assert is_error, text
        return text

    def create(self, **arguments) -> dict:
        text, is_error = self.text("create", **arguments)
        assert not is_error, text
        made = json.loads(text)
        assert made.keys() == TASK_KEYS, made
        return made

    def listed(self, **arguments) -> list[dict]:
        text, is_error = self.text("list", **arguments)
        assert not is_error, text
        return json.loads(text)

    def the(self, made: dict) -> dict:
        [task] = [task for task in self.listed() if task["id"] == made["taskId"]]
        return task

    def events(self, topic: str) -> list[dict]:
        """What was published on a topic."""
        answer = rest(self.server, "POST", "/api/tools/bus.read", {"topic": topic, "after": 0, "limit": 1000})
        return [event["data"] for event in answer["structured"]["events"]]


def rest(server: Server, method: str, path: str, body: dict | None = None):
    """An answer of REST."""
    http = Http(server)
    reply = http.request(method, path, None if body is None else json.dumps(body).encode())
    http.close()
    assert reply.status < 300, reply
    return reply.json


def test_check_01_stateless_and_without_initialize(start):
    http = Http(start())
    initialize = {
        "protocolVersion": "2025-03-26",
        "capabilities": {},
        "clientInfo": {"name": "test-client", "version": "1.0.0"},
    }
    for accept in ({}, *({"Accept": kinds} for kinds in ("application/json", "application/json, text/event-stream", "*/*"))):
        reply = http.rpc("initialize", initialize, **accept)
        assert reply.status == 200, reply
        assert "mcp-session-id" not in reply.headers, reply.headers
        assert reply.headers["content-type"].startswith("application/json"), reply.headers
        info = reply.json["result"]["serverInfo"]
        assert (info["name"], info["version"]) == ("agtos", "1.0.0")
    names = {tool["name"] for tool in http.rpc("tools/list").json["result"]["tools"]}
    assert {"schedule.create", "schedule.list", "schedule.cancel"} <= names
    events = http.rpc("tools/list", Accept="text/event-stream")
    assert events.headers["content-type"].startswith("text/event-stream"), events.headers
    [data] = [line for line in events.body.decode().splitlines() if line.startswith("data:")]
    assert names == {tool["name"] for tool in json.loads(data.removeprefix("data:"))["result"]["tools"]}
    for method in ("GET", "DELETE"):
        assert http.request(method, "/mcp").status == 405
    unknown = http.rpc("tools/call", {"name": "nope", "arguments": {}}).json
    assert unknown["error"] == {"code": -32602, "message": "Unknown tool: nope"}


def test_check_10_the_examples_of_the_document(tasks):
    cron = tasks.create(
        name="Morning briefing",
        scheduleType="cron",
        expression="0 7 * * *",
        eventTopic="workflow.trigger",
        payload={"workflowId": "morning-routine"},
    )
    assert (cron["name"], cron["status"], cron["scheduleType"]) == ("Morning briefing", "active", "cron")
    assert cron["nextRunAt"] > time.time() * 1000
    # Local seven o'clock, whatever that is in UTC.
    assert time.localtime(cron["nextRunAt"] / 1000)[3:6] == (7, 0, 0)
    once = tasks.create(
        name="Reminder", scheduleType="once", atTimestamp=1711699200000, eventTopic="reminder.fire"
    )
    assert once["nextRunAt"] == 1711699200000
    done = until(lambda: (task := tasks.the(once))["status"] == "completed" and task, 5.0, "past task to fire")
    assert done["runCount"] == 1
    assert "nextRunAt" not in done and done["lastRunAt"] >= 1711699200000
    before = time.time() * 1000
    interval = tasks.create(name="Poll", scheduleType="interval", intervalMs=300_000, eventTopic="poll.tick")
    assert before + 299_000 < interval["nextRunAt"] < before + 310_000
    assert "lastRunAt" not in tasks.the(interval)


def test_check_11_what_is_refused(tasks):
    usual = {"name": "x", "eventTopic": "t"}
    for arguments, text in [
        ({"scheduleType": "cron"}, 'Error: "expression" is required for cron schedules'),
        ({"scheduleType": "cron", "expression": ""}, 'Error: "expression" is required for cron schedules'),
        ({"scheduleType": "once"}, 'Error: "atTimestamp" is required for once schedules'),
        ({"scheduleType": "interval"}, 'Error: "intervalMs" is required for interval schedules'),
        ({"scheduleType": "cron", "expression": "* * *"}, "Error: Invalid cron expression: * * *"),
        ({"scheduleType": "cron", "expression": "0 0 30 2 *"}, "Error: Invalid cron expression: 0 0 30 2 *"),
    ]:
        assert tasks.refused("create", **usual, **arguments) == text
    bad = "Error: Invalid arguments for tool schedule.create: {}: "
    for arguments, field in [
        ({**usual, "scheduleType": "daily"}, "scheduleType"),
        ({**usual, "scheduleType": "interval", "intervalMs": 0}, "intervalMs"),
        ({**usual, "scheduleType": "interval", "intervalMs": 1.5}, "intervalMs"),
        ({"eventTopic": "t", "scheduleType": "cron", "expression": "* * * * *"}, "name"),
        ({"name": "", "eventTopic": "t", "scheduleType": "cron", "expression": "* * * * *"}, "name"),
        ({"name": "x", "eventTopic": "", "scheduleType": "cron", "expression": "* * * * *"}, "eventTopic"),
    ]:
        assert tasks.refused("create", **arguments).startswith(bad.format(field)), arguments
    assert tasks.refused("list", status="sleepy").startswith("Error: Invalid arguments for tool schedule.list: status: ")
    assert tasks.refused("cancel", taskId="").startswith("Error: Invalid arguments for tool schedule.cancel: taskId: ")
    assert tasks.listed() == []


def test_check_12_an_interval_until_it_is_cancelled(tasks):
    made = tasks.create(
        name="Fast", scheduleType="interval", intervalMs=200, eventTopic="fast", payload={"n": 1}
    )
    task = until(lambda: (task := tasks.the(made))["runCount"] >= 5 and task, 5.0, "five runs")
    assert task["status"] == "active" and task["nextRunAt"] > task["lastRunAt"]
    assert tasks.text("cancel", taskId=made["taskId"]) == (f"Task {made['taskId']} cancelled successfully", False)
    [cancelled] = tasks.listed(status="cancelled")
    assert cancelled["id"] == made["taskId"]
    assert tasks.text("cancel", taskId=made["taskId"]) == (f"Task {made['taskId']} cancelled successfully", False)
    assert tasks.refused("cancel", taskId="task-none") == "Error: Task not found"

    seen = tasks.events("fast")
    assert len(seen) == cancelled["runCount"] >= 5
    for number, event in enumerate(seen):
        assert event.keys() == {"taskId", "name", "topic", "payload", "firedAt"}, event
        assert event["taskId"] == made["taskId"]
        assert (event["name"], event["topic"], event["payload"]) == ("Fast", "fast", {"n": 1})
        # On the grid that begins one interval after it was made.
        late = event["firedAt"] - (made["nextRunAt"] + 200 * number)
        assert 0 <= late <= 1000, late
    # What is made afterwards fires twice while the cancelled one does not once.
    other = tasks.create(name="Other", scheduleType="interval", intervalMs=200, eventTopic="other")
    until(lambda: tasks.the(other)["runCount"] >= 2, 5.0, "two runs of another")
    assert tasks.events("fast") == seen


def test_check_13_a_kill_makes_up_for_once_and_for_nothing_else(start, portal):
    server = start()
    with ExitStack() as opened:
        tasks = Tasks(server, portal, opened)
        ran = tasks.create(name="Ran", scheduleType="interval", intervalMs=250, eventTopic="ran")
        until(lambda: tasks.the(ran)["runCount"] >= 2, 5.0, "two runs")
        at = int(time.time() * 1000) + 1500
        once = tasks.create(name="Once", scheduleType="once", atTimestamp=at, eventTopic="once")
        before = tasks.the(ran)
    server.kill()
    # It passes while nobody is there.
    time.sleep(max(0.0, (at + 1000) / 1000 - time.time()))
    down_until = time.time() * 1000
    server.start()
    with ExitStack() as opened:
        tasks = Tasks(server, portal, opened)
        done = until(lambda: (task := tasks.the(once))["status"] == "completed" and task, 5.0, "missed task")
        assert done["runCount"] == 1
        assert len(tasks.events("once")) == 1
        until(lambda: tasks.the(ran)["runCount"] >= before["runCount"] + 2, 5.0, "runs after the restart")
        fired = [event["firedAt"] for event in tasks.events("ran")]
        # At most what was under way when it was killed, and what has come since.
        since = [at for at in fired if at >= down_until]
        assert len(since) <= 2 + (time.time() * 1000 - down_until) / 250, fired
        assert [task["id"] for task in tasks.listed()] == [ran["taskId"], once["taskId"]]


def test_check_14_rest_and_mcp_show_the_same_tasks(tasks):
    wish = {"name": "By REST", "scheduleType": "cron", "expression": "0 9 * * *", "eventTopic": "rest"}
    by_rest = rest(tasks.server, "POST", "/api/scheduler/tasks", wish)["task"]
    by_mcp = tasks.create(name="By MCP", scheduleType="interval", intervalMs=60_000, eventTopic="mcp")
    listed = {task["id"]: task for task in tasks.listed()}
    assert listed.keys() == {by_rest["id"], by_mcp["taskId"]}
    assert listed[by_rest["id"]]["nextRunAt"] == by_rest["nextRunAt"]
    shown = {task["id"]: task for task in rest(tasks.server, "GET", "/api/scheduler/tasks")["tasks"]}
    assert shown.keys() == listed.keys()
    assert shown[by_mcp["taskId"]]["schedule"] == {"type": "interval", "intervalMs": 60_000}


def test_an_unknown_tool_is_an_error_of_the_protocol(tasks):
    with pytest.raises(ProtocolError) as refused:
        tasks.text("nope")
    assert (refused.value.code, refused.value.message) == (-32602, "Unknown tool: schedule.nope")
