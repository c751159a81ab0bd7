"""Folders of the embedded profile, and processes that work in them until they are killed."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from harbour_reports import small_text
from programs import environment_of_templates

"""Every text gives a name the same type. The graph keeps the type that it saw first, and the order of commits is not fixed."""


SMALL = {f"report-{number}": small_text(number) for number in range(8)}
INGEST: Sequence[Mapping[str, Any]] = ({"put": SMALL, "chunk_size": 48},)

CHANGED = {"report-2": SMALL["report-2"].replace("Works", "Deeds"), "report-5": small_text(7, year=2031)}
LABELLED = {"report-0": {"shelf": 3}, "report-2": {"shelf": 7, "checked": True}, "report-6": {"shelf": 3}}
BEFORE: Mapping[str, Sequence[Mapping[str, Any]]] = {"rebuild": ({"rebuild": 1}, {"delete": ["report-1"]})}
"""Additional content of a scenario, after the ingested corpus."""
STEPS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "ingest": INGEST,
    "update": ({"put": CHANGED, "chunk_size": 48},),
    "delete": ({"delete": ["report-1", "report-4"]},),
    "chunk again": ({"chunk_again": ["report-0", "report-3", "report-6"], "chunk_size": 96},),
    "rebuild": ({"rebuild": 2},),
    "label": ({"label": LABELLED},),
    "index swap": (
        {"put": {**CHANGED, "report-8": small_text(8)}, "chunk_size": 48, "index": True},
        {"delete": ["report-1", "report-4"], "index": True},
    ),
}
MIXED: Sequence[Mapping[str, Any]] = (
    {"put": SMALL, "chunk_size": 48},
    {"label": {"report-0": {"shelf": 1}, "report-3": {"shelf": 2, "checked": True}}},
    {"rebuild": 1},
    {"tree": 1},
    {"delete": ["report-1"]},
    {"chunk_again": ["report-6"], "chunk_size": 96},
    {"label": {"report-3": {"shelf": 4}, "report-6": {"shelf": 5}}},
    {"put": {"report-2": small_text(7, year=2031)}, "chunk_size": 48},
    {"tree": 2},
    {"rebuild": 2},
)
"""A small amount of each kind of data."""
# A tenant with so few vectors gets an index.
INDEXING = {"vector_index_min_points": 4}


@dataclass
class Processes:
    """The process that forks scenarios. It is started once per session."""

    process: subprocess.Popen[str]
    log: Path

    def run(self, **scenario: Any) -> int:
        """Run one scenario. Return 0, or minus the signal that killed its process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(scenario) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, self.log.read_text()
        return int(json.loads(answer)["exit"])


@dataclass
class Folder:
    """A data folder, and its history."""

    path: Path
    processes: Processes
    kills: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    _results: int = field(default=0)

    def killed(self, steps: Sequence[Mapping[str, Any]], target: str, call: int, when: str) -> None:
        """Run ``steps`` until the process dies at the call. The test fails if the call is never made."""
        assert self.comes_to(steps, target, call, when), f"{target}, call {call}: the process was not killed there"

    def comes_to(self, steps: Sequence[Mapping[str, Any]], target: str, call: int, when: str, containing: str = "") -> bool:
        """Run ``steps``. Return whether the process died at the call (of those with ``containing`` in an argument)."""
        kill = {"target": target, "call": call, "when": when, "containing": containing}
        ended = self._run(steps, kill=kill)
        assert ended in (0, -signal.SIGKILL), f"the process ended with {ended}: {self.processes.log.read_text()[-4000:]}"
        self.kills += ended != 0
        return ended != 0

    def killed_after(self, steps: Sequence[Mapping[str, Any]], seconds: float) -> bool:
        """Run ``steps`` for ``seconds``. Return whether they were unfinished then."""
        ended = self._run(steps, kill_after_s=seconds)
        assert ended in (0, -signal.SIGKILL), f"the process ended with {ended}: {self.processes.log.read_text()[-4000:]}"
        self.kills += ended != 0
        return ended != 0

    def finished(self, steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Run ``steps`` in a process that is not killed. Return the contents of the folder."""
        self._results += 1
        result = self.path.with_name(f"{self.path.name}.{self._results}.json")
        ended = self._run(steps, result=str(result))
        assert ended == 0, self.processes.log.read_text()[-4000:]
        held: dict[str, Any] = json.loads(result.read_text())
        return held

    def copied(self, to: Path) -> Folder:
        """Return a copy. Most of the files are sparse, and stay sparse."""
        subprocess.run(["cp", "-a", "--sparse=always", str(self.path), str(to)], check=True)
        return Folder(to, self.processes, settings=self.settings)

    def _run(self, steps: Sequence[Mapping[str, Any]], **rest: Any) -> int:
        return self.processes.run(folder=str(self.path), steps=list(steps), settings=dict(self.settings), **rest)


@pytest.fixture(scope="session")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    log = tmp_path_factory.mktemp("durability") / "children.log"
    # One thread: a process that forks must have no others.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **environment_of_templates("workers")}
    with log.open("w") as errors:
        started = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("child.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
        )
        with started:
            yield Processes(started, log)
            assert started.stdin is not None
            started.stdin.close()
            started.wait(timeout=30)


@pytest.fixture
def folder(tmp_path: Path, processes: Processes) -> Iterator[Folder]:
    path = tmp_path / "data"
    yield Folder(path, processes)
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def ingested(tmp_path_factory: pytest.TempPathFactory, processes: Processes) -> tuple[Folder, dict[str, Any]]:
    """The small corpus, ingested without a kill: its folder (to be copied) and its contents."""
    undisturbed = Folder(tmp_path_factory.mktemp("undisturbed") / "data", processes)
    return undisturbed, undisturbed.finished(INGEST)


@pytest.fixture(scope="session")
def ingest() -> Sequence[Mapping[str, Any]]:
    return INGEST


@pytest.fixture(scope="session")
def update() -> Sequence[Mapping[str, Any]]:
    """New content for two documents: a small change of one, a new text for the other."""
    edited = SMALL["report-2"].replace("Works", "Deeds").replace("moved to", "left for")
    return ({"put": {"report-2": edited, "report-5": small_text(7, year=2031)}, "chunk_size": 48},)


@pytest.fixture(scope="session")
def delete() -> Sequence[Mapping[str, Any]]:
    return ({"delete": ["report-1", "report-4"]},)


@pytest.fixture(scope="session")
def mixed() -> Sequence[Mapping[str, Any]]:
    return MIXED


@dataclass(frozen=True)
class Undisturbed:
    """A scenario: its initial folder, its steps, and its result without a kill."""

    before: Folder
    steps: Sequence[Mapping[str, Any]]
    held: Mapping[str, Any]


@pytest.fixture(scope="session")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, processes: Processes, ingested: tuple[Folder, dict[str, Any]]
) -> Callable[[str], Undisturbed]:
    """Return a function that runs a scenario of `STEPS` by name, once per session."""

    @functools.cache
    def run(scenario: str) -> Undisturbed:
        home = tmp_path_factory.mktemp(scenario.replace(" ", "-"))
        before = Folder(home / "data", processes) if scenario == "ingest" else ingested[0].copied(home / "data")
        if scenario == "ingest":
            before.path.mkdir()
        if scenario == "index swap":
            before.settings = INDEXING
        if scenario in BEFORE:
            before.finished(BEFORE[scenario])
        return Undisturbed(before, STEPS[scenario], before.copied(home / "after").finished(STEPS[scenario]))

    return run


@pytest.fixture(scope="session")
def priced(processes: Processes) -> Callable[[Path, str], Folder]:
    """Return a function that creates a folder whose texts an endpoint embeds, given path and address."""

    def make(path: Path, base_url: str) -> Folder:
        endpoint = {"embedder": "openai", "embedding_model": "hashed+latency-200ms", "embedding_dimensions": 64}
        return Folder(path, processes, settings={**endpoint, "openai_base_url": base_url, "openai_api_key": "any"})

    return make
