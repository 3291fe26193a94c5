"""The acceptance checks of the A2AMCP contract, in its order and with its numbers."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from agents import Agent, assert_invalid, error, not_registered, until

TIMESTAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
MESSAGE = "Successfully registered. {} other agents are active in this project."


def test_check_01_registering_names_the_others(agent, project):
    a, b, c = agent("task-001"), agent("task-002"), agent("task-003")
    assert a.register() == {
        "status": "registered",
        "project_id": project,
        "session_name": "task-001",
        "other_active_agents": [],
        "message": MESSAGE.format(0),
    }
    assert b.register()["message"] == MESSAGE.format(1)
    third = c.register()
    assert third["other_active_agents"] == ["task-001", "task-002"]
    assert third["message"] == MESSAGE.format(2)


def test_check_02_active_agents_are_a_map_of_five_keys(team, project):
    listed = team.a.call("list_active_agents")
    assert listed.keys() == {"task-001", "task-002", "task-003"}
    for number in ("001", "002", "003"):
        described = listed[f"task-{number}"]
        assert TIMESTAMP.match(described.pop("started_at"))
        assert described == {
            "task_id": number,
            "branch": f"feature/{number}",
            "description": f"Task {number}",
            "status": "active",
        }
    assert team.a.client.call("list_active_agents", project_id=f"{project}-unknown") == {}


def test_check_03_projects_do_not_see_each_other(team, agent, project):
    there = agent("task-001", within=f"{project}-q")
    there.register()
    asker = agent("task-002", within=f"{project}-q")
    asker.register()

    asker.ask(there, "only there")
    assert team.a.call("check_messages") == []
    assert [message["content"] for message in there.call("check_messages")] == ["only there"]

    there.call("add_todo", todo_item="only there", priority=1)
    assert team.a.call("get_my_todos")["todos"] == []
    assert team.a.call("get_all_todos")["task-001"]["todos"] == []

    change = {"file_path": "src/a.ts", "change_type": "modify", "description": "both"}
    assert there.call("announce_file_change", **change)["status"] == "locked"
    assert team.b.call("announce_file_change", **change)["status"] == "locked"


def test_check_04_completed_at_follows_the_status(team):
    added = team.a.call("add_todo", todo_item="x", priority=1)
    assert added["status"] == "added"
    assert re.match(r"^todo-\d+\.\d{6}$", added["todo_id"])
    assert added["message"] == "Added todo: x"

    todo = {"todo_id": added["todo_id"]}
    updated = team.a.call("update_todo", **todo, status="completed")
    assert updated == {"status": "updated", **todo, "new_status": "completed"}
    mine = team.a.call("get_my_todos")
    assert (mine["session_name"], mine["total"]) == ("task-001", 1)
    [stored] = mine["todos"]
    assert stored.keys() == {"id", "text", "status", "priority", "created_at", "completed_at"}
    assert TIMESTAMP.match(stored["created_at"]) and TIMESTAMP.match(stored["completed_at"])

    team.a.call("update_todo", **todo, status="pending")
    [stored] = team.a.call("get_my_todos")["todos"]
    assert (stored["status"], stored["completed_at"]) == ("pending", None)


def test_check_05_older_spellings_of_a_todo(team):
    assert team.a.call("add_todo", task="x", priority="high")["status"] == "added"
    [stored] = team.a.call("get_my_todos")["todos"]
    assert (stored["text"], stored["priority"]) == ("x", 1)


def test_check_06_a_bad_status_and_a_foreign_todo_change_nothing(team):
    todo_id = team.a.call("add_todo", todo_item="x", priority=1)["todo_id"]
    before = team.a.call("get_my_todos")

    assert_invalid(team.a.refused("update_todo", todo_id=todo_id, status="done"), "status")
    assert team.b.call("update_todo", todo_id=todo_id, status="completed") == error(
        "not_found", "todo_not_found", f"Todo {todo_id} not found"
    )
    assert team.a.call("get_my_todos") == before


def test_check_07_unregistering_sums_up_the_todos(team):
    ids = [team.a.call("add_todo", todo_item=f"todo {n}", priority=1)["todo_id"] for n in range(5)]
    for todo_id in ids[:4]:
        team.a.call("update_todo", todo_id=todo_id, status="completed")
    assert team.a.call("unregister_agent") == {
        "status": "unregistered",
        "todo_summary": {"total": 5, "completed": 4, "pending": 1, "in_progress": 0},
        "message": "Successfully unregistered. Completed 4/5 todos.",
    }


def test_check_08_waiting_query_gets_the_answer(team):
    waiting = team.b.start(
        "query_agent", to_session="task-001", query_type="interface", query="Which fields?", timeout=10
    )
    [query] = team.a.next_messages()
    assert TIMESTAMP.match(query["timestamp"])
    assert query == {
        "id": query["id"],
        "from": "task-002",
        "type": "query",
        "query_type": "interface",
        "content": "Which fields?",
        "timestamp": query["timestamp"],
        "requires_response": True,
    }

    answered = team.a.call("respond_to_query", to_session="task-002", message_id=query["id"], response="id, email")
    answered_at = time.monotonic()
    assert answered == {"status": "response_sent", "to": "task-002"}
    assert waiting.result(timeout=1).value == {"status": "received", "response": "id, email"}
    assert time.monotonic() - answered_at < 1
    assert team.b.call("check_messages") == []


def time_out(team) -> dict:
    """A query of B to A that nobody answers in its one second; returns what A finds in its queue."""
    asked_at = time.monotonic()
    answer = team.b.call("query_agent", to_session="task-001", query="Anyone?", timeout=1)
    assert 1 <= time.monotonic() - asked_at < 2
    [query] = team.a.call("check_messages")
    assert answer == error(
        "timeout",
        "timeout",
        "No response received within 1 seconds",
        message_id=query["id"],
        to="task-001",
    )
    return query


def test_check_09_an_unanswered_query_times_out_and_stays_queued(team):
    query = time_out(team)
    assert (query["type"], query["query_type"], query["content"]) == ("query", "help", "Anyone?")


def test_check_10_a_late_answer_is_queued_once(team):
    query = time_out(team)
    late = {"to_session": "task-002", "message_id": query["id"], "response": "I am here"}

    assert team.a.call("respond_to_query", **late) == {"status": "response_sent", "to": "task-002"}
    [response] = team.b.call("check_messages")
    assert TIMESTAMP.match(response["timestamp"])
    assert response == {
        "id": f"response-{query['id']}",
        "from": "task-001",
        "type": "response",
        "response_to": query["id"],
        "content": "I am here",
        "timestamp": response["timestamp"],
        "requires_response": False,
    }

    assert team.a.call("respond_to_query", **late) == error(
        "not_found", "message_not_found", f"Message {query['id']} not found"
    )
    assert team.b.call("check_messages") == []


def test_check_11_a_query_without_waiting_returns_its_id(team):
    message_id = team.b.ask(team.a, "When you can")
    assert re.match(r"^task-002-\d+\.\d+$", message_id)
    [query] = team.a.call("check_messages")
    assert (query["id"], query["requires_response"]) == (message_id, False)


def test_check_12_a_query_to_nobody(team, project):
    expected = error("not_found", "agent_not_found", f"Agent task-999 not found in project {project}")
    for wait in (True, False):
        asked = {"to_session": "task-999", "query": "Anyone?", "wait_for_response": wait, "timeout": 5}
        assert team.a.call("query_agent", **asked) == expected


def test_check_13_parallel_checks_share_the_queue(team, connect):
    sent = [f"message {n}" for n in range(100)]
    for content in sent:
        team.b.call("broadcast_message", message_type="info", content=content)

    twin = Agent(connect(), team.a.project, team.a.session)
    checks = [team.a.start("check_messages"), twin.start("check_messages")]
    parts = [[message["content"] for message in check.result().value] for check in checks]

    assert sorted(parts[0] + parts[1], key=sent.index) == sent
    for part in parts:
        assert part == sorted(part, key=sent.index)


def test_check_14_a_broadcast_reaches_the_others(team):
    assert team.a.call("broadcast_message", message_type="warning", content="Careful") == {
        "status": "broadcast_sent",
        "recipients": 2,
    }
    for receiver in (team.b, team.c):
        [message] = receiver.call("check_messages")
        assert TIMESTAMP.match(message["timestamp"]) and message["id"]
        assert message == {
            "id": message["id"],
            "from": "task-001",
            "type": "broadcast",
            "message_type": "warning",
            "content": "Careful",
            "timestamp": message["timestamp"],
            "requires_response": False,
        }
    assert team.a.call("check_messages") == []


def test_check_15_parallel_announcements_have_one_winner(team):
    for number in range(20):
        change = {"file_path": f"src/{number}.ts", "change_type": "modify", "description": "race"}
        calls = [(who, who.start("announce_file_change", **change)) for _ in range(25) for who in (team.a, team.b)]
        answers = [(who, call.result().value) for who, call in calls]

        winners = {who.session for who, answer in answers if answer["status"] == "locked"}
        losers = {who.session for who, answer in answers if answer["status"] == "conflict"}
        assert winners | losers == {"task-001", "task-002"}
        assert len(winners) == len(losers) == 1
        [winner] = winners
        assert {answer["lock_info"]["session"] for _, answer in answers if "lock_info" in answer} == {winner}


def test_check_16_a_held_file_conflicts_however_it_is_spelled(team):
    held = {"change_type": "modify", "description": "Adding profile fields"}
    assert team.a.call("announce_file_change", file_path="src/a.ts", **held) == {
        "status": "locked",
        "file_path": "src/a.ts",
        "message": "File locked successfully. Remember to release when done.",
    }
    for spelling in ("./src//a.ts", "src/./a.ts", "src/b/../a.ts", "src\\a.ts"):
        conflict = team.b.call("announce_file_change", file_path=spelling, change_type="delete", description="")
        assert TIMESTAMP.match(conflict["lock_info"]["locked_at"])
        assert conflict == {
            "status": "conflict",
            "error": "File is locked by task-001",
            "lock_info": {"session": "task-001", "locked_at": conflict["lock_info"]["locked_at"], **held},
            "suggestion": "Query that agent about their progress or wait",
        }

    refused = team.b.refused("announce_file_change", file_path="src/free.ts", change_type="edit", description="")
    assert_invalid(refused, "change_type")
    free = team.c.call("announce_file_change", file_path="src/free.ts", change_type="create", description="")
    assert free["status"] == "locked"
    assert team.c.call("announce_file_change", file_path="SRC/A.ts", change_type="create")["status"] == "locked"


def test_check_17_only_the_owner_releases(team):
    path = {"file_path": "src/a.ts"}
    team.a.call("announce_file_change", **path, change_type="refactor", description="mine")

    refused = team.b.call("release_file_lock", **path)
    lock_info = refused["details"]["lock_info"]
    assert refused == error("error", "file_locked", "File is locked by task-001, not you", lock_info=lock_info)
    assert (lock_info["session"], lock_info["change_type"]) == ("task-001", "refactor")
    conflict = team.b.call("announce_file_change", **path, change_type="modify", description="")
    assert (conflict["status"], conflict["lock_info"]) == ("conflict", lock_info)

    assert team.a.call("release_file_lock", **path) == {"status": "released", "file_path": "src/a.ts"}
    assert team.a.call("release_file_lock", **path) == {"status": "not_locked", "message": "File was not locked"}


def test_check_18_recent_changes_are_newest_first(team):
    for number in range(30):
        team.a.call("announce_file_change", file_path=f"f{number}", change_type="create", description=f"d{number}")
    changes = team.a.call("get_recent_changes")
    assert [change["file_path"] for change in changes] == [f"f{number}" for number in range(29, 9, -1)]
    assert TIMESTAMP.match(changes[0]["timestamp"])
    assert changes[0] == {
        "session": "task-001",
        "file_path": "f29",
        "change_type": "create",
        "description": "d29",
        "timestamp": changes[0]["timestamp"],
    }
    assert team.a.call("get_recent_changes", limit=5) == changes[:5]


def test_check_19_a_missing_interface_names_similar_ones(team):
    for name in ("UserProfile", "Order", "UserAuth"):
        assert team.a.call("register_interface", interface_name=name, definition=f"interface {name} {{}}") == {
            "status": "registered",
            "interface_name": name,
            "message": "Interface registered and available to all agents",
        }
    assert team.b.call("query_interface", interface_name="User") == {
        "status": "not_found",
        "error": "Interface User not found",
        "similar": ["UserProfile", "UserAuth"],
    }


def test_check_20_completion_is_left_for_the_orchestrator(own_server, team_on, agent, status_dir):
    team = team_on(own_server(SPLITMIND_STATUS_DIR=str(status_dir)))
    completed = {"status": "success", "message": "Task TASK-123 marked as completed"}

    assert team.a.call("mark_task_completed", task_id="TASK-123") == completed
    assert (status_dir / "task-001.status").read_text() == "COMPLETED\n"
    assert team.a.call("list_active_agents")["task-001"]["status"] == "completed"

    stranger = Agent(team.a.client, team.a.project, "../never seen")
    assert stranger.call("mark_task_completed", task_id="TASK-123") == completed
    assert (status_dir / "_._never_seen.status").read_text() == "COMPLETED\n"
    assert "../never seen" not in team.a.call("list_active_agents")


def test_check_21_silence_ends_an_agent_and_its_locks(own_server, team_on):
    team = team_on(own_server(HEARTBEAT_TIMEOUT="2"))
    change = {"file_path": "src/a.ts", "change_type": "modify", "description": ""}
    assert team.a.call("announce_file_change", **change)["status"] == "locked"
    silent_since = time.monotonic()

    def locked() -> bool:
        """B asks again and again, and stays alive by that."""
        return team.b.call("announce_file_change", **change)["status"] == "locked"

    assert not locked()
    until(locked, 4, "free lock")
    assert 1.9 <= time.monotonic() - silent_since <= 3.5
    assert team.b.call("list_active_agents").keys() == {"task-002"}
    assert team.a.call("heartbeat") == not_registered("task-001", team.a.project)


def test_check_22_nothing_acknowledged_is_lost(own_server, team_on, agent):
    server = own_server()
    team = team_on(server)
    first = team.a.call("add_todo", todo_item="first", priority=2)["todo_id"]
    team.a.call("add_todo", todo_item="second", priority=3)
    team.a.call("update_todo", todo_id=first, status="completed")
    team.a.call("announce_file_change", file_path="src/a.ts", change_type="modify", description="held")
    team.b.call("register_interface", interface_name="User", definition="interface User {}", file_path="user.ts")
    team.b.call("mark_task_completed", task_id="002")
    asked = team.b.ask(team.a, "Still there?")
    team.c.call("broadcast_message", message_type="info", content="Hello")

    def visible(a: Agent) -> list:
        reads = ("list_active_agents", "get_all_todos", "list_interfaces", "get_recent_changes", "get_my_todos")
        return [a.call(tool) for tool in reads]

    before = visible(team.a)
    conflict = team.b.call("announce_file_change", file_path="src/a.ts", change_type="modify", description="")
    assert conflict["status"] == "conflict"

    server.kill()
    server.start()

    a, b = (agent(session, to=server) for session in ("task-001", "task-002"))
    assert visible(a) == before
    assert b.call("announce_file_change", file_path="src/a.ts", change_type="modify", description="") == conflict
    unread = a.call("check_messages")
    assert [(message["type"], message["content"]) for message in unread] == [
        ("query", "Still there?"),
        ("broadcast", "Hello"),
    ]
    assert unread[0]["id"] == asked
    answered = a.call("respond_to_query", to_session="task-002", message_id=asked, response="Yes")
    assert answered["status"] == "response_sent"
    assert [m["content"] for m in b.call("check_messages") if m["type"] == "response"] == ["Yes"]


def test_check_23_limits_spare_well_meant_clients(team):
    for number in range(100):
        team.a.ask(team.b, f"question {number}")
    limited = team.a.call("query_agent", to_session="task-002", query="one more", wait_for_response=False)
    retry_after = limited["details"]["retry_after_seconds"]
    assert isinstance(retry_after, int) and 1 <= retry_after <= 60
    assert limited == error(
        "error",
        "rate_limited",
        "Rate limit exceeded: max 100 queries per minute",
        retry_after_seconds=retry_after,
    )
    # The limit is A's own, and what it refuses is not delivered.
    team.c.ask(team.b, "from another")
    received = [message["content"] for message in team.b.call("check_messages")]
    assert received == [f"question {number}" for number in range(100)] + ["from another"]

    beats = [team.a.call("heartbeat") for _ in range(2)]
    assert TIMESTAMP.match(beats[0]["timestamp"])
    assert beats == [{"status": "ok", "timestamp": beats[0]["timestamp"]}] * 2
    for _ in range(15):
        assert team.c.call("check_messages") == []


NEEDS_REGISTRATION = {
    "heartbeat": {},
    "unregister_agent": {},
    "add_todo": {"todo_item": "x"},
    "update_todo": {"todo_id": "todo-1.000000", "status": "completed"},
    "get_my_todos": {},
    "query_agent": {"to_session": "task-001", "query": "Anyone?", "wait_for_response": False},
    "check_messages": {},
    "respond_to_query": {"to_session": "task-001", "message_id": "task-001-1.1", "response": "Yes"},
    "broadcast_message": {"message_type": "info", "content": "Hello"},
    "announce_file_change": {"file_path": "src/a.ts", "change_type": "modify", "description": ""},
    "release_file_lock": {"file_path": "src/a.ts"},
    "register_interface": {"interface_name": "User", "definition": "interface User {}"},
}


@pytest.mark.parametrize("tool", NEEDS_REGISTRATION)
def test_check_24_strangers_are_told_to_register(team, tool):
    stranger = Agent(team.a.client, team.a.project, "task-404")
    answer = stranger.call(tool, **NEEDS_REGISTRATION[tool])
    assert answer == not_registered("task-404", team.a.project)
    assert team.a.call("check_messages") == []


def test_check_25_a_client_over_stdio_sees_the_same_agents(team, connect, server):
    over_stdio = connect(server, "stdio")
    listed = over_stdio.call("list_active_agents", project_id=team.a.project)
    assert listed == team.a.call("list_active_agents")
    assert listed.keys() == {"task-001", "task-002", "task-003"}


def test_requests_of_one_connection_do_not_wait_for_each_other(team):
    """Rule 13 of the contract: a waiting question occupies only itself."""
    waiting = team.b.start("query_agent", to_session="task-001", query="Slow?", timeout=20)
    with ThreadPoolExecutor() as others:
        beats = list(others.map(lambda _: team.b.call("heartbeat")["status"], range(5)))
    assert beats == ["ok"] * 5
    assert not waiting.done()
    [query] = team.a.next_messages()
    team.a.call("respond_to_query", to_session="task-002", message_id=query["id"], response="No")
    assert waiting.result(timeout=5).value["response"] == "No"
