"""Ctrl-C in separate processes, while each command waits for a model that never answers."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from programs import Program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
Start = Callable[..., Program]


@dataclass
class Silence:
    """A server that accepts connections and never answers."""

    listening: socket.socket
    taken: list[socket.socket] = field(default_factory=list)

    def take(self) -> None:
        """Accept connections until closed."""
        while True:
            try:
                self.taken.append(self.listening.accept()[0])
            except OSError:
                return

    @property
    def environment(self) -> dict[str, str]:
        """Settings that use it as the model."""
        url = f"http://127.0.0.1:{self.listening.getsockname()[1]}/v1"
        return {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none", "LLM_TIMEOUT_S": "600", "REQUEST_TIMEOUT_S": "600"}


@pytest.fixture
def silence() -> Iterator[Silence]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made = Silence(listening)
        thread = threading.Thread(target=made.take, daemon=True)
        thread.start()
        yield made
        listening.shutdown(socket.SHUT_RDWR)
    for each in made.taken:
        each.close()
    thread.join()


@pytest.fixture
def start() -> Iterator[Start]:
    """Start commands, and end all of them."""
    started: list[Program] = []

    def starting(cli: Any, *arguments: str) -> Program:
        started.append(cli.start(*arguments))
        return started[-1]

    yield starting
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _until(condition: Callable[[], bool], process: Program) -> None:
    deadline = time.monotonic() + 240
    while not condition():
        assert process.poll() is None, "it ended by itself"
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _interrupted(cli: Any, process: Program) -> tuple[int, str]:
    """Press Ctrl-C. Return the exit code and the last output. The time limit only ends a hanging test."""
    process.send_signal(signal.SIGINT)
    code = process.wait(timeout=60)
    assert process.stdout is not None
    process.stdout.close()
    errors = (cli.folder / "stderr.txt").read_text()
    assert "Traceback" not in errors
    return code, [line for line in errors.splitlines() if line.startswith(("interrupted", "stopped"))][-1]


def _notes(folder: Path) -> None:
    (folder / "notes").mkdir()
    (folder / "notes" / "bank.md").write_text("# Bank\n\nThe Kettle Bank was founded by Agnes Thorley in 1987 in Scarrow.\n")


def test_an_interrupted_local_ingestion_reports_what_continues(cli: Any, silence: Silence, start: Start) -> None:
    _notes(cli.folder)
    embeds = {"EMBEDDER": "openai", "EMBEDDING_DIMENSIONS": "8", **silence.environment}
    waiting = replace(cli, environment=embeds)
    process = start(waiting, "ingest", "notes")
    _until(lambda: len(silence.taken) > 1, process)  # the first one asks for the state of the model
    code, said = _interrupted(waiting, process)
    assert code == 130
    assert said.startswith("interrupted after 0 documents; other documents continue with the next command on DATA_DIR")
    assert len(waiting("jobs", "list", "--json").json) == 1


def test_each_interrupted_command_reports_what_the_server_continues(cli: Any, silence: Silence, start: Start) -> None:
    _notes(cli.folder)
    assert cli("ingest", "notes").code == 0
    served = replace(cli, environment={"LLM": "openai", "EXTRACTION": "rules", **silence.environment})
    server = start(served, "serve", "--port", "0")
    _until((served.data / "server.json").exists, server)
    url = json.loads((served.data / "server.json").read_text())["url"]

    before = len(silence.taken)
    process = start(served, "ask", "Who founded the Kettle Bank?", "--stream")
    _until(lambda: len(silence.taken) > before, process)
    assert _interrupted(served, process) == (130, "interrupted; no part of this command continues")

    process = start(served, "communities", "rebuild", "--full")
    _until(lambda: any(job["state"] == "running" for job in served("jobs", "list", "--json").json), process)
    job = served("jobs", "list", "--kind", "rebuild", "--json").json[0]["id"]
    goes_on = f"interrupted; {url} continues job {job}: "
    code, said = _interrupted(served, process)
    assert (code, said.startswith(goes_on)) == (130, True), said

    assert served("jobs", "show", job, "--json").json["state"] == "running"

    code, said = _interrupted(served, server)
    assert (code, said) == (130, "stopped; unfinished jobs continue at the next start on these stores")
