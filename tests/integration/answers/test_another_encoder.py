"""Answers and refusals do not depend on the scale of the embedder's similarities."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sampling import budget

from agentic_rag_backend.library import open_embedded
from agentic_rag_testing.models.server import ModelServer

EXAMPLES = Path(__file__).parents[3] / "examples"
WORDS, FLOOR = "words+dimensions-384", "words+dimensions-384+floor-70"
STEP = budget(gate=2, deep=1)
"""The gate asks every second question, `make test-deep` all 40."""
BY_SCALE, BY_EMBEDDER = 4 // STEP, 7 // STEP
"""Most questions that differ: by the scale alone, and by what an embedder of words finds.

Two ingestions with the same embedder differ in up to two questions: ids are random, and the keywords of themes depend on them.
"""


async def refused(folder: Path, **settings: object) -> dict[str, bool]:
    """Return whether each question of the examples is refused."""
    questions = [json.loads(line)["question"] for line in (EXAMPLES / "questions.jsonl").read_text().splitlines()]
    questions = questions[::STEP]
    async with open_embedded(folder, **settings) as rag:
        await rag.ingest(EXAMPLES / "corpus")
        return {question: not (await rag.ask(question)).grounded for question in questions}


@pytest.mark.sampled
@pytest.mark.timeout(300)
async def test_the_same_questions_are_answered_with_encoders_of_other_scales(tmp_path: Path) -> None:
    bundled = await refused(tmp_path / "bundled")
    assert 6 // STEP <= sum(bundled.values()) <= 12 // STEP
    with ModelServer() as server:
        found = {
            model: await refused(
                tmp_path / model,
                embedder="openai",
                openai_api_key="any",
                openai_base_url=server.base_url,
                embedding_model=model,
                embedding_dimensions=384,
            )
            for model in (WORDS, FLOOR)
        }
    words, floor = found[WORDS], found[FLOOR]
    assert differences(words, floor) <= BY_SCALE
    assert differences(words, bundled) <= BY_EMBEDDER


def differences(one: dict[str, bool], other: dict[str, bool]) -> int:
    """Return how many questions are answered by one and refused by the other."""
    return sum(one[question] != other[question] for question in one)
