"""The command line as a separate process, in its own folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from programs import Program, run

_SETTINGS = {"DUAL_LEVEL_RETRIEVAL_ENABLED": "true"}
_KEPT = ("PATH", "HOME", "LANG", "COVERAGE_PROCESS_START", "PYTHONPATH", "TMPDIR", "VIRTUAL_ENV")
START_S = 300

HARBOUR = """# Harbour of Lowmere

Delphine Aster leads the Lowmere Harbour Authority. The Lowmere Harbour Authority began dredging the basin in May 2019.

## Money

The dredging of the basin cost 3.4 million crowns. The Kettle Bank lent the Lowmere Harbour Authority the money.
"""
BANK = """# Kettle Bank

The Kettle Bank was founded by Agnes Thorley in 1987. Agnes Thorley grew up in the village of Scarrow.
"""
EVIL = "# [bold]Quarrel[/bold]\n\nQuarrel Limited was founded by Mara Venn in 2011 \x1b[31m in [red]Oslo[/red].\n"


@dataclass(frozen=True, slots=True)
class Done:
    """The result of an invocation."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Stdout, which must be a single JSON value."""
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Runs ``agentic-rag`` in ``folder``, on the stores in its ``data``."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str) -> Done:
        """Run one command to its end. It must never print a traceback."""
        done = run(arguments, cwd=self.folder, env=self._environment(), timeout=400)
        assert "Traceback" not in done.stderr + done.stdout, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str) -> Program:
        """Start a command that keeps running."""
        with (self.folder / "stderr.txt").open("a") as log:
            return Program(arguments, cwd=self.folder, env=self._environment(), stdout=subprocess.PIPE, stderr=log, text=True)

    @property
    def data(self) -> Path:
        """The folder of the stores."""
        return self.folder / "data"

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        return {**kept, **_SETTINGS, **self.environment}


@dataclass(frozen=True, slots=True)
class Served:
    """A server, and the command line that uses it."""

    cli: CommandLine
    process: Program
    url: str
    key: str


def make_notes(folder: Path) -> Path:
    """Write a small folder of documents."""
    notes = folder / "notes"
    (notes / "town").mkdir(parents=True)
    (notes / "harbour.md").write_text(HARBOUR)
    (notes / "town" / "bank.md").write_text(BANK)
    return notes


def wait_for_address(cli: CommandLine, process: Program) -> str:
    """Return the address of a server that was just started."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        if (cli.data / "server.json").exists():
            return str(json.loads((cli.data / "server.json").read_text())["url"])
        time.sleep(0.05)
    raise AssertionError(f"the server did not start: {(cli.folder / 'stderr.txt').read_text()[-2000:]}")


def stop(process: Program) -> int:
    """Stop a server with a signal and return its exit code."""
    process.send_signal(signal.SIGTERM)
    try:
        return process.wait(timeout=120)
    finally:
        process.kill()
        if process.stdout is not None:
            process.stdout.close()


@pytest.fixture
def cli(tmp_path: Path) -> CommandLine:
    """A command line with empty stores."""
    return CommandLine(tmp_path)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server on a free port with two documents, for the tests of one module."""
    cli = CommandLine(tmp_path_factory.mktemp("served"))
    make_notes(cli.folder)
    process = cli.start("serve", "--port", "0", "--json")
    try:
        url = wait_for_address(cli, process)
        key = json.loads((cli.data / "credentials.json").read_text())["key"]
        assert cli("ingest", "notes").code == 0
        yield Served(cli, process, url, key)
    finally:
        stop(process)
