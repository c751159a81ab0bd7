"""bge-small-en-v1.5, installed from the files of a Maven artifact and used by the product."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from agentic_rag_backend.container.models import open_embedder
from agentic_rag_backend.models.checking import check_encoder
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.models.installation import LocalFolder, install_model
from agentic_rag_backend.models.registry import known_model
from agentic_rag_backend.settings import Settings

NAME = "bge-small-en-v1.5"


@pytest.fixture
def settings(bge_small: Path, tmp_path: Path) -> Settings:
    """Return settings with the installed model, whose files have the hashes of the table."""
    install_model(known_model(NAME), tmp_path / "models", LocalFolder(bge_small))
    return Settings(_env_file=None, data_dir=tmp_path, embedding_model=NAME, embedding_threads=1)


async def test_it_works_and_computes_in_integers(settings: Settings) -> None:
    embedder = open_embedder(settings)
    assert isinstance(embedder, BundledEmbedder)
    checked = await check_encoder(embedder)
    assert (checked.dimensions, checked.arithmetic) == (384, "int8")
    assert checked.norm == pytest.approx(1, abs=1e-4)
    await embedder.close()


async def test_its_vectors_depend_on_their_text_alone(settings: Settings) -> None:
    embedder = open_embedder(settings)
    texts = ["kelp", "Mara Venn founded Greenholm Kelp in 2011.", "harbour " * 700]
    together = await embedder.embed(texts)
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_array_equal((await embedder.embed([text]))[0], vector)
    await embedder.close()


async def test_a_question_with_its_prefix_finds_the_passage(settings: Settings) -> None:
    embedder = open_embedder(settings)
    passages = ["Marie Curie discovered radium in 1898.", "The harbour of Rotterdam is large.", "Bread is made of flour."]
    scores = await embedder.embed(passages) @ await embedder.embed_query("Which scientist found a radioactive element?")
    assert int(np.argmax(scores)) == 0
    await embedder.close()
