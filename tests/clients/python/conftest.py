"""What the tests are given: a server, clients to it over the chosen transport, and a team of three agents."""

import uuid
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from anyio.from_thread import start_blocking_portal

from agents import Agent, Client
from sdk import connected
from server import Server


def pytest_addoption(parser):
    parser.addoption("--transport", choices=["http", "sse", "stdio"], default="http", help="how clients connect")


def pytest_collection_modifyitems(config, items):
    transport = config.getoption("--transport")
    if transport != "http":
        deselected = [item for item in items if item.get_closest_marker("http_only")]
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if not item.get_closest_marker("http_only")]


@pytest.fixture(scope="session")
def transport(request) -> str:
    return request.config.getoption("--transport")


@pytest.fixture(scope="session")
def server(tmp_path_factory) -> Server:
    """The server that tests share; each has a project of its own."""
    started = Server(tmp_path_factory.mktemp("shared") / "data").start()
    yield started
    started.stop()


@pytest.fixture
def own_server(tmp_path):
    """Starts servers that a test has for itself, with its own environment."""
    with ExitStack() as started:

        def start(**environment) -> Server:
            own = Server(tmp_path / f"data-{uuid.uuid4().hex[:8]}", environment)
            started.callback(own.stop)
            return own.start()

        yield start


@pytest.fixture(scope="session")
def portal():
    """The event loop in which the SDK's clients live."""
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture
def connect(portal, server, transport):
    """Opens clients, each on a connection of its own, and closes them after the test."""
    with ExitStack() as opened:

        def open_client(to: Server = server, over: str = transport) -> Client:
            connection = opened.enter_context(portal.wrap_async_context_manager(connected(to, over)))
            return Client(portal, connection)

        yield open_client


@pytest.fixture
def project() -> str:
    return f"p-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def agent(connect, project):
    """Makes agents: each has a client of its own and is not registered yet."""

    def make(session: str, to: Server | None = None, within: str = project) -> Agent:
        client = connect() if to is None else connect(to)
        return Agent(client, within, session)

    return make


@pytest.fixture
def team(agent):
    """A, B and C of the contract, registered."""
    return team_of(agent)


def team_of(agent, **where):
    members = [agent(f"task-{number:03}", **where) for number in (1, 2, 3)]
    for member in members:
        member.register()
    return SimpleNamespace(a=members[0], b=members[1], c=members[2])


@pytest.fixture
def team_on(agent):
    """The same team on a server of the test's own."""
    return lambda server: team_of(agent, to=server)


@pytest.fixture
def status_dir(tmp_path) -> Path:
    """A folder for completion files that does not exist yet."""
    return tmp_path / "not" / "there" / "yet"
