"""The product as a library in a Python program."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from mail_messages import message_of
from private_files import open_to_others

from agentic_rag_backend import open_embedded
from agentic_rag_backend.documents.parsing.base import CHECKED_BYTES
from agentic_rag_backend.domain.document import DocumentState
from agentic_rag_backend.errors import InvalidRequest, NotFound, StoreLocked, UnreadableDocument
from agentic_rag_backend.library import Embedded
from agentic_rag_client import DoneEvent
from generator.names import OPERATIONS

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "embedded.py"
BANK = "# Kettle Bank\n\nThe Kettle Bank was founded by Agnes Thorley in 1987.\n"


@pytest.mark.slow
def test_the_example_runs_and_cites() -> None:
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "VIRTUAL_ENV", "PYTHONPATH") if name in os.environ}
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("3 documents, ")
    assert "Rowan Teller" in done.stdout
    assert any(line.strip().startswith("[1]") for line in lines)
    assert done.stderr == ""


def test_a_program_that_configures_no_logging_sees_no_events() -> None:
    program = (
        "import sys, structlog\n"
        "from agentic_rag_backend import open_embedded\n"
        "from agentic_rag_backend.telemetry.logs import get_logger\n"
        "get_logger('agentic_rag_backend.jobs.runner').error('job_crashed', exc_info=ValueError('broken'))\n"
        "sys.exit(structlog.is_configured())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


async def attachments_can_be_searched(rag: Embedded, folder: Path) -> None:
    """They are ready when `ingest` returns, also those of an attached message."""
    inner = message_of("Rents", "See the file.", {"rent.txt": "The rent of the Lowmere mill is nine crowns."})
    letter = folder / "letter.eml"
    letter.write_bytes(message_of("Letter", "Two things.", {"": inner}).as_bytes())
    (first,) = await rag.ingest(letter)
    (rent, *_) = (await rag.search("What is the rent of the Lowmere mill?", strategy="hybrid")).hits
    assert rent.visible.document_key == "letter.eml#1/Rents.eml#1/rent.txt"
    (again,) = await rag.ingest(letter, attachments="ignore")
    assert (again.id, again.current_version) == (first.id, 2)


async def test_documents_in_answers_out_as_domain_values(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "bank.md").write_text(BANK)
    async with open_embedded(tmp_path / "data") as rag:
        (first,) = await rag.ingest(tmp_path / "notes", metadata={"category": "history"})
        (second,) = await rag.ingest(text="Delphine Aster leads the Lowmere Harbour Authority.", key="harbour", title="Harbour")
        assert (first.key, first.state, first.metadata) == ("bank.md", DocumentState.READY, {"category": "history"})
        assert (second.key, second.title) == ("harbour", "Harbour")
        (again,) = await rag.ingest(tmp_path / "notes", metadata={"category": "history"})
        assert (again.id, again.current_version) == (first.id, 1)

        await attachments_can_be_searched(rag, tmp_path)

        found = await rag.search("Who founded the Kettle Bank?", strategy="hybrid", filters={"category": "history"})
        assert [hit.visible.document_key for hit in found.hits] == ["bank.md"]
        answer = await rag.ask("Who founded the Kettle Bank?", strategy="dual_level")
        assert answer.grounded
        assert answer.retrieval.trace.strategy == "dual_level"
        (citation,) = [each for each in answer.citations if each.document_id == first.id][:1]
        assert BANK[citation.start_char : citation.end_char] == citation.quote

        await _reads_the_graph(rag)
        assert open_to_others(tmp_path / "data") == {}
        with pytest.raises(InvalidRequest, match="limit"):
            await rag.search("q", limit=0)
        with pytest.raises(InvalidRequest, match="unknown strategy 'nope'"):
            await rag.ask("q", strategy="nope")
        with pytest.raises(InvalidRequest, match="give either paths or text"):
            await rag.ingest()
        with pytest.raises(UnreadableDocument):
            await rag.ingest(text=" \n ")
        damaged = tmp_path / "damaged.txt"
        damaged.write_bytes(
            b"prose " * (CHECKED_BYTES // 6 + 1) + bytes(range(256)) * 40
        )  # beyond the part that is checked at upload
        with pytest.raises(UnreadableDocument, match="not utf-8"):
            await rag.ingest(damaged)
        with pytest.raises(StoreLocked):
            async with open_embedded(tmp_path / "data"):
                pass


async def _reads_the_graph(rag: Embedded) -> None:
    (thorley,) = await rag.entities("agnes thorley")
    found = await rag.paths(thorley.entity.id, "Kettle Bank")
    (step,) = found.paths[0].steps
    assert step.fact is not None
    assert "founded by Agnes Thorley" in step.fact.fact
    shown = await rag.entity(thorley.entity.id)
    near = await rag.neighbourhood(thorley.entity.id, hops=2)
    assert {fact.id for fact in shown.relationships} <= {edge.fact.id for edge in near.edges if edge.fact}
    assert "Agnes Thorley" in "".join([part async for part in rag.export_graph("json")])
    with pytest.raises(InvalidRequest, match="max_hops must be 1 to 4; got 5"):
        await rag.paths("Kettle Bank", "Agnes Thorley", max_hops=5)


async def test_a_tenant_that_does_not_exist_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="tenant 'acme' does not exist"):
        async with open_embedded(tmp_path / "data", tenant="acme"):
            pass


async def test_the_client_of_an_embedded_tenant_offers_every_operation(tmp_path: Path) -> None:
    """A sample, and all requests without parameters. `tests/meta/test_client.py` compares the operations with the routes."""
    async with open_embedded(tmp_path / "data") as rag, rag.open_client() as client:
        document = await client.documents.wait(await client.documents.upload(BANK.encode(), name="bank.md"))
        assert [document.id] == [hit.visible.chunk.document_id for hit in (await rag.search("Who founded the Kettle Bank?")).hits]
        events = [event async for event in client.answers.stream("Who founded the Kettle Bank?")]
        assert isinstance(events[-1], DoneEvent)
        assert events[-1].answer.answer == (await rag.ask("Who founded the Kettle Bank?")).text
        assert await client.documents.content(document.id).read() == BANK.encode()
        for name, route in OPERATIONS.items():
            if route.startswith("GET ") and "{" not in route:
                await read_all(attrgetter(name)(client)())
        await client.jobs.wait(await client.documents.delete(document.id))
        assert [listed async for listed in client.documents.list()] == []


async def read_all(result: Any) -> None:
    """Read what a method of the client returned."""
    if inspect.isawaitable(result):
        await result
    else:
        async for _ in result:
            pass
