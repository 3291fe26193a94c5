"""JSON-RPC by hand over HTTP, as `curl` and small scripts speak it."""

import http.client
import itertools
import json
from dataclasses import dataclass
from typing import Any

from server import Server


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Http:
    """One keep-alive connection."""

    def __init__(self, server: Server, timeout: float = 30.0):
        self._connection = http.client.HTTPConnection(server.address, timeout=timeout)
        self._ids = itertools.count(1)

    def request(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        spelled = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, path, body, spelled)
        response = self._connection.getresponse()
        lowered = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, lowered, response.read())

    def rpc(self, method: str, params: dict | None = None, path: str = "/mcp", **headers: str) -> Reply:
        """A request as bare `curl -d` sends it: a content type and nothing else."""
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": method}
        if params is not None:
            message["params"] = params
        return self.request("POST", path, json.dumps(message).encode(), Content_Type="application/json", **headers)

    def call(self, tool: str, path: str = "/mcp", **arguments) -> Any:
        """What a tool answers, parsed."""
        reply = self.rpc("tools/call", {"name": tool, "arguments": arguments}, path)
        assert reply.status == 200, reply
        [item] = reply.json["result"]["content"]
        return json.loads(item["text"])

    def close(self) -> None:
        self._connection.close()
