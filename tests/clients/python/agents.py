"""Agents as the tests speak of them: a name in a project, and a client of its own."""

import time
from concurrent.futures import Future
from typing import Any

from sdk import Answer, ProtocolError

# Tools that speak for nobody: only `project_id` says what they are about.
IMPERSONAL = {"list_active_agents", "get_all_todos", "get_recent_changes", "query_interface", "list_interfaces"}
# Tools whose speaker is called `from_session`.
SPEAKER_IS_FROM = {"query_agent", "respond_to_query"}


class Client:
    """A connection that is called from plain code; the SDK's own code runs in a loop beside it."""

    def __init__(self, portal, connection):
        self._portal = portal
        self._connection = connection

    def start(self, tool: str, arguments: dict[str, Any]) -> "Future[Answer]":
        """Sends a call and does not wait for its answer."""
        return self._portal.start_task_soon(self._connection.call, tool, arguments)

    def answer(self, tool: str, arguments: dict[str, Any]) -> Answer:
        return self.start(tool, arguments).result()

    def call(self, tool: str, **arguments) -> Any:
        """A call whose outcome is the catalogue's business: `isError` is false."""
        return _accepted(self.answer(tool, arguments))

    def refused(self, tool: str, **arguments) -> Any:
        """A call with bad input: `isError` is true."""
        return _refused(self.answer(tool, arguments))

    def protocol_error(self, tool: str, **arguments) -> ProtocolError:
        try:
            answer = self.answer(tool, arguments)
        except ProtocolError as error:
            return error
        raise AssertionError(f"expected a JSON-RPC error, got {answer}")

    def tools(self) -> list[dict[str, Any]]:
        return self._portal.call(self._connection.tools)


class Agent:
    """One session of one project."""

    def __init__(self, client: Client, project: str, session: str):
        self.client = client
        self.project = project
        self.session = session

    def _complete(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if tool in IMPERSONAL:
            return {"project_id": self.project, **arguments}
        speaker = "from_session" if tool in SPEAKER_IS_FROM else "session_name"
        return {"project_id": self.project, speaker: self.session, **arguments}

    def call(self, tool: str, **arguments) -> Any:
        return _accepted(self.start(tool, **arguments).result())

    def refused(self, tool: str, **arguments) -> Any:
        return _refused(self.start(tool, **arguments).result())

    def start(self, tool: str, **arguments) -> "Future[Answer]":
        return self.client.start(tool, self._complete(tool, arguments))

    def register(self) -> Any:
        number = self.session.removeprefix("task-")
        return self.call("register_agent", task_id=number, branch=f"feature/{number}", description=f"Task {number}")

    def ask(self, other: "Agent", query: str, **arguments) -> Any:
        """A question that does not wait; returns its `message_id`."""
        sent = self.call("query_agent", to_session=other.session, query=query, wait_for_response=False, **arguments)
        assert sent["status"] == "sent", sent
        return sent["message_id"]

    def next_messages(self, within: float = 5.0) -> list[dict[str, Any]]:
        """The messages of the first check that finds any."""
        return until(lambda: self.call("check_messages"), within, "a message")


def until(probe, within: float, what: str):
    """Polls until `probe` gives something true. For what no client is told of."""
    deadline = time.monotonic() + within
    while True:
        found = probe()
        if found:
            return found
        assert time.monotonic() < deadline, f"no {what} within {within} s"
        time.sleep(0.02)


def error(status: str, code: str, text: str, **details) -> dict[str, Any]:
    """The catalogue's error object."""
    return {"status": status, "error": text, "details": {"code": code, **details}}


def not_registered(session: str, project: str) -> dict[str, Any]:
    return error("error", "not_registered", f"Agent {session} not registered in project {project}")


def assert_invalid(refusal: Any, parameter: str) -> None:
    """`invalid_params`, naming the parameter in text and details."""
    assert refusal["status"] == "error", refusal
    assert refusal["details"]["code"] == "invalid_params", refusal
    assert refusal["details"]["parameter"] == parameter, refusal
    missing = f"Missing required parameter: {parameter}"
    assert refusal["error"] == missing or refusal["error"].startswith(f"Invalid value for {parameter}: "), refusal


def _accepted(answer: Answer) -> Any:
    assert not answer.is_error, answer
    return answer.value


def _refused(answer: Answer) -> Any:
    assert answer.is_error, answer
    return answer.value
