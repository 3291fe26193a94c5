"""The official Python SDK behind one face, whether it is mcp 1.x or 2.x, on whichever transport."""

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from mcp import StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from server import Server, binary

SDK_MAJOR = int(version("mcp").split(".")[0])

if SDK_MAJOR >= 2:
    from mcp import Client as SdkClient
    from mcp.shared.exceptions import MCPError as SdkError
else:
    from mcp import ClientSession
    from mcp import McpError as SdkError
    from mcp.types import CancelledNotification, CancelledNotificationParams, ClientNotification


class ProtocolError(Exception):
    """A JSON-RPC error, as opposed to a tool's own answer."""

    def __init__(self, code: int, message: str):
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Answer:
    """What a tool answered: the JSON of its one text item."""

    value: Any
    is_error: bool


class Connection:
    """A connected client. Its methods are coroutines of the loop it was opened in."""

    def __init__(self, session):
        self._session = session

    async def call(self, tool: str, arguments: dict[str, Any]) -> Answer:
        return as_answer(await self.result(tool, arguments))

    async def result(self, tool: str, arguments: dict[str, Any], meta: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result as it came, without a look at what it says."""
        try:
            result = await self._session.call_tool(tool, arguments, meta=meta)
        except SdkError as error:
            raise ProtocolError(error.error.code, error.error.message) from error
        return on_the_wire(result)

    async def withdraw(self) -> None:
        """Tells the server that nobody wants the answer to the last request. SDK 2.x does so when a call is cancelled."""
        if SDK_MAJOR < 2:
            # The SDK counts its requests and tells nobody.
            last = self._session._request_id - 1
            await self._session.send_notification(cancelled(last))

    async def tools(self) -> list[dict[str, Any]]:
        """The tools as `tools/list` describes them."""
        return on_the_wire(await self._session.list_tools())["tools"]


def cancelled(request_id: int):
    params = CancelledNotificationParams(requestId=request_id, reason="no longer wanted")
    return ClientNotification(CancelledNotification(method="notifications/cancelled", params=params))


def on_the_wire(model) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def as_answer(result: dict[str, Any]) -> Answer:
    """Checks the envelope that every tool of the catalogue has: one text item, no structured content."""
    assert "structuredContent" not in result, result
    [item] = result["content"]
    assert item["type"] == "text", item
    return Answer(value=json.loads(item["text"]), is_error=result.get("isError", False))


@asynccontextmanager
async def connected(
    server: Server,
    transport: str,
    headers: dict[str, str] | None = None,
    era: str = "auto",
    environment: dict[str, str] | None = None,
):
    """An initialized connection to `server`. Of the era `legacy` it has a session also with SDK 2.x. The environment is that
    of the process which a client over stdio starts."""
    async with _streams(server, transport, headers, environment) as (read, write):
        if SDK_MAJOR >= 2:
            async with SdkClient(_Opened(read, write), mode=era) as client:
                yield Connection(client)
        else:
            async with ClientSession(read, write) as session:
                await session.initialize()
                yield Connection(session)


@asynccontextmanager
async def _streams(
    server: Server, transport: str, headers: dict[str, str] | None, environment: dict[str, str] | None
):
    if transport == "http":
        async with (
            create_mcp_http_client(headers) as http_client,
            streamable_http_client(server.url("/mcp"), http_client=http_client) as streams,
        ):
            yield streams[0], streams[1]
    elif transport == "sse":
        async with sse_client(server.url("/sse"), headers) as streams:
            yield streams[0], streams[1]
    elif transport == "stdio":
        bridge = StdioServerParameters(
            command=binary(),
            args=["mcp", "--toolset", server.toolset, "--data-dir", str(server.data_dir)],
            env=environment,
        )
        with server.log.open("a") as log:
            async with stdio_client(bridge, errlog=log) as streams:
                yield streams[0], streams[1]
    else:
        raise ValueError(f"unknown transport {transport!r}")


class _Opened:
    """Streams that are open already, in the shape that the 2.x client enters by itself."""

    def __init__(self, read, write):
        self._streams = (read, write)

    async def __aenter__(self):
        return self._streams

    async def __aexit__(self, *_):
        return None
