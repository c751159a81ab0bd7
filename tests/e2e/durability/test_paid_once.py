"""Model output that a process recorded is never paid again, whenever the process is killed.

A document's chunks are embedded in groups of `GROUP`, one group after another, and each group is recorded at once. So a kill can
cost at most one group of each document in processing, of which there are at most `UNDER_WAY`.
"""

from __future__ import annotations

import json
import random
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.durability.conftest import Folder

from agentic_rag_backend.documents.chunking.passages import passage_text
from agentic_rag_backend.domain.document import Chunk
from agentic_rag_backend.domain.location import Location
from agentic_rag_backend.ingestion.service import IngestionOptions
from agentic_rag_backend.settings import Settings
from agentic_rag_testing.models.counts import text_hash
from agentic_rag_testing.models.process import ModelProcess

GROUP = IngestionOptions().group_size
UNDER_WAY = int(Settings.model_fields["prepare_concurrency"].default)
KEYS = tuple(f"volume-{number}" for number in range(UNDER_WAY + 1))
SECTIONS = GROUP * 2 + 10
Steps = Sequence[Mapping[str, Any]]
Place = tuple[str, int, int]
"""Key, version, ordinal."""
RESULTS = """
    SELECT d.key, p.version, p.ordinal, v.title, c.headings, t.text
    FROM prepared_chunks p JOIN chunks c USING (tenant_id, document_id, version, ordinal)
    JOIN chunk_texts t USING (tenant_id, chunk_id)
    JOIN document_versions v ON v.tenant_id = p.tenant_id AND v.document_id = p.document_id AND v.version = p.version
    JOIN documents d ON d.tenant_id = p.tenant_id AND d.id = p.document_id
    WHERE p.vector IS NOT NULL AND p.recipe IS NOT NULL"""


def volume(key: str, *, edited: int = 0) -> str:
    """Return a text of `SECTIONS` distinct chunks. Every ``edited``-th one differs from the unedited text's."""
    sections = [f"# Tables of {key}"]
    for number in range(SECTIONS):
        word = "corrected" if edited and number % edited == 0 else "measured"
        sections.append(
            f"## Table {number} of {key}\n\nthe {number}th line of {key} lists levels that were {word} at low water, "
            f"in feet and in inches, by hand and then by a gauge, on day {number} of that year, and no others."
        )
    return "\n\n".join(sections)


INGEST: Steps = ({"put": {key: volume(key) for key in KEYS}, "chunk_size": 48},)
UPDATE: Steps = ({"put": {key: volume(key, edited=3) for key in KEYS[:3]}, "chunk_size": 48},)


def recorded(folder: Folder) -> dict[str, set[Place]]:
    """Return the positions of each text with recorded results, by the hash that the model server uses."""
    database = folder.path / "catalogue.db"
    found: dict[str, set[Place]] = {}
    if not database.exists():
        return found
    connection = sqlite3.connect(database)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    for key, version, ordinal, title, headings, text in connection.execute(RESULTS) if "prepared_chunks" in tables else ():
        chunk = Chunk(
            id="",
            document_id="",
            version=version,
            ordinal=ordinal,
            text=text,
            size_tokens=0,
            content_hash="",
            location=Location(start_char=0, end_char=0, start_line=0, end_line=0, headings=tuple(json.loads(headings))),
        )
        found.setdefault(text_hash(passage_text(title, chunk)), set()).add((key, version, ordinal))
    connection.close()
    return found


@dataclass
class Books:
    """The paid texts, checked after the end of each process."""

    server: ModelProcess
    folder: Folder
    counts: Counter[str] = field(default_factory=Counter)
    held: dict[str, set[Place]] = field(default_factory=dict)
    lost: list[set[str]] = field(default_factory=list)
    """Texts that were paid and not recorded when the process was killed, one entry per kill."""
    places: dict[str, set[Place]] = field(default_factory=dict)

    def close_period(self) -> None:
        """Check the texts that the ended process paid."""
        counts = self._settled()
        bought = counts - self.counts
        again = {text: self.held[text] for text in bought if text in self.held}
        assert again == {}, "paid again for what was on record"
        assert set(bought.values()) <= {1}, "paid twice by one process"
        self.counts, self.held = counts, recorded(self.folder)
        self.lost.append(set(bought) - set(self.held))
        for text, places in self.held.items():
            self.places.setdefault(text, set()).update(places)

    def _settled(self) -> Counter[str]:
        # A request of the killed process may still be answered, and is then paid.
        until = time.monotonic() + 60
        while (stats := self.server.stats()).in_flight:
            assert time.monotonic() < until, f"{stats.in_flight} requests are never answered"
            time.sleep(0.02)
        return Counter(stats.texts)

    def check_losses(self) -> None:
        """Check the texts that were paid again, once every text is recorded and its position is known."""
        for lost in self.lost:
            groups: dict[str, set[tuple[int, int]]] = {}
            for text in lost:
                ((key, version, ordinal),) = {min(self.places[text], key=lambda place: place[1])}
                groups.setdefault(key, set()).add((version, ordinal // GROUP))
            assert all(len(of_document) == 1 for of_document in groups.values()), groups
            assert len(groups) <= UNDER_WAY
        times_lost = Counter(text for lost in self.lost for text in lost)
        paid_again = self.server.stats().paid_again()
        assert {text: count - 1 for text, count in paid_again.items()} == dict(times_lost)


def at_random(folder: Folder, books: Books, steps: Steps, took: Mapping[str, float], draw: random.Random, kills: int) -> None:
    """Kill processes that run ``steps`` at random moments, and let the last one finish."""
    killed = folder.kills
    longest = took["done_s"]
    for _ in range(4 * kills):
        if folder.kills - killed == kills:
            break
        if not folder.killed_after(steps, draw.uniform(0.8 * took["opened_s"], longest)):
            break  # the remaining work was done sooner
        books.close_period()
        longest = max(took["opened_s"], 0.8 * longest)
    held = folder.finished(steps)
    books.close_period()
    assert books.lost[-1] == set()
    assert held["orphans"] == {}
    assert {state for _, state, *_ in held["state"]["documents"]} == {"ready"}


@pytest.fixture(scope="module")
def durations(tmp_path_factory: pytest.TempPathFactory, priced: Callable[[Path, str], Folder]) -> tuple[Any, Any]:
    """Return the results and durations of an undisturbed ingestion and update."""
    with ModelProcess() as server:
        folder = priced(tmp_path_factory.mktemp("paid") / "data", server.base_url)
        ingested = folder.finished(INGEST)
        assert len(server.stats().texts) >= len(KEYS) * SECTIONS
        updated = folder.finished(UPDATE)
        assert server.stats().paid_again() == {}
    return ingested, updated


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 6))])
def test_nothing_on_record_is_paid_again(
    tmp_path: Path, priced: Callable[[Path, str], Folder], durations: tuple[Any, Any], seed: int
) -> None:
    draw = random.Random(seed)
    with ModelProcess() as server:
        folder = priced(tmp_path / "data", server.base_url)
        books = Books(server, folder)
        # Between the reply and the record. Random moments rarely fall there.
        folder.killed(INGEST, "documents.save_prepared", draw.randint(2, 2 * len(KEYS)), "before")
        books.close_period()
        assert books.lost[0]
        at_random(folder, books, INGEST, durations[0]["took"], draw, 2)
        # Whether random moments fall into the work depends on the speed of the machine. This moment always does.
        folder.killed(UPDATE, "documents.save_prepared", draw.randint(1, 3), "before")
        books.close_period()
        at_random(folder, books, UPDATE, durations[1]["took"], draw, 2)
        books.check_losses()
        assert folder.kills >= 2
        print(f"{folder.kills} kills, {len(books.counts)} texts, paid again {[len(lost) for lost in books.lost]}")
