"""The acceptance checks of the PromptYoSelf contract, in its order and with its numbers.

Three of them have times that no test run should wait for. They are made in small here, and in full where the clock is a
test's own: check 17 (a reply after 90 s) in `crates/letta/tests/rest.rs`, check 19 (35 minutes without a server) in
`crates/tools/tests/schedules/promptyoself.rs`.
"""

import json
import socket
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import timedelta, timezone
from types import SimpleNamespace

import pytest

from agents import until
from fake_letta import FakeLetta, Reply
from prompts import PASSED_THROUGH, Prompts, after, answer_in, error, now, scheduled, time_of
from raw import Http
from sdk import SDK_MAJOR, ProtocolError, connected
from server import Server, binary

TOOLS = {
    "promptyoself_list": (set(), {"agent_id", "include_cancelled"}),
    "promptyoself_schedule_time": ({"prompt", "time"}, {"agent_id", "skip_validation"}),
    "promptyoself_schedule_cron": ({"prompt", "cron"}, {"agent_id", "skip_validation"}),
    "promptyoself_schedule_every": (
        {"prompt", "every"},
        {"agent_id", "start_at", "max_repetitions", "skip_validation"},
    ),
    "promptyoself_inference_diagnostics": (set(), set()),
    "promptyoself_cancel": ({"schedule_id"}, set()),
    "promptyoself_execute": (set(), {"loop", "interval"}),
    "promptyoself_test": (set(), set()),
    "promptyoself_agents": (set(), set()),
    "promptyoself_upload": ({"source_code"}, {"name", "description"}),
    "health": (set(), set()),
    "promptyoself_set_default_agent": ({"agent_id"}, set()),
    "promptyoself_set_scoped_default_agent": ({"agent_id"}, set()),
    "promptyoself_get_scoped_default_agent": (set(), set()),
    "promptyoself_executor_status": (set(), set()),
}
SCHEDULE_TOOLS = {name for name in TOOLS if "_schedule_" in name}
READ_ONLY = {
    "promptyoself_list",
    "promptyoself_inference_diagnostics",
    "promptyoself_test",
    "promptyoself_agents",
    "health",
    "promptyoself_get_scoped_default_agent",
    "promptyoself_executor_status",
}
OPEN_WORLD = SCHEDULE_TOOLS | {
    "promptyoself_execute",
    "promptyoself_test",
    "promptyoself_agents",
    "promptyoself_upload",
}
NOT_INFERRED = error("agent_id is required and could not be inferred")
BAD_TIME = error(
    "Invalid time format. Use ISO 8601 like 2025-12-25T10:00:00Z or include offset, e.g. 2025-12-25T10:00:00-05:00"
)
FAR = "2099-01-01T10:00:00Z"
FUNCTION = 'def twice(number: int) -> int:\n    """Doubles.\n\n    Args:\n        number: what\n    """\n    return number * 2\n'


@pytest.fixture
def letta():
    """A Letta with one agent, `a1`."""
    running = FakeLetta("a1")
    yield running
    running.close()


@pytest.fixture
def start(tmp_path, letta):
    """Starts servers whose executor is off unless a test says otherwise."""
    with ExitStack() as started:

        def start(**environment: str) -> Server:
            usual = {"LETTA_BASE_URL": letta.url, "PROMPTYOSELF_EXECUTOR_AUTOSTART": "false"}
            number = len(list(tmp_path.iterdir()))
            server = Server(tmp_path / f"data-{number}", {**usual, **environment}, "promptyoself")
            started.callback(server.stop)
            return server.start()

        yield start


@pytest.fixture
def client_of(portal, transport):
    """Connects clients, and takes them off again after the test."""
    with ExitStack() as opened:

        def connect(server: Server, over: str = transport, **how) -> Prompts:
            connection = portal.wrap_async_context_manager(connected(server, over, **how))
            return Prompts(portal, opened.enter_context(connection))

        yield connect


@pytest.fixture
def prompts(start, client_of) -> Prompts:
    return client_of(start())


@pytest.fixture
def nowhere() -> str:
    """An address where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_check_01_fifteen_tools_and_arguments_that_are_passed_through(prompts):
    tools = {tool["name"]: tool for tool in prompts.tools()}
    assert tools.keys() == TOOLS.keys()
    for name, (required, optional) in TOOLS.items():
        schema = tools[name]["inputSchema"]
        assert set(schema.get("required", [])) == required, name
        assert schema.get("properties", {}).keys() == required | optional, name
        assert schema.get("additionalProperties", True) is True, name
        assert ("outputSchema" in tools[name]) is (name in SCHEDULE_TOOLS), name
    for name in SCHEDULE_TOOLS:
        schema = tools[name]["outputSchema"]
        assert schema["properties"].keys() == {"status", "id", "next_run", "message", "error"}
        assert schema["additionalProperties"] is False

    scheduled(prompts.call("schedule_time", prompt="p", time=FAR, agent_id="a1", **PASSED_THROUGH))
    made = scheduled(prompts.call("schedule_cron", prompt="p", cron="0 9 * * *", agent_id="a1", **PASSED_THROUGH))
    scheduled(prompts.call("schedule_every", prompt="p", every="1h", agent_id="a1", **PASSED_THROUGH))
    assert len(prompts.listed(**PASSED_THROUGH)) == 3
    assert prompts.call("cancel", schedule_id=made, **PASSED_THROUGH)["status"] == "success"
    assert prompts.call("execute", **PASSED_THROUGH)["message"] == "0 prompts executed"
    assert prompts.call("test", **PASSED_THROUGH)["status"] == "success"
    assert prompts.call("agents", **PASSED_THROUGH)["count"] == 1
    assert "error" in prompts.call("upload", source_code=FUNCTION, **PASSED_THROUGH)
    assert prompts.call("health", **PASSED_THROUGH)["status"] == "healthy"
    assert prompts.call("set_default_agent", agent_id="d", **PASSED_THROUGH)["status"] == "success"
    prompts.call("set_scoped_default_agent", agent_id="s", **PASSED_THROUGH)
    for tool in ("inference_diagnostics", "get_scoped_default_agent", "executor_status"):
        assert prompts.call(tool, **PASSED_THROUGH)["status"] == "ok"


def test_annotations_say_what_a_tool_may_do(prompts):
    for tool in prompts.tools():
        name, annotations = tool["name"], tool["annotations"]
        assert annotations["readOnlyHint"] is (name in READ_ONLY), name
        assert annotations["openWorldHint"] is (name in OPEN_WORLD), name
        # MCP's default for tools that write is true, so a harmless one has to say so.
        destructive = annotations.get("destructiveHint", name not in READ_ONLY)
        assert destructive is (name == "promptyoself_cancel"), name


def test_unknown_tools_and_wrong_types_are_refused(prompts):
    with pytest.raises(ProtocolError) as unknown:
        prompts.call("register", agent_id="a1")
    assert (unknown.value.code, unknown.value.message) == (-32602, "Unknown tool: promptyoself_register")
    for tool, arguments in [
        ("schedule_time", {"time": FAR}),
        ("schedule_time", {"prompt": 5, "time": FAR}),
        ("schedule_cron", {"prompt": "p"}),
        ("schedule_every", {"prompt": "p", "every": []}),
        ("cancel", {}),
        ("execute", {"loop": "maybe"}),
        ("upload", {}),
        ("set_default_agent", {"agent_id": None}),
    ]:
        assert prompts.refused(tool, **arguments).startswith("Input validation error: "), (tool, arguments)


def test_check_02_a_prompt_is_scheduled_once(prompts):
    before = now()
    # The client checks structured content against the output schema, the helper that it equals the text.
    answer = prompts.call("schedule_time", prompt="Ping", time=after(3), agent_id="a1", skip_validation=True)
    scheduled(answer)
    assert timedelta(seconds=2) <= time_of(answer["next_run"]) - before <= timedelta(seconds=4)


def test_check_03_a_due_prompt_is_delivered_by_execute(prompts, letta):
    # The contract's three seconds are one here: the pass finds the prompt as soon as it is due.
    time = after(1)
    made = scheduled(prompts.call("schedule_time", prompt='Ping "me" ü', time=time, agent_id="a1"))
    assert prompts.call("execute") == {"status": "success", "executed": [], "message": "0 prompts executed"}
    due = prompts.the_one()
    passed = until(lambda: (answer := prompts.call("execute"))["executed"] and answer, 10, "due prompt")
    assert passed == {
        "status": "success",
        "executed": [
            {
                "id": made,
                "agent_id": "a1",
                "delivered": True,
                "next_run": None,
                "repetition_count": 1,
                "max_repetitions": None,
                "completed": False,
            }
        ],
        "message": "1 prompts executed",
    }
    [post] = letta.posts
    assert post.path == "/v1/agents/a1/messages"
    assert post.body == {"messages": [{"role": "user", "content": [{"type": "text", "text": 'Ping "me" ü'}]}]}
    assert post.headers["content-type"] == "application/json"
    assert "authorization" not in post.headers

    assert prompts.call("list") == {"status": "success", "schedules": [], "count": 0}
    over = prompts.the_one()
    assert time_of(over["created_at"]) <= time_of(over["last_run"])
    assert over == {
        **due,
        "id": made,
        "agent_id": "a1",
        "prompt_text": 'Ping "me" ü',
        "schedule_type": "once",
        "schedule_value": time,
        "active": False,
        "last_run": over["last_run"],
        "max_repetitions": None,
        "repetition_count": 1,
    }
    assert (due["active"], due["last_run"], due["repetition_count"]) == (True, None, 0)


def test_check_04_times_that_are_over_or_none(start, client_of, nowhere):
    prompts = client_of(start(LETTA_BASE_URL=nowhere))
    for skip in (True, False):
        common = {"prompt": "p", "agent_id": "a1", "skip_validation": skip}
        for time, refusal in [
            ("2000-01-01T00:00:00Z", error("Scheduled time must be in the future")),
            ("tomorrow", BAD_TIME),
            ("2099-13-01T00:00:00Z", BAD_TIME),
        ]:
            assert prompts.call("schedule_time", time=time, **common) == refusal
        every = prompts.call("schedule_every", every="5m", start_at="2000-01-01T00:00:00Z", **common)
        assert every == error("Start time must be in the future")
        assert prompts.call("schedule_every", every="5m", start_at="soon", **common) == BAD_TIME
    assert prompts.listed(include_cancelled=True) == []


def test_check_05_times_are_utc(prompts):
    spellings = [
        "2099-01-01 10:00:00 UTC",
        "2099-01-01T10:00:00Z",
        "2099-01-01T12:00:00+02:00",
        "2099-01-01T10:00:00",
    ]
    for time in spellings:
        answer = prompts.call("schedule_time", prompt="p", time=time, agent_id="a1")
        assert answer["next_run"] == "2099-01-01T10:00:00+00:00", time
    assert [schedule["schedule_value"] for schedule in prompts.listed()] == spellings


def test_check_06_cron_is_utc_and_has_five_fields(prompts):
    def cron(expression: str) -> dict:
        return prompts.call("schedule_cron", prompt="p", cron=expression, agent_id="a1")

    before = now()
    daily, weekdays, quarters = (
        time_of(cron(expression)["next_run"]) for expression in ("0 9 * * *", "0 9 * * MON-FRI", "*/15 * * * *")
    )
    assert (daily.hour, daily.minute, daily.second) == (9, 0, 0)
    assert timedelta() < daily - before <= timedelta(days=1, seconds=1)
    assert (weekdays.hour, weekdays.minute) == (9, 0) and weekdays.weekday() < 5
    assert timedelta() < weekdays - before <= timedelta(days=3, seconds=1)
    assert quarters.minute % 15 == 0 and quarters.second == 0
    assert timedelta() < quarters - before <= timedelta(minutes=15, seconds=1)
    for expression in ("not a cron", "* * * *", "0 0 9 * * *", "61 * * * *", "0 0 31 2 *", "@reboot", "0 9 ? * *"):
        assert cron(expression) == error(f"Invalid cron expression: {expression}")


def test_check_07_intervals(prompts):
    for every, seconds in [("45", 45), (45, 45), ("30s", 30), ("5m", 300), ("1h", 3600)]:
        before = now()
        answer = prompts.call("schedule_every", prompt="p", every=every, agent_id="a1")
        scheduled(answer)
        wait = time_of(answer["next_run"]) - before
        # The answer's whole seconds are cut off, not rounded.
        assert timedelta(seconds=seconds - 1) <= wait <= timedelta(seconds=seconds + 1), every
    for every in ("5x", "0", "-1m", "1d", "1.5h", "", 0, -5):
        refused = prompts.call("schedule_every", prompt="p", every=every, agent_id="a1")
        assert refused == error(f"Invalid interval format: {every}. Use formats like '30s', '5m', '1h'")
    assert len(prompts.listed()) == 5


def test_check_08_repetitions_are_counted(prompts, letta):
    made = scheduled(
        prompts.call("schedule_every", prompt="p", every="1s", max_repetitions="2", agent_id="a1")
    )
    [first] = prompts.execute_when_due()
    assert time_of(first.pop("next_run")) > now() - timedelta(seconds=1)
    shown = {"id": made, "agent_id": "a1", "delivered": True, "max_repetitions": 2}
    assert first == {**shown, "repetition_count": 1, "completed": False}
    last = prompts.the_one()["next_run"]
    [second] = prompts.execute_when_due()
    assert second == {**shown, "next_run": None, "repetition_count": 2, "completed": True}
    over = prompts.the_one()
    assert (over["active"], over["repetition_count"], over["next_run"]) == (False, 2, last)
    assert prompts.call("execute")["executed"] == []
    assert len(letta.posts) == 2

    for most, text in [
        (0, "max-repetitions must be a positive integer"),
        ("-1", "max-repetitions must be a positive integer"),
        ("abc", "max-repetitions must be a valid integer"),
    ]:
        refused = prompts.call("schedule_every", prompt="p", every="1s", max_repetitions=most, agent_id="a1")
        assert refused == error(text)


def test_check_09_an_agent_that_is_unknown_and_one_that_is_not_named(prompts, letta, start, client_of, nowhere):
    refused = prompts.call("schedule_time", prompt="p", time=FAR, agent_id="x")
    assert refused == error("Agent validation failed: Agent x not found")
    assert prompts.call("schedule_time", prompt="p", time=FAR) == NOT_INFERRED
    assert prompts.call("schedule_cron", prompt="p", cron="nonsense") == NOT_INFERRED
    assert prompts.call("schedule_every", prompt=" ", every="nonsense") == NOT_INFERRED
    no_prompt = prompts.call("schedule_every", prompt=" ", every="nonsense", agent_id="a1")
    assert no_prompt == error("Missing required arguments: agent-id and prompt")
    assert prompts.listed(include_cancelled=True) == []
    assert [seen.path for seen in letta.seen] == ["/v1/agents/x"]

    without_letta = client_of(start(LETTA_BASE_URL=nowhere))
    refused = without_letta.call("schedule_time", prompt="p", time=FAR, agent_id="x")
    assert refused["error"].startswith("Agent validation failed: Failed to validate agent x: ")
    scheduled(without_letta.call("schedule_time", prompt="p", time=FAR, agent_id="x", skip_validation=True))


def test_check_10_the_agent_of_a_call_is_inferred(start, client_of, transport):
    server = start(LETTA_AGENT_ID=" e ")
    prompts = client_of(server)

    def inferred(by: Prompts = prompts, meta: dict | None = None, **arguments) -> tuple:
        """Whose prompt it becomes, and how the diagnostics explain it."""
        made = scheduled(
            by.call("schedule_time", meta, prompt="p", time=FAR, skip_validation=True, **arguments)
        )
        [agent] = [schedule["agent_id"] for schedule in by.listed() if schedule["id"] == made]
        told = by.call("inference_diagnostics", meta)
        if not arguments:
            assert told["inferred_agent_id"] == agent
        return agent, told["inference_debug"]["source"], told["inference_debug"]["key"]

    assert inferred(meta={"agent_id": "a"}) == ("a", "context.metadata", "agent_id")
    assert inferred(meta={"agent": {"id": "b"}}) == ("b", "context.metadata.nested", "agent.id")
    assert inferred(meta={"metadata": {"letta_agent_id": "m"}}) == ("m", "context.metadata", "letta_agent_id")
    from_environment = ("e", "env", "LETTA_AGENT_ID")
    assert inferred() == from_environment
    assert inferred(agent_id="null") == from_environment
    assert inferred(agentId="None") == from_environment
    assert inferred(meta={"agent_id": 5}) == from_environment
    for spelling in ("agent_id", "agentId", "agent-id"):
        assert inferred(**{spelling: " x "}) == ("x", *from_environment[1:])

    # What a client's library adds of its own is metadata, too.
    told = prompts.call("inference_diagnostics", {"agent_id": 5, "zebra": 1})
    assert set(told.pop("ctx_metadata_keys")) >= {"agent_id", "zebra"}
    assert set(told["inference_debug"].pop("context_metadata_keys")) >= {"agent_id", "zebra"}
    checked = {"PROMPTYOSELF_DEFAULT_AGENT_ID": False, "LETTA_AGENT_ID": True, "LETTA_DEFAULT_AGENT_ID": False}
    assert told == {
        "status": "ok",
        "ctx_present": True,
        "ctx_agent_id_attr": None,
        "env": checked,
        "single_agent_fallback_enabled": False,
        "agents_count": None,
        "inferred_agent_id": "e",
        "inference_debug": {
            "source": "env",
            "key": "LETTA_AGENT_ID",
            "env_checked": checked,
            "single_agent_fallback": False,
            "agents_count": None,
        },
    }
    # Standard streams have no headers.
    if transport != "stdio":
        letta_server = client_of(server, headers={"X-Agent-Id": "c"})
        assert inferred(letta_server) == ("c", "context.attr", "agent_id")
        assert inferred(letta_server, meta={"agentId": "a"}) == ("a", "context.metadata", "agentId")
        assert letta_server.call("inference_diagnostics")["ctx_agent_id_attr"] == "c"


@pytest.mark.parametrize("toolset", ["promptyoself", "all"])
def test_a_client_over_stdio_has_an_environment_of_its_own(start, client_of, toolset):
    server = start(PROMPTYOSELF_DEFAULT_AGENT_ID="server")
    server.toolset = toolset
    own = {"LETTA_DEFAULT_AGENT_ID": "last", "LETTA_AGENT_ID": " mine "}
    with_own = client_of(server, "stdio", environment=own)
    without = client_of(server, "stdio", environment={"LETTA_AGENT_ID": " "})
    for client, agent, name in [
        (with_own, "mine", "LETTA_AGENT_ID"),
        (without, "server", "PROMPTYOSELF_DEFAULT_AGENT_ID"),
    ]:
        made = scheduled(client.call("schedule_time", prompt="p", time=FAR, skip_validation=True))
        assert [schedule["id"] for schedule in without.listed(agent_id=agent)] == [made]
        told = client.call("inference_diagnostics")
        assert told["inferred_agent_id"] == agent
        assert (told["inference_debug"]["source"], told["inference_debug"]["key"]) == ("env", name)
        is_own = client is with_own
        assert told["env"] == told["inference_debug"]["env_checked"] == {
            "PROMPTYOSELF_DEFAULT_AGENT_ID": True,
            "LETTA_AGENT_ID": is_own,
            "LETTA_DEFAULT_AGENT_ID": is_own,
        }
    # What a tool set counts for all, as it did within one process.
    with_own.call("set_default_agent", agent_id="y")
    assert with_own.call("inference_diagnostics")["inferred_agent_id"] == "y"


@pytest.mark.http_only
def test_only_a_bridge_tells_variables(start, client_of):
    forged = {"X-Switchboard-Bridge": "b", "X-Switchboard-Variable": "LETTA_AGENT_ID=forged"}
    client = client_of(start(), headers=forged)
    told = client.call("inference_diagnostics")
    assert (told["inferred_agent_id"], told["env"]["LETTA_AGENT_ID"]) == (None, False)


def test_check_11_each_session_has_a_default_of_its_own(start, client_of, transport):
    server = start(PROMPTYOSELF_DEFAULT_AGENT_ID="env")
    first, second, third = (client_of(server, era="legacy") for _ in range(3))
    for client, agent in ((first, " one "), (second, "two")):
        answer = client.call("set_scoped_default_agent", agent_id=agent)
        scope = client.call("get_scoped_default_agent")["scope"]
        assert (scope == "stdio") is (transport == "stdio")
        assert answer == {
            "status": "success",
            "message": f"Scoped default agent set for {scope}",
            "agent_id": agent.strip(),
        }
    assert first.call("set_scoped_default_agent", agent_id=" ") == error("agent_id cannot be empty")
    for client, agent, source in [
        (first, "one", "scoped-default"),
        (second, "two", "scoped-default"),
        (third, "env", "env"),
    ]:
        made = scheduled(client.call("schedule_time", prompt="p", time=FAR, skip_validation=True))
        assert [schedule["id"] for schedule in client.listed(agent_id=agent)] == [made]
        assert client.call("inference_diagnostics")["inference_debug"]["source"] == source
    unset = third.call("get_scoped_default_agent")
    assert (unset["status"], unset["agent_id"]) == ("ok", None)
    told = first.call("inference_diagnostics")["inference_debug"]
    assert told["scope"] == first.call("get_scoped_default_agent")["scope"]
    assert "key" not in told


@pytest.mark.http_only
def test_the_scope_of_an_http_session_is_its_id(start):
    http = Http(start())
    accept = {"Accept": "application/json, text/event-stream"}
    introduction = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "by hand", "version": "1"},
    }
    session = http.rpc("initialize", introduction, **accept).headers["mcp-session-id"]
    within = {**accept, "Mcp_Session_Id": session}
    initialized = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
    http.request("POST", "/mcp", initialized, Content_Type="application/json", **within)
    call = {"name": "promptyoself_get_scoped_default_agent", "arguments": {}}
    reply = http.rpc("tools/call", call, **within)
    [data] = [line[6:] for line in reply.body.splitlines() if line.startswith(b"data: ")]
    answer = json.loads(data)["result"]["structuredContent"]
    assert answer == {"status": "ok", "scope": session, "agent_id": None}
    http.close()


@pytest.mark.skipif(SDK_MAJOR < 2, reason="SDK 1.x always opens a session")
@pytest.mark.http_only
def test_a_call_without_a_session_has_no_scope(prompts):
    assert prompts.call("set_scoped_default_agent", agent_id="a") == error(
        "Unable to derive a client/session identity from context; cannot set scoped default"
    )
    assert prompts.call("get_scoped_default_agent") == {"status": "ok", "scope": None, "agent_id": None}


def test_check_12_a_default_that_was_set_beats_every_variable(start, client_of):
    server = start(PROMPTYOSELF_DEFAULT_AGENT_ID="x")
    prompts = client_of(server)
    assert prompts.call("set_default_agent", agent_id="") == error("agent_id cannot be empty")
    assert prompts.call("set_default_agent", agent_id=" y ") == {
        "status": "success",
        "message": "Default agent ID set to: y",
        "agent_id": "y",
        "note": "This setting only applies to the current server session",
    }
    scheduled(prompts.call("schedule_time", prompt="p", time=FAR, skip_validation=True))
    assert prompts.the_one()["agent_id"] == "y"
    told = client_of(server).call("inference_diagnostics")
    assert told["env"] == {
        "PROMPTYOSELF_DEFAULT_AGENT_ID": True,
        "LETTA_AGENT_ID": True,
        "LETTA_DEFAULT_AGENT_ID": False,
    }
    assert (told["inferred_agent_id"], told["inference_debug"]["key"]) == ("y", "LETTA_AGENT_ID")


def test_check_13_the_only_agent_is_taken_if_that_is_allowed(start, client_of, letta):
    prompts = client_of(start(PROMPTYOSELF_USE_SINGLE_AGENT_FALLBACK="yes"))
    scheduled(prompts.call("schedule_time", prompt="p", time=FAR))
    assert prompts.the_one()["agent_id"] == "a1"
    told = prompts.call("inference_diagnostics")
    assert (told["agents_count"], told["single_agent_fallback_enabled"]) == (1, True)
    assert told["inference_debug"]["source"] == "single-agent-fallback"

    letta.agents.append({**letta.agents[0], "id": "a2"})
    assert prompts.call("schedule_time", prompt="p", time=FAR) == NOT_INFERRED
    told = prompts.call("inference_diagnostics")
    assert (told["agents_count"], told["inferred_agent_id"]) == (2, None)


def test_check_14_cancelling(prompts):
    first, second = (
        scheduled(prompts.call("schedule_cron", prompt="p", cron="@daily", agent_id="a1")) for _ in range(2)
    )
    due = {schedule["id"]: schedule["next_run"] for schedule in prompts.listed()}
    assert prompts.call("cancel", schedule_id=first) == {
        "status": "success",
        "cancelled_id": first,
        "message": f"Schedule {first} cancelled",
    }
    not_found = "Schedule {} not found or already cancelled"
    assert prompts.call("cancel", schedule_id=first) == error(not_found.format(first))
    assert prompts.call("cancel", schedule_id=999) == error(not_found.format(999))
    assert prompts.call("cancel", schedule_id=-1) == error(not_found.format(-1))
    assert prompts.call("cancel", schedule_id="abc") == error("Schedule ID must be a number")
    assert prompts.call("cancel", schedule_id=1.5) == error("Schedule ID must be a number")
    assert prompts.call("cancel", schedule_id=str(second))["cancelled_id"] == second
    assert prompts.listed() == []
    cancelled = prompts.listed(include_cancelled=True)
    assert [schedule["active"] for schedule in cancelled] == [False, False]
    assert {schedule["id"]: schedule["next_run"] for schedule in cancelled} == due


@pytest.mark.http_only  # Once is enough of three seconds of waiting.
def test_check_15_a_server_that_stumbles_is_asked_three_times(prompts, letta):
    letta.replies.extend([Reply(500), Reply(500), Reply(200)])
    scheduled(prompts.call("schedule_every", prompt="p", every="1s", max_repetitions=1, agent_id="a1"))
    [entry] = prompts.execute_when_due()
    assert (entry["delivered"], entry["completed"]) == (True, True)
    first, second, third = letta.posts
    assert second.at - first.at >= 1
    assert third.at - second.at >= 2
    assert first.headers["idempotency-key"] == third.headers["idempotency-key"]


def test_check_16_what_was_not_delivered_stays_due(prompts, letta):
    # A status that is not about the moment is not asked again within the attempt, which saves the waiting of check 15.
    letta.default = Reply(400, {"detail": "not now"})
    made = scheduled(prompts.call("schedule_every", prompt="p", every="1s", max_repetitions=1, agent_id="a1"))
    due = prompts.the_one()["next_run"]
    for _ in range(2):
        [entry] = prompts.execute_when_due()
        assert entry == {
            "id": made,
            "agent_id": "a1",
            "delivered": False,
            "error": "Failed to deliver prompt",
            "next_run": due,
        }
        shown = prompts.the_one()
        assert (shown["active"], shown["repetition_count"], shown["next_run"]) == (True, 0, due)
        assert shown["last_run"] is not None
    letta.default = Reply()
    [entry] = prompts.execute_when_due()
    assert (entry["delivered"], entry["repetition_count"], entry["completed"]) == (True, 1, True)


def test_check_17_an_agent_may_think_before_it_answers(prompts, letta):
    reply = Reply.held()
    letta.replies.append(reply)
    scheduled(prompts.call("schedule_every", prompt="p", every="1s", max_repetitions=1, agent_id="a1"))
    prompts.wait_until_due()
    passing = prompts.start("execute", {})
    letta.wait_for_posts(1)
    # Others need not wait, and do not deliver it once more.
    assert prompts.call("health")["status"] == "healthy"
    assert prompts.call("execute")["executed"] == []
    assert not passing.done()
    reply.go.set()
    [entry] = answer_in(passing.result(10))["executed"]
    assert entry["delivered"] is True
    assert len(letta.posts) == 1


def test_check_18_passes_at_once_deliver_each_prompt_once(start, client_of, letta):
    letta.agents.extend({**letta.agents[0], "id": f"b{n}"} for n in range(3))
    server = start()
    prompts = client_of(server)
    for number, agent in enumerate(["a1", "b0", "b1", "b2", "a1"]):
        prompts.call("schedule_every", prompt=f"p{number}", every="1s", max_repetitions=1, agent_id=agent)
    prompts.wait_until_due()
    clients = [client_of(server) for _ in range(10)]
    with ThreadPoolExecutor(10) as at_once:
        passed = list(at_once.map(lambda client: client.call("execute")["executed"], clients))
    delivered = [entry for entries in passed for entry in entries]
    assert sorted(entry["repetition_count"] for entry in delivered) == [1] * 5
    assert sorted(prompt for _, prompt in letta.prompts()) == [f"p{n}" for n in range(5)]
    of_one = [prompt for agent, prompt in letta.prompts() if agent == "a1"]
    assert of_one == ["p0", "p4"]


@pytest.mark.http_only  # Like check 15.
def test_check_19_what_was_missed_is_made_up_for_once(start, client_of, letta):
    # In small: an interval of two seconds, of which more than two pass without a server.
    server = start()
    prompts = client_of(server)
    answer = prompts.call("schedule_every", prompt="p", every="2s", agent_id="a1")
    made, first = scheduled(answer), time_of(answer["next_run"])
    server.stop()
    until(lambda: now() > first + timedelta(seconds=3), 10, "missed time")
    server.start()
    prompts = client_of(server)
    [entry] = prompts.call("execute")["executed"]
    assert (entry["id"], entry["delivered"], entry["repetition_count"]) == (made, True, 1)
    late = time_of(entry["next_run"]) - first
    assert late >= timedelta(seconds=4) and late.total_seconds() % 2 == 0
    assert timedelta(seconds=-1) <= time_of(entry["next_run"]) - now() <= timedelta(seconds=2)
    assert len(letta.posts) == 1


def test_check_20_schedules_survive_a_restart(start, client_of):
    server = start()
    before = client_of(server)
    before.call("schedule_every", prompt="p", every="1s", agent_id="a1")
    before.call("schedule_time", prompt="q", time=FAR, agent_id="a1")
    cancelled = scheduled(before.call("schedule_cron", prompt="r", cron="@yearly", agent_id="a1"))
    before.call("cancel", schedule_id=cancelled)
    before.execute_when_due()
    before.call("set_default_agent", agent_id="gone")
    kept = before.listed(include_cancelled=True)
    server.stop()
    server.start()
    after_it = client_of(server)
    assert after_it.listed(include_cancelled=True) == kept
    assert after_it.call("inference_diagnostics")["inferred_agent_id"] is None
    made = scheduled(after_it.call("schedule_time", prompt="s", time=FAR, agent_id="a1"))
    assert made > max(schedule["id"] for schedule in kept)


def test_check_21_a_loop_passes_until_it_is_cancelled(start, client_of, letta):
    server = start()
    prompts, other = client_of(server), client_of(server)
    for interval in ("x", 0, -1, 1.5):
        refused = prompts.call("execute", loop=True, interval=interval)
        assert refused == error("Interval must be a number (seconds)")
    assert other.call("executor_status") == {"status": "ok", "running": False, "interval": 60}

    prompts.call("schedule_every", prompt="p", every="1s", agent_id="a1")
    loop = prompts.start("execute", {"loop": True, "interval": 1})
    letta.wait_for_posts(2)
    assert other.call("executor_status")["running"] is True
    assert other.call("health")["status"] == "healthy"
    assert not loop.done()
    prompts.cancel_call(loop)
    until(lambda: other.call("executor_status")["running"] is False, 5, "end of the loop")
    assert prompts.call("health")["status"] == "healthy"
    # What is due from now on waits for somebody to ask.
    seen = len(letta.posts)
    repeated = prompts.the_one()["repetition_count"]
    [entry] = prompts.execute_when_due()
    assert entry["repetition_count"] == repeated + 1
    assert len(letta.posts) == seen + 1


def test_a_loop_ends_with_the_server(start, client_of):
    server = start()
    prompts, other = client_of(server), client_of(server)
    # SDK 1.x checks an answer against the list of tools, which it fetches after the call if it does not have it.
    prompts.tools()
    loop = prompts.start("execute", {"loop": True})
    until(lambda: other.call("executor_status")["running"], 5, "loop")
    server.stop()
    assert answer_in(loop.result(10)) == {"status": "success", "message": "Scheduler loop completed"}


def test_check_22_the_executor_delivers_what_is_due(start, client_of, letta):
    prompts = client_of(
        start(PROMPTYOSELF_EXECUTOR_AUTOSTART="true", PROMPTYOSELF_EXECUTOR_INTERVAL="1")
    )
    assert prompts.call("executor_status") == {"status": "ok", "running": True, "interval": 1}
    # The first failure is tried again at the pace of the executor.
    letta.replies.append(Reply(400))
    scheduled(prompts.call("schedule_time", prompt="p", time=after(0.3), agent_id="a1"))
    letta.wait_for_posts(2)
    until(lambda: prompts.listed() == [], 5, "end of the prompt")
    assert prompts.the_one()["repetition_count"] == 1


def test_the_executor_is_on_by_default_and_says_how_it_is_set(start, client_of):
    on = client_of(start(PROMPTYOSELF_EXECUTOR_AUTOSTART="YES", PROMPTYOSELF_EXECUTOR_INTERVAL="soon"))
    assert on.call("executor_status") == {"status": "ok", "running": True, "interval": None}
    off = client_of(start(PROMPTYOSELF_EXECUTOR_AUTOSTART="on"))
    assert off.call("executor_status") == {"status": "ok", "running": False, "interval": 60}


def test_health_tells_the_settings(start, client_of, letta):
    server = start(LETTA_SERVER_PASSWORD="secret")
    assert client_of(server).call("health") == {
        "status": "healthy",
        "letta_base_url": letta.url,
        "db": str(server.data_dir / "journal.db"),
        "auth_set": True,
        "executor_autostart": False,
        "executor_interval": 60,
    }
    assert client_of(start()).call("health")["auth_set"] is False
    assert letta.seen == []


def test_check_23_upload(start, client_of, letta):
    without = client_of(start())
    missing = error("Missing LETTA_API_KEY or LETTA_SERVER_PASSWORD")
    assert without.call("upload", source_code=FUNCTION) == missing
    assert without.call("upload", source_code="") == missing
    assert letta.seen == []

    prompts = client_of(start(LETTA_SERVER_PASSWORD="second", LETTA_API_KEY="first"))
    letta.replies.append(Reply(200, {"id": "tool-1", "name": "twice", "tags": []}))
    uploaded = prompts.call("upload", source_code=FUNCTION, name="for the log", description="Doubles")
    assert uploaded == {"status": "success", "tool_id": "tool-1", "name": "twice"}
    [put] = letta.seen
    assert (put.method, put.path) == ("PUT", "/v1/tools/")
    assert put.headers["authorization"] == "Bearer first"
    assert put.body == {"source_code": FUNCTION, "description": "Doubles"}

    letta.replies.append(Reply(401, {"detail": "Unauthorized"}))
    assert prompts.call("upload", source_code=FUNCTION) == error("Upload failed: HTTP 401: Unauthorized")
    assert "description" not in letta.seen[-1].body


def test_check_24_test_and_agents(start, client_of, letta, nowhere):
    letta.agents = [{**letta.agents[0], "id": f"agent-{n}"} for n in range(120)]
    letta.agents[0]["description"] = "First"
    del letta.agents[1]["created_at"], letta.agents[1]["updated_at"]
    prompts = client_of(start())
    assert prompts.call("test") == {
        "status": "success",
        "message": "Connected",
        "agent_count": 120,
        "details": {"base_url": letta.url, "agent_count": 120},
    }
    listed = prompts.call("agents")
    assert (listed["status"], listed["count"]) == ("success", 120)
    assert [agent["id"] for agent in listed["agents"]] == [f"agent-{n}" for n in range(120)]
    assert listed["agents"][:2] == [
        {
            "id": "agent-0",
            "name": "A1",
            "description": "First",
            "created_at": "2025-01-01T09:00:00Z",
            "last_updated": "2025-01-02T09:00:00Z",
        },
        {"id": "agent-1", "name": "A1", "description": "", "created_at": None, "last_updated": None},
    ]

    without = client_of(start(LETTA_BASE_URL=nowhere))
    assert without.call("test")["error"].startswith("Failed to test connection: ")
    assert without.call("agents")["error"].startswith("Failed to list agents: ")


def test_check_25_a_delivery_under_way_ends_and_is_the_last(prompts, letta):
    reply = Reply.held()
    letta.replies.append(reply)
    made = scheduled(prompts.call("schedule_every", prompt="p", every="1s", agent_id="a1"))
    prompts.wait_until_due()
    due = prompts.the_one()["next_run"]
    passing = prompts.start("execute", {})
    letta.wait_for_posts(1)
    assert prompts.call("cancel", schedule_id=made)["cancelled_id"] == made
    assert prompts.listed() == []
    reply.go.set()
    [entry] = answer_in(passing.result(10))["executed"]
    assert (entry["id"], entry["delivered"]) == (made, True)
    shown = prompts.the_one()
    assert (shown["active"], shown["repetition_count"], shown["next_run"]) == (False, 1, due)
    assert prompts.call("cancel", schedule_id=made) == error(f"Schedule {made} not found or already cancelled")
    assert prompts.call("execute")["executed"] == []


PROMPTYOSELF_TABLE = """
CREATE TABLE schedules (
    id INTEGER NOT NULL PRIMARY KEY, agent_id VARCHAR NOT NULL, prompt_text TEXT NOT NULL,
    schedule_type VARCHAR NOT NULL, schedule_value VARCHAR NOT NULL, next_run DATETIME NOT NULL, active BOOLEAN,
    created_at DATETIME, last_run DATETIME, max_repetitions INTEGER, repetition_count INTEGER
)
"""


def test_prompts_of_a_running_promptyoself_are_imported_once(start, client_of, letta, tmp_path):
    server = start()
    prompts = client_of(server)
    file = tmp_path / "promptyoself.db"
    past = (now() - timedelta(minutes=25)).replace(microsecond=0, tzinfo=None)
    made = "2025-01-01 09:00:00.000001"
    rows = [
        (1, "a1", "Late", "interval", "10m", f"{past}.000000", 1, made, f"{past}.5", 5, 2),
        (2, "a1", "Far", "once", FAR, "2099-01-01 10:00:00.000000", 1, made, None, None, 0),
        (3, "a1", "Over", "once", "2025-01-01T10:00:00Z", "2025-01-01 10:00:00.000000", 0, made, None, None, 1),
        (4, "a1", "Wrong", "cron", "61 * * * *", "2099-01-01 10:00:00.000000", 1, made, None, None, 0),
    ]
    with closing(sqlite3.connect(file, isolation_level=None)) as promptyoself:
        promptyoself.execute("PRAGMA journal_mode = WAL")
        promptyoself.execute(PROMPTYOSELF_TABLE)
        promptyoself.executemany("INSERT INTO schedules VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

        def imported(*flags: str, code: int) -> dict:
            command = [binary(), "import", "promptyoself", file, "--json", "--data-dir", server.data_dir, *flags]
            run = subprocess.run(command, capture_output=True, text=True, timeout=20)
            assert run.returncode == code, run
            answer = json.loads(run.stdout)
            assert answer["inactive"] == 1
            return {schedule["row"]: schedule["outcome"] for schedule in answer["schedules"]}

        assert imported(code=0) == {1: "new", 2: "new", 4: "refused"}
        assert prompts.listed(include_cancelled=True) == []
        assert imported("--apply", code=1) == {1: "imported", 2: "imported", 4: "refused"}
        assert imported("--apply", code=1) == {1: "imported_before", 2: "imported_before", 4: "refused"}
        assert promptyoself.execute("SELECT count(*) FROM schedules").fetchone() == (4,)

    late, far = prompts.listed()
    assert late["next_run"] == f"{past.isoformat()}+00:00" and far["next_run"] == "2099-01-01T10:00:00+00:00"
    assert (late["schedule_type"], late["schedule_value"], late["prompt_text"]) == ("interval", "10m", "Late")
    assert (late["repetition_count"], late["max_repetitions"]) == (2, 5)
    assert late["last_run"] == f"{past.isoformat()}+00:00"
    assert (far["schedule_type"], far["schedule_value"], far["repetition_count"]) == ("once", FAR, 0)
    [entry] = prompts.call("execute")["executed"]
    assert (entry["id"], entry["repetition_count"]) == (late["id"], 3)
    grid = time_of(entry["next_run"]) - past.replace(tzinfo=timezone.utc)
    assert grid == timedelta(minutes=30)
    assert letta.prompts() == [("a1", "Late")]


def test_import_wants_a_server_and_a_database(start, tmp_path):
    server = start()
    server.stop()
    file = tmp_path / "promptyoself.db"

    def said(code: int) -> str:
        command = [binary(), "import", "promptyoself", file, "--data-dir", server.data_dir]
        run = subprocess.run(command, capture_output=True, text=True, timeout=20)
        assert run.returncode == code, run
        return run.stderr

    assert f"there is no file '{file}'" in said(1)
    with closing(sqlite3.connect(file)) as promptyoself:
        promptyoself.execute(PROMPTYOSELF_TABLE)
    assert "no server runs on the data directory" in said(4)


@pytest.mark.http_only
@pytest.mark.parametrize("path", ["/mcp", "/mcp/promptyoself"])
def test_bare_scripts_are_served_without_a_session(start, path):
    http = Http(start())
    assert http.call("promptyoself_agents", path)["count"] == 1
    http.close()


@pytest.mark.http_only
def test_compat_listens_where_promptyoself_did(start, client_of):
    try:
        start(SWITCHBOARD_COMPAT="1")
    except AssertionError as ended:
        if "it is in use" not in str(ended):
            raise
        pytest.skip("a port that compat needs is in use on this machine")
    for transport in ("http", "sse"):
        there = SimpleNamespace(url=lambda path: f"http://127.0.0.1:8000{path}")
        assert client_of(there, over=transport).call("health")["status"] == "healthy"
