"""Clients of the catalogue `promptyoself`, and its times."""

import json
import re
import time
from concurrent.futures import Future
from datetime import datetime, timedelta, timezone
from typing import Any

from agents import until

# Letta sends these with every call, whatever the tool's schema says.
PASSED_THROUGH = {
    "mcp_server_id": "mcp-1",
    "mcp_server_name": ["promptyoself"],
    "request_heartbeat": True,
    "heartbeat": 7,
}
TIMESTAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$")


class Prompts:
    """A connection. Tools are named without the prefix that all but `health` have."""

    def __init__(self, portal, connection):
        self._portal = portal
        self._connection = connection

    def start(self, tool: str, arguments: dict[str, Any], meta: dict[str, Any] | None = None) -> "Future[dict]":
        """Sends a call and does not wait for its answer."""
        name = tool if tool == "health" else f"promptyoself_{tool}"
        return self._portal.start_task_soon(self._connection.result, name, arguments, meta)

    def call(self, tool: str, meta: dict[str, Any] | None = None, **arguments) -> dict[str, Any]:
        """An answer of the catalogue: success, or its own kind of error."""
        return answer_in(self.start(tool, arguments, meta).result())

    def refused(self, tool: str, **arguments) -> str:
        """What is said about arguments that do not fit the tool's schema."""
        result = self.start(tool, arguments).result()
        assert result["isError"] is True, result
        assert "structuredContent" not in result, result
        [item] = result["content"]
        return item["text"]

    def tools(self) -> list[dict[str, Any]]:
        return self._portal.call(self._connection.tools)

    def cancel_call(self, call: "Future[dict]") -> None:
        """Withdraws the call that was sent last, as the SDK does it."""
        self._portal.call(self._connection.withdraw)
        call.cancel()

    def execute_when_due(self, within: float = 10.0) -> list[dict[str, Any]]:
        """What came of the first pass that finds anything due."""
        return until(lambda: self.call("execute")["executed"], within, "due prompt")

    def wait_until_due(self) -> None:
        """Waits until all that is scheduled is due. The clock alone tells."""
        last = max(time_of(schedule["next_run"]) for schedule in self.listed())
        # The answer's times are cut off to whole seconds.
        time.sleep(max(0.0, (last + timedelta(seconds=1) - now()).total_seconds()))

    def listed(self, **arguments) -> list[dict[str, Any]]:
        listed = self.call("list", **arguments)
        assert listed["status"] == "success", listed
        assert listed["count"] == len(listed["schedules"]), listed
        return listed["schedules"]

    def the_one(self, **arguments) -> dict[str, Any]:
        """The only schedule there is, over or not."""
        [schedule] = self.listed(include_cancelled=True, **arguments)
        return schedule


def answer_in(result: dict[str, Any]) -> dict[str, Any]:
    """Checks the envelope of every answer: no error of the protocol, and the same object twice."""
    assert result.get("isError", False) is False, result
    [item] = result["content"]
    assert item["type"] == "text", item
    answer = json.loads(item["text"])
    assert result["structuredContent"] == answer, result
    if "error" in answer:
        assert answer.keys() == {"error"}, answer
    return answer


def error(text: str) -> dict[str, str]:
    return {"error": text}


def after(seconds: float) -> str:
    """The time that is so far away, to the millisecond."""
    at = datetime.now(timezone.utc) + timedelta(seconds=seconds)
    return at.isoformat(timespec="milliseconds")


def time_of(text: str) -> datetime:
    """A time of an answer, which has to be written as the contract writes it."""
    assert TIMESTAMP.match(text), text
    return datetime.fromisoformat(text)


def now() -> datetime:
    return datetime.now(timezone.utc)


def scheduled(answer: dict[str, Any]) -> int:
    """The number of a schedule that was made."""
    assert answer.keys() == {"status", "id", "next_run", "message"}, answer
    assert answer["status"] == "success"
    time_of(answer["next_run"])
    assert answer["message"] == f"Prompt scheduled with ID {answer['id']}"
    return answer["id"]
