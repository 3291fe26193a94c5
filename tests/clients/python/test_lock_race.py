"""Eight clients want the same file. Exactly one may have it, each time."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from agents import Agent
from raw import Http

pytestmark = pytest.mark.http_only

CLIENTS = 8
ROUNDS = 500
SDK_ROUNDS = 25


def winner_of(answers: dict[str, dict]) -> str:
    """The one session that was granted the lock; every other one is told that session's name."""
    winners = [session for session, answer in answers.items() if answer["status"] == "locked"]
    assert len(winners) == 1, f"granted to {winners}"
    [winner] = winners
    for session, answer in answers.items():
        if session != winner:
            assert answer["status"] == "conflict", answer
            assert answer["lock_info"]["session"] == winner, answer
    return winner


@pytest.mark.timeout(120)
def test_500_rounds_have_one_winner_each(server, project):
    sessions = [f"racer-{number}" for number in range(CLIENTS)]
    connections = {session: Http(server) for session in sessions}
    for session, connection in connections.items():
        connection.call(
            "register_agent", project_id=project, session_name=session, task_id="1", branch="b", description="d"
        )
    together = Barrier(CLIENTS)

    def race(session: str, number: int) -> dict:
        together.wait(timeout=10)
        return connections[session].call(
            "announce_file_change",
            project_id=project,
            session_name=session,
            file_path="src/hot.rs",
            change_type="modify",
            description=f"round {number}",
        )

    wins = dict.fromkeys(sessions, 0)
    with ThreadPoolExecutor(CLIENTS) as pool:
        for number in range(ROUNDS):
            started = {session: pool.submit(race, session, number) for session in sessions}
            winner = winner_of({session: answer.result(timeout=10) for session, answer in started.items()})
            wins[winner] += 1
            released = connections[winner].call(
                "release_file_lock", project_id=project, session_name=winner, file_path="src/hot.rs"
            )
            assert released["status"] == "released"
    assert sum(wins.values()) == ROUNDS
    assert len([session for session, won in wins.items() if won]) > 1, f"not a race: {wins}"
    for connection in connections.values():
        connection.close()


def test_sdk_clients_race_as_well(connect, project):
    racers = [Agent(connect(), project, f"racer-{number}") for number in range(CLIENTS)]
    by_session = {racer.session: racer for racer in racers}
    for racer in racers:
        racer.register()
    for number in range(SDK_ROUNDS):
        change = {"file_path": "src/hot.rs", "change_type": "modify", "description": f"round {number}"}
        started = {racer.session: racer.start("announce_file_change", **change) for racer in racers}
        winner = winner_of({session: answer.result(timeout=10).value for session, answer in started.items()})
        by_session[winner].call("release_file_lock", file_path="src/hot.rs")
