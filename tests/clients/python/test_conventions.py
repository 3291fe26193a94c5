"""What the contract asks of every tool: descriptions, tolerant input, precise refusals, limits, life cycles."""

import pytest

from agents import Agent, assert_invalid, error, not_registered

READ_ONLY = {
    "list_active_agents",
    "get_my_todos",
    "get_all_todos",
    "get_recent_changes",
    "query_interface",
    "list_interfaces",
}

# Beside `project_id`, which every tool requires: the required parameters, then the others.
PARAMETERS = {
    "register_agent": ("session_name task_id branch description", ""),
    "heartbeat": ("session_name", ""),
    "list_active_agents": ("", ""),
    "mark_task_completed": ("session_name task_id", ""),
    "unregister_agent": ("session_name", ""),
    "add_todo": ("session_name todo_item", "priority"),
    "update_todo": ("session_name todo_id status", ""),
    "get_my_todos": ("session_name", ""),
    "get_all_todos": ("", ""),
    "query_agent": ("from_session to_session query", "query_type wait_for_response timeout"),
    "check_messages": ("session_name", ""),
    "respond_to_query": ("from_session to_session message_id response", ""),
    "broadcast_message": ("session_name message_type content", ""),
    "announce_file_change": ("session_name file_path change_type", "description"),
    "release_file_lock": ("session_name file_path", ""),
    "get_recent_changes": ("", "limit"),
    "register_interface": ("session_name interface_name definition", "file_path"),
    "query_interface": ("interface_name", ""),
    "list_interfaces": ("", ""),
}


def test_all_nineteen_tools_are_described(connect):
    tools = {tool["name"]: tool for tool in connect().tools()}
    assert tools.keys() == PARAMETERS.keys()
    for name, (required, optional) in PARAMETERS.items():
        tool = tools[name]
        schema = tool["inputSchema"]
        assert tool["description"], name
        assert "outputSchema" not in tool, name
        assert schema["type"] == "object", name
        assert set(schema["required"]) == {"project_id", *required.split()}, name
        assert schema["properties"].keys() == {"project_id", *required.split(), *optional.split()}, name
        assert schema.get("additionalProperties", True) is True, name


def test_annotations_say_what_a_tool_may_do(connect):
    for tool in connect().tools():
        annotations = tool["annotations"]
        name = tool["name"]
        assert annotations["readOnlyHint"] is (name in READ_ONLY), name
        assert annotations["openWorldHint"] is False, name
        # MCP's default for tools that write is true, so a harmless one has to say so.
        if name not in READ_ONLY:
            assert annotations["destructiveHint"] is (name == "unregister_agent"), name


@pytest.mark.parametrize("tool", ["send_message", "get_active_agents", "Register_Agent"])
def test_an_unknown_tool_is_a_protocol_error(connect, project, tool):
    refusal = connect().protocol_error(tool, project_id=project)
    assert (refusal.code, refusal.message) == (-32602, f"Unknown tool: {tool}")


def test_numbers_and_flags_may_be_strings(team):
    team.a.call("add_todo", todo_item="x", priority="3")
    assert team.a.call("get_my_todos")["todos"][0]["priority"] == 3
    team.a.call("add_todo", todo_item="y", priority=2.0)
    assert team.a.call("get_my_todos")["todos"][1]["priority"] == 2

    sent = team.a.call("query_agent", to_session="task-002", query="?", wait_for_response="false", timeout="5")
    assert sent["status"] == "sent"
    answer = team.a.call("query_agent", to_session="task-002", query="?", wait_for_response="true", timeout="1")
    assert answer["status"] == "timeout"

    for number in range(3):
        team.a.call("announce_file_change", file_path=f"f{number}", change_type="create")
    assert len(team.a.call("get_recent_changes", limit="2")) == 2


def test_null_means_not_given(team):
    team.a.call("register_interface", interface_name="User", definition="interface User {}", file_path=None)
    assert team.a.call("query_interface", interface_name="User")["file_path"] is None
    team.a.call("add_todo", todo_item="x", priority=None)
    assert team.a.call("get_my_todos")["todos"][0]["priority"] == 1
    team.a.call("announce_file_change", file_path="f", change_type="create", description=None)
    assert team.a.call("get_recent_changes", limit=None)[0]["description"] == ""
    assert_invalid(team.a.refused("add_todo", todo_item=None), "todo_item")


def test_unknown_parameters_are_ignored(team):
    assert team.a.call("heartbeat", mood="fine", nested={"a": [1]})["status"] == "ok"


@pytest.mark.parametrize(
    "tool, without",
    [
        (tool, parameter)
        for tool, (required, _) in PARAMETERS.items()
        for parameter in ["project_id", *required.split()]
        # May be absent: it is then taken from the query.
        if (tool, parameter) != ("respond_to_query", "to_session")
    ],
)
def test_a_missing_parameter_is_named(connect, project, tool, without):
    values = {"status": "pending", "change_type": "modify"}
    names = ["project_id", *PARAMETERS[tool][0].split()]
    arguments = {name: values.get(name, project) for name in names if name != without}
    refusal = connect().refused(tool, **arguments)
    assert refusal == error(
        "error", "invalid_params", f"Missing required parameter: {without}", parameter=without
    )


@pytest.mark.parametrize(
    "tool, bad, value",
    [
        ("add_todo", "priority", 0),
        ("add_todo", "priority", 4),
        ("add_todo", "priority", "urgent"),
        ("add_todo", "priority", 1.5),
        ("add_todo", "todo_item", 7),
        ("query_agent", "timeout", 0),
        ("query_agent", "timeout", -1),
        ("query_agent", "timeout", "soon"),
        ("query_agent", "wait_for_response", "perhaps"),
        ("query_agent", "query_type", ""),
        ("query_agent", "to_session", "task-001"),
        ("broadcast_message", "message_type", ""),
        ("announce_file_change", "file_path", ""),
        ("announce_file_change", "change_type", "edit"),
        ("register_interface", "interface_name", ""),
        ("get_recent_changes", "limit", 0),
        ("get_recent_changes", "minutes", 0),
        ("update_todo", "status", "done"),
    ],
)
def test_a_bad_value_is_named_and_changes_nothing(team, tool, bad, value):
    good = {
        "add_todo": {"todo_item": "x"},
        "query_agent": {"to_session": "task-002", "query": "?", "wait_for_response": False},
        "broadcast_message": {"message_type": "info", "content": "x"},
        "announce_file_change": {"file_path": "f", "change_type": "modify"},
        "register_interface": {"interface_name": "User", "definition": "x"},
        "get_recent_changes": {},
        "update_todo": {"todo_id": "todo-1.000000"},
    }[tool]
    assert_invalid(team.a.refused(tool, **{**good, bad: value}), bad)
    assert team.a.call("get_my_todos")["todos"] == []
    assert team.b.call("check_messages") == []
    assert team.a.call("get_recent_changes") == []
    assert team.a.call("list_interfaces") == {}


def test_a_query_to_oneself_says_so(team):
    refusal = team.a.refused("query_agent", to_session="task-001", query="?")
    assert refusal["error"] == "Invalid value for to_session: cannot query yourself"


def test_values_above_a_range_are_clamped(team):
    sent = team.a.call("query_agent", to_session="task-002", query="?", wait_for_response=False, timeout=999_999)
    assert sent["status"] == "sent"
    for number in range(102):
        team.a.call("announce_file_change", file_path=f"f{number}", change_type="create")
    assert len(team.a.call("get_recent_changes", limit=5000)) == 100


class TestSpellings:
    """§6.1: names that older servers used are accepted beside the document's; the document's win."""

    def test_priorities_have_names(self, team):
        for name in ("high", "MEDIUM", "Low"):
            team.a.call("add_todo", task=name, priority=name)
        assert [todo["priority"] for todo in team.a.call("get_my_todos")["todos"]] == [1, 2, 3]

    def test_cancelled_is_blocked(self, team):
        todo_id = team.a.call("add_todo", todo_item="x")["todo_id"]
        assert team.a.call("update_todo", todo_id=todo_id, status="cancelled")["new_status"] == "blocked"
        assert team.a.call("get_my_todos")["todos"][0]["status"] == "blocked"

    def test_query_and_its_answer(self, team):
        sent = team.b.client.call(
            "query_agent",
            project_id=team.b.project,
            session_name="task-002",
            target_session="task-001",
            query="?",
            wait_for_response=False,
        )
        answered = team.a.client.call(
            "respond_to_query",
            project_id=team.a.project,
            session_name="task-001",
            query_id=sent["message_id"],
            response="!",
        )
        assert answered == {"status": "response_sent", "to": "task-002"}
        assert [message["content"] for message in team.b.call("check_messages")] == ["!"]

    def test_an_answer_to_somebody_else_is_refused(self, team):
        message_id = team.b.ask(team.a, "?")
        wrong = {"to_session": "task-003", "message_id": message_id, "response": "!"}
        assert_invalid(team.a.refused("respond_to_query", **wrong), "to_session")
        assert team.a.call("respond_to_query", **{**wrong, "to_session": "task-002"})["status"] == "response_sent"

    def test_broadcast_from_session(self, team):
        sent = team.a.client.call(
            "broadcast_message",
            project_id=team.a.project,
            from_session="task-001",
            message_type="info",
            content="x",
        )
        assert sent["recipients"] == 2

    def test_operation_is_a_change_type(self, team):
        assert team.a.call("announce_file_change", file_path="f", operation="delete")["status"] == "locked"
        assert team.a.call("get_recent_changes")[0]["change_type"] == "delete"

    def test_minutes_filter_recent_changes(self, team):
        team.a.call("announce_file_change", file_path="f", change_type="create")
        team.a.call("announce_file_change", file_path="g", change_type="create")
        assert len(team.a.call("get_recent_changes", minutes=5)) == 2
        assert len(team.a.call("get_recent_changes", minutes="5", limit=1)) == 1

    def test_interface_name(self, team):
        team.a.call("register_interface", name="User", definition="interface User {}", description="dropped")
        found = team.a.call("query_interface", name="User")
        assert found.keys() == {"definition", "registered_by", "file_path", "timestamp"}
        assert (found["definition"], found["registered_by"]) == ("interface User {}", "task-001")

    def test_the_documents_spelling_wins(self, team):
        team.a.call("add_todo", todo_item="document", task="other")
        assert team.a.call("get_my_todos")["todos"][0]["text"] == "document"
        team.a.call("register_interface", interface_name="Document", name="Other", definition="x")
        assert team.a.call("list_interfaces").keys() == {"Document"}


class TestSizes:
    """Rule 12: names up to 1024 characters, texts up to 1 MiB."""

    MIB = 1 << 20

    def test_a_text_of_one_mebibyte_passes(self, team):
        text = "x" * self.MIB
        team.a.call("broadcast_message", message_type="info", content=text)
        assert [message["content"] for message in team.b.call("check_messages")] == [text]

    @pytest.mark.parametrize(
        "tool, parameter, rest",
        [
            ("broadcast_message", "content", {"message_type": "info"}),
            ("add_todo", "todo_item", {}),
            ("register_interface", "definition", {"interface_name": "User"}),
            ("announce_file_change", "description", {"file_path": "f", "change_type": "modify"}),
        ],
    )
    def test_a_longer_text_is_refused(self, team, tool, parameter, rest):
        assert_invalid(team.a.refused(tool, **rest, **{parameter: "x" * (self.MIB + 1)}), parameter)
        assert team.b.call("check_messages") == []

    def test_names_have_1_to_1024_characters(self, team):
        path = "ä" * 1024
        change = {"change_type": "modify", "description": ""}
        assert team.a.call("announce_file_change", file_path=path, **change)["file_path"] == path
        assert_invalid(team.a.refused("announce_file_change", file_path=path + "ä", **change), "file_path")
        for project in ("", "p" * 1025):
            assert_invalid(team.a.client.refused("list_active_agents", project_id=project), "project_id")

    def test_any_character_is_allowed(self, agent, project):
        odd = agent("task ☃/\n\"';--\u0000", within=f"{project} 🦀:*")
        odd.register()
        assert odd.call("list_active_agents").keys() == {odd.session}
        assert odd.call("unregister_agent")["status"] == "unregistered"


class TestLifeCycles:
    """§4, rules 2, 3 and 8, and the tables of §4.1 and §4.2."""

    def test_registering_again_keeps_locks_and_messages_but_no_todos(self, team):
        team.a.call("add_todo", todo_item="x")
        team.a.call("announce_file_change", file_path="f", change_type="modify")
        team.b.ask(team.a, "unread")
        team.a.call("mark_task_completed", task_id="001")

        again = team.a.call("register_agent", task_id="9", branch="b", description="d")
        assert again["status"] == "registered"
        assert again["other_active_agents"] == ["task-002", "task-003"]
        described = team.a.call("list_active_agents")["task-001"]
        assert (described["status"], described["task_id"]) == ("active", "9")
        assert team.a.call("get_my_todos")["todos"] == []
        assert team.b.call("announce_file_change", file_path="f", change_type="modify")["status"] == "conflict"
        assert [message["content"] for message in team.a.call("check_messages")] == ["unread"]

    def test_unregistering_frees_locks_and_forgets_messages(self, team):
        team.a.call("announce_file_change", file_path="f", change_type="modify")
        team.a.call("register_interface", interface_name="User", definition="x")
        team.b.ask(team.a, "never read")
        team.a.call("unregister_agent")

        assert team.a.call("unregister_agent") == not_registered("task-001", team.a.project)
        assert team.b.call("announce_file_change", file_path="f", change_type="modify")["status"] == "locked"
        assert team.b.call("query_interface", interface_name="User")["registered_by"] == "task-001"
        assert [change["session"] for change in team.b.call("get_recent_changes")] == ["task-002", "task-001"]
        team.a.register()
        assert team.a.call("check_messages") == []

    def test_completion_keeps_locks(self, team):
        team.a.call("announce_file_change", file_path="f", change_type="modify")
        team.a.call("mark_task_completed", task_id="001")
        team.a.call("mark_task_completed", task_id="001")
        assert team.b.call("announce_file_change", file_path="f", change_type="modify")["status"] == "conflict"
        assert team.a.call("heartbeat")["status"] == "ok"

    def test_announcing_again_refreshes_the_lock(self, team):
        team.a.call("announce_file_change", file_path="f", change_type="create", description="first")
        team.a.call("announce_file_change", file_path="f", change_type="refactor", description="second")
        conflict = team.b.call("announce_file_change", file_path="f", change_type="modify")
        assert conflict["lock_info"]["change_type"] == "refactor"
        assert conflict["lock_info"]["description"] == "second"
        descriptions = [change["description"] for change in team.b.call("get_recent_changes")]
        assert descriptions == ["second", "first"]

    def test_a_wait_ends_when_the_one_asked_leaves(self, team):
        waiting = team.b.start("query_agent", to_session="task-001", query="?", timeout=30)
        team.a.next_messages()
        team.a.call("unregister_agent")
        assert waiting.result(timeout=2).value == error(
            "not_found", "agent_not_found", f"Agent task-001 not found in project {team.a.project}"
        )

    def test_a_wait_ends_when_the_one_who_asked_leaves(self, team):
        waiting = team.b.start("query_agent", to_session="task-001", query="?", timeout=30)
        team.a.next_messages()
        team.b.call("unregister_agent")
        # With which of the errors is left open.
        assert waiting.result(timeout=2).value["details"]["code"] in {"not_registered", "agent_not_found"}

    def test_only_the_addressee_answers(self, team):
        message_id = team.b.ask(team.a, "?")
        foreign = team.c.call("respond_to_query", to_session="task-002", message_id=message_id, response="!")
        assert foreign == error("not_found", "message_not_found", f"Message {message_id} not found")
        assert team.b.call("check_messages") == []

    def test_an_answer_to_one_who_left(self, team):
        message_id = team.b.ask(team.a, "?")
        team.b.call("unregister_agent")
        answer = team.a.call("respond_to_query", to_session="task-002", message_id=message_id, response="!")
        assert answer["status"] == "not_found"
        assert answer["details"]["code"] in {"agent_not_found", "message_not_found"}

    def test_the_last_definition_of_an_interface_wins(self, team):
        team.a.call("register_interface", interface_name="User", definition="1", file_path="a.ts")
        team.b.call("register_interface", interface_name="User", definition="2")
        found = team.c.call("query_interface", interface_name="User")
        assert (found["definition"], found["registered_by"], found["file_path"]) == ("2", "task-002", None)
        assert team.c.call("list_interfaces") == {"User": found}

    def test_similar_names_contain_each_other_in_any_case(self, team):
        for name in ("user", "UserProfile", "Order"):
            team.a.call("register_interface", interface_name=name, definition="x")
        assert team.a.call("query_interface", interface_name="USERP")["similar"] == ["user", "UserProfile"]
        assert team.a.call("query_interface", interface_name="Invoice")["similar"] == []


def test_strict_limits_refuse_instead_of_bending(own_server, team_on):
    team = team_on(own_server(A2AMCP_STRICT_RATE_LIMITS="1"))
    # Whether registering counts as a beat is left open: the second heartbeat is early either way.
    team.a.call("heartbeat")
    early = team.a.call("heartbeat")
    assert early == error(
        "error",
        "rate_limited",
        "Rate limit exceeded: min 10 seconds between heartbeats",
        retry_after_seconds=early["details"]["retry_after_seconds"],
    )
    assert 1 <= early["details"]["retry_after_seconds"] <= 10

    for _ in range(10):
        assert team.b.call("check_messages") == []
    team.a.ask(team.b, "still queued")
    excess = team.b.call("check_messages")
    assert excess == error(
        "error",
        "rate_limited",
        "Rate limit exceeded: max 10 message checks per minute",
        retry_after_seconds=excess["details"]["retry_after_seconds"],
    )
    assert 1 <= excess["details"]["retry_after_seconds"] <= 60


def test_events_are_queued_when_asked_for(own_server, agent):
    server = own_server(A2AMCP_EVENTS="1")
    watcher = agent("watcher", to=server)
    watcher.register()
    actor = Agent(watcher.client, watcher.project, "actor")
    actor.register()
    todo_id = actor.call("add_todo", todo_item="x")["todo_id"]
    actor.call("update_todo", todo_id=todo_id, status="completed")
    actor.call("announce_file_change", file_path="f", change_type="modify")
    actor.call("release_file_lock", file_path="f")
    actor.call("register_interface", interface_name="User", definition="x")
    actor.call("unregister_agent")

    events = watcher.call("check_messages")
    assert [event["event"] for event in events] == [
        "agent_joined",
        "todo_completed",
        "file_change_announced",
        "file_lock_released",
        "interface_registered",
        "agent_left",
    ]
    for event in events:
        assert event.keys() == {"id", "from", "type", "event", "content", "timestamp", "requires_response"}
        assert (event["from"], event["type"], event["requires_response"]) == ("actor", "event", False)
        assert isinstance(event["content"], str) and event["content"]


def test_without_events_queues_hold_only_messages(team):
    team.a.call("announce_file_change", file_path="f", change_type="modify")
    team.a.call("unregister_agent")
    assert team.b.call("check_messages") == []
