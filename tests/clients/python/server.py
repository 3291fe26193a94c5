"""A Switchboard of its own: started on a free port, stopped, or killed."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

START_WITHIN = 10.0
STOP_WITHIN = 10.0
GLANCE = 0.005


def binary() -> str:
    """The server under test, built by `cargo xtask test`."""
    path = os.environ.get("SWITCHBOARD_BIN")
    if not path:
        raise RuntimeError("SWITCHBOARD_BIN must name the server; `cargo xtask test python` sets it")
    return path


class Server:
    """One process with one listener whose bare `/mcp` shows one catalogue."""

    def __init__(self, data_dir: Path, environment: dict[str, str] | None = None, toolset: str = "a2amcp"):
        self.data_dir = data_dir
        self.toolset = toolset
        # What agents leave for their orchestrator must not end up in a shared folder of the machine.
        self.environment = {"SPLITMIND_STATUS_DIR": str(data_dir / "status"), **(environment or {})}
        self.log = data_dir.with_name(data_dir.name + ".log")
        self.address = ""
        self._process: subprocess.Popen | None = None

    def start(self) -> "Server":
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [binary(), "serve", "--data-dir", str(self.data_dir), "--listen", f"127.0.0.1:0={self.toolset}"],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.address = self._wait_for_address()
        return self

    def stop(self) -> None:
        """Asks the server to end and waits until it has."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_WITHIN)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the server did not stop within {STOP_WITHIN} s of SIGTERM") from None
        self._process = None

    def kill(self) -> None:
        """`kill -9`: no chance to save anything."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def url(self, path: str) -> str:
        return f"http://{self.address}{path}"

    def described(self) -> dict:
        """What the server wrote about itself: pid, listeners, token."""
        return json.loads((self.data_dir / "server.json").read_text())

    def _wait_for_address(self) -> str:
        deadline = time.monotonic() + START_WITHIN
        while time.monotonic() < deadline:
            address = self._address_if_ready()
            if address:
                return address
            if self._process.poll() is not None:
                raise AssertionError(f"the server ended with {self._process.returncode}:\n{self.log.read_text()}")
            time.sleep(GLANCE)
        raise AssertionError(f"the server was not ready within {START_WITHIN} s:\n{self.log.read_text()}")

    def _address_if_ready(self) -> str | None:
        try:
            described = self.described()
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        # After a kill the file of the dead process is still there.
        if described["pid"] != self._process.pid:
            return None
        return described["listeners"][0]["address"]
