"""Questions about tables and lists, from ingestion to the cited answer, without a language model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from table_questions import DOCUMENTS, QUESTIONS

from agentic_rag_backend import open_embedded
from agentic_rag_backend.library import Embedded

pytestmark = pytest.mark.asyncio(loop_scope="module")

PEOPLE = "\n".join(f"| Reader {number:03} | {number + 100} | {number + 500} |" for number in range(80))
LONG = f"# Loans by reader\n\n| Reader | 2022 | 2023 |\n|---|---|---|\n{PEOPLE}\n"
"""A table of several chunks."""
TEXTS = {**DOCUMENTS, "readers.md": LONG}
LEAST_RIGHT = 0.9
"""Share of the questions that must be answered rightly."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def library(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Embedded]:
    folder: Path = tmp_path_factory.mktemp("tables")
    async with open_embedded(folder / "data") as rag:
        for name, text in TEXTS.items():
            (folder / name).write_text(text)
            await rag.ingest(folder / name)
        yield rag


async def test_the_first_quotation_is_the_row_or_list_that_answers(library: Embedded) -> None:
    failed = []
    for case in QUESTIONS:
        answer = await library.ask(case.question)
        first = answer.claims[0].text if answer.claims else ""
        if not all(text in first for text in case.answer) or any(text in answer.text for text in case.wrong):
            failed.append((case.question, answer.text))
    assert len(failed) <= (1 - LEAST_RIGHT) * len(QUESTIONS), failed


async def test_quotes_of_rows_are_the_text_of_the_document(library: Embedded) -> None:
    answer = await library.ask("What is Petra Sauvage's phone number?")
    assert answer.citations[0].quote == "| Petra Sauvage | Archivist | C002 | 555-0142 |"
    assert all(claim.supported for claim in answer.claims)
    for case in QUESTIONS:
        for citation in (await library.ask(case.question)).citations:
            assert any(text[citation.start_char : citation.end_char] == citation.quote for text in TEXTS.values())


@pytest.mark.parametrize("number", [3, 41, 77])
async def test_a_row_of_a_later_chunk_keeps_its_columns(library: Embedded, number: int) -> None:
    answer = await library.ask(f"How many loans did Reader {number:03} have in 2023?")
    assert answer.text == f"Reader {number:03} – 2022: {number + 100}; 2023: {number + 500}. [1]"
    (found,) = {
        hit.visible.chunk.location.header for hit in answer.retrieval.hits if f"Reader {number:03}" in hit.visible.chunk.text
    }
    assert found == ("" if number == 3 else "| Reader | 2022 | 2023 |\n|---|---|---|")
