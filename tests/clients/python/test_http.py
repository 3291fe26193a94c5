"""The HTTP edge as `curl`, browsers and careless clients meet it."""

import json
import socket

import pytest

from agents import until
from raw import Http

pytestmark = pytest.mark.http_only

INITIALIZE = {
    "protocolVersion": "2025-03-26",
    "capabilities": {},
    "clientInfo": {"name": "curl", "version": "8"},
}


@pytest.fixture
def http(server):
    connection = Http(server)
    yield connection
    connection.close()


@pytest.mark.parametrize("path", ["/mcp", "/", "/mcp/a2amcp"])
def test_bare_curl_is_served_without_a_session(http, project, path):
    initialized = http.rpc("initialize", INITIALIZE, path)
    assert initialized.status == 200
    assert initialized.headers["content-type"].startswith("application/json")
    assert initialized.json["result"]["protocolVersion"] == "2025-03-26"
    assert initialized.json["result"]["serverInfo"]["version"] == "1.0.0"

    listed = http.rpc("tools/list", None, path)
    assert len(listed.json["result"]["tools"]) == 19

    arguments = {"project_id": project, "session_name": "s", "task_id": "1", "branch": "b", "description": "d"}
    called = http.rpc("tools/call", {"name": "register_agent", "arguments": arguments}, path)
    assert called.headers["content-type"].startswith("application/json")
    result = called.json["result"]
    assert result.get("isError", False) is False
    assert "structuredContent" not in result
    [item] = result["content"]
    assert item["type"] == "text"
    assert json.loads(item["text"])["status"] == "registered"


def test_the_stateless_era_is_told_the_same_version(http):
    revision = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientInfo": {"name": "by hand", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    reply = http.rpc(
        "server/discover", {"_meta": meta}, MCP_Protocol_Version=revision, Mcp_Method="server/discover"
    )
    assert reply.status == 200, reply
    result = reply.json["result"]
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["version"] == "1.0.0"
    assert {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", revision} >= set(result["supportedVersions"])
    assert revision in result["supportedVersions"]


@pytest.mark.parametrize("accept", ["*/*", "application/json", "text/event-stream, application/json"])
def test_any_sensible_accept_header_is_served(http, accept):
    assert http.rpc("tools/list", Accept=accept).status == 200


def test_bad_json_is_a_parse_error(http):
    for body in (b"{", b"", b"not json", b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"'):
        reply = http.request("POST", "/mcp", body, Content_Type="application/json")
        assert reply.status == 400, body
        assert reply.json["error"]["code"] == -32700, body


def test_json_that_is_no_request_is_refused(http):
    for body in (b"7", b'"text"', b"{}", b'{"jsonrpc": "2.0", "id": 1}'):
        reply = http.request("POST", "/mcp", body, Content_Type="application/json")
        assert 400 <= reply.status < 500, body
        assert reply.json["error"]["code"] in (-32600, -32700), body


def test_deep_nesting_is_refused(http):
    deep = b"[" * 200_000
    reply = http.request("POST", "/mcp", deep, Content_Type="application/json")
    assert 400 <= reply.status < 500
    assert http.rpc("tools/list").status == 200


def test_an_unknown_tool_is_a_protocol_error(http):
    reply = http.rpc("tools/call", {"name": "send_message", "arguments": {}})
    assert reply.json["error"]["code"] == -32602
    assert reply.json["error"]["message"] == "Unknown tool: send_message"


def test_arguments_may_be_absent_or_null(http):
    for params in ({"name": "list_interfaces"}, {"name": "list_interfaces", "arguments": None}):
        result = http.rpc("tools/call", params).json["result"]
        assert result["isError"] is True
        refused = json.loads(result["content"][0]["text"])
        assert refused["error"] == "Missing required parameter: project_id"


def test_health_has_the_contracts_shape(http):
    reply = http.request("GET", "/health")
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("application/json")
    assert reply.json == {"status": "healthy", "service": "splitmind-mcp-server", "redis": "connected"}


def test_other_pages_do_not_exist(http):
    assert http.request("GET", "/no/such/page").status == 404


PATHS = ["/mcp", "/", "/mcp/a2amcp", "/mcp/coordination", "/sse", "/messages/", "/health"]


@pytest.mark.parametrize("path", PATHS)
def test_a_foreign_host_is_refused(http, path):
    """DNS rebinding: a page's own name that resolves to this machine."""
    method = "GET" if path in ("/sse", "/health") else "POST"
    reply = http.request(method, path, b"{}", Content_Type="application/json", Host="evil.example")
    assert reply.status == 403


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("origin", ["https://evil.example", "http://localhost.evil.example", "null"])
def test_a_foreign_origin_is_refused(http, path, origin):
    method = "GET" if path in ("/sse", "/health") else "POST"
    reply = http.request(method, path, b"{}", Content_Type="application/json", Origin=origin)
    assert reply.status == 403


def test_a_page_of_this_machine_is_served(http, server):
    for origin in (f"http://{server.address}", "http://localhost:3000"):
        assert http.rpc("tools/list", Origin=origin).status == 200


def test_a_body_beyond_the_limit_is_refused(server):
    """Only announced, not sent: the server says so without reading it."""
    host, port = server.address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(
            f"POST /mcp HTTP/1.1\r\nHost: {server.address}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {1 << 40}\r\n\r\n".encode()
        )
        status = connection.recv(1024).split(b" ", 2)[1]
    assert status == b"413"


def test_an_abandoned_question_is_answered_into_the_queue(server, http, project):
    """Rule 8: a wait ends with its connection; the question stays, and its answer is not lost."""
    for session in ("a", "b"):
        http.call(
            "register_agent", project_id=project, session_name=session, task_id="1", branch="b", description="d"
        )
    impatient = Http(server, timeout=0.3)
    with pytest.raises(TimeoutError):
        impatient.call(
            "query_agent", project_id=project, from_session="b", to_session="a", query="?", timeout=60
        )
    impatient.close()

    [query] = http.call("check_messages", project_id=project, session_name="a")
    answered = http.call(
        "respond_to_query",
        project_id=project,
        from_session="a",
        to_session="b",
        message_id=query["id"],
        response="!",
    )
    assert answered["status"] == "response_sent"
    [response] = until(lambda: http.call("check_messages", project_id=project, session_name="b"), 2, "answer")
    assert (response["type"], response["response_to"], response["content"]) == ("response", query["id"], "!")


def test_the_file_about_the_server_is_private(server):
    described = server.described()
    assert [listener["toolset"] for listener in described["listeners"]] == ["a2amcp"]
    assert described["token"]
    assert (server.data_dir / "server.json").stat().st_mode & 0o777 == 0o600


def test_a_clean_end_removes_the_file_about_the_server(own_server):
    server = own_server()
    server.stop()
    assert not (server.data_dir / "server.json").exists()
