"""Memory and imports after the start of a server on embedded stores. Times are not checked, because they depend on load."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from .conftest import CommandLine, make_notes, stop, wait_for_address

NEEDED_LATER = {
    "alembic": "to change the schema",
    "graphiti_core": "for the graph in Neo4j",
    "httpx": "by the client of a Qdrant server",
    "httpx2": "by commands, for their requests",
    "mcp": "for the Model Context Protocol",
    "mako": "by alembic, for new revisions",
    "neo4j": "for the graph in Neo4j",
    "numpy.f2py": "by scipy",
    "openai": "for models behind an endpoint",
    "qdrant_client": "for a Qdrant server",
    "rich.progress": "to show progress in a terminal",
    "scipy": "to walk a graph",
}
MAIN = "from agentic_rag_backend.cli.app import main; main()"
MAX_MB = 375
"""Resident memory before the first request, including mapped files: 340 on two cores, 55 less on one."""


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server started on stores with documents, and its log with each imported module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COVERAGE_PROCESS_START", raising=False)  # its memory does not belong to the server
        cli = CommandLine(tmp_path_factory.mktemp("started"))
        make_notes(cli.folder)
        assert cli("ingest", "notes").code == 0
        watched = dataclasses.replace(cli, environment={"PYTHONPROFILEIMPORTTIME": "1"})
        with (cli.folder / "stderr.txt").open("a") as log:
            # A new interpreter, because imports are measured.
            process = subprocess.Popen(
                [sys.executable, "-c", MAIN, "serve", "--port", "0", "--json"],
                cwd=cli.folder,
                env=watched._environment(),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        try:
            url = wait_for_address(cli, process)
            assert httpx.get(f"{url}/health/ready").json()["status"] == "ok"
            yield process, (cli.folder / "stderr.txt").read_text()
        finally:
            stop(process)


def test_modules_are_imported_when_needed(started: tuple[Any, str]) -> None:
    _, log = started
    imported = set(re.findall(r"^import time:.*\| +([\w.]+)$", log, re.MULTILINE))
    assert {"onnxruntime", "sqlalchemy", "fastapi"} <= imported
    assert {name: NEEDED_LATER[name] for name in NEEDED_LATER.keys() & imported} == {}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_of_an_idle_server_is_bounded(started: tuple[Any, str]) -> None:
    process, _ = started
    told = Path(f"/proc/{process.pid}/status").read_text()
    resident_kb = int(re.findall(r"^VmRSS:\s+(\d+) kB$", told, re.MULTILINE)[0])
    assert resident_kb / 1024 < MAX_MB
