"""Answers with `CLAIM_VERIFIER=nli`: the reader's verdict is in the answer, and a copied sentence needs no reader."""

from __future__ import annotations

from pathlib import Path

from agentic_rag_backend.library import open_embedded
from agentic_rag_backend.models.facts_files import ReaderFacts
from agentic_rag_testing.models.cross_encoder import write_reader
from agentic_rag_testing.models.server import ModelServer

QUESTION = "Who founded the Halden Institute?"
NOTE = "Mira Voss founded the Halden Institute in 1994. It studies tides."
REORDERED = "In 1994, Mira Voss founded the Halden Institute."
FACTS = ReaderFacts(("entailment", "neutral", "contradiction"))


async def test_the_reader_rejects_what_words_accept(tmp_path: Path) -> None:
    # For this reader, everything contradicts.
    folder = write_reader(tmp_path / "reader", {}, bias=(0.0, 0.0, 2.0), facts=FACTS)
    (tmp_path / "halden.txt").write_text(NOTE)
    with ModelServer() as server:
        server.matchers[:] = [(lambda _: True, f"{REORDERED} [1] It studies tides. [1]")]
        async with open_embedded(
            tmp_path / "data",
            claim_verifier="nli",
            claim_verifier_model_path=folder,
            extraction="rules",
            llm="openai",
            openai_api_key="any",
            openai_base_url=server.base_url,
            llm_model="whole",
        ) as rag:
            await rag.ingest(tmp_path / "halden.txt")
            answer = await rag.ask(QUESTION, generator="standard")
    assert [(claim.text, claim.supported, claim.reason) for claim in answer.claims] == [
        (REORDERED, False, "negated"),
        ("It studies tides.", True, None),
    ]
    assert f"{REORDERED} [unsupported]" in answer.text
