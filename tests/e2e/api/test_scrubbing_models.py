"""After a deletion, a model's text about the removed document appears in no response and in no prompt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from removed_words import ASKED, CELLAR, MAPS, ONLY_THERE, VELLUM, assert_whole, responses, said, words
from tests.e2e.api.conftest import model_at

from agentic_rag_testing.models.server import ModelServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

WRITTEN = {
    "title": "Astbury's vellum at the Lacewater Archive",
    "summary": "Wilhelmine Astbury restored what the flood had spared.",
    "keywords": ["parchment glue", "Wilhelmine Astbury", "restored heritage", "maps"],
    "findings": [
        {"statement": "The Lacewater Archive is restored by Wilhelmine Astbury.", "sources": [1]},
        {"statement": "The Lacewater Archive exists.", "sources": [1]},
    ],
    "rating": 6,
}
"""Possible texts of a model: words of documents that are not its sources, and words of no document."""


async def test_what_a_model_wrote_of_it_is_nowhere_and_in_no_prompt(
    open_world: Callable[..., Any], new_tenant: Callable[..., Any], tmp_path: Path
) -> None:
    prompts: list[str] = []

    def noted(prompt: str) -> bool:
        prompts.append(prompt)
        return False

    matchers = [(noted, ""), (lambda prompt: "<facts>" in prompt, json.dumps(WRITTEN))]
    with ModelServer(matchers=matchers) as server:
        async with open_world(tmp_path / "model", **model_at(server.base_url)) as (_, http):
            (client,) = await new_tenant(http, "written", "admin")
            await client.data("PATCH", "/features", json={"DUAL_LEVEL_RETRIEVAL_ENABLED": True})
            document = await client.upload(VELLUM, key="one")
            for key, text in (("two", CELLAR), ("three", MAPS)):
                await client.upload(text, key=key)
            await client.rebuild()
            held = said(await responses(client))
            for field in ("name", "keywords[]", "summary", "findings[].statement"):
                assert f"/communities.data[].{field}" in held, field
            assert any(words(prompt) & ONLY_THERE for prompt in prompts if ASKED[1] in prompt), "themes are in prompts of answers"
            prompts.clear()
            await client.data("DELETE", f"/documents/{document['id']}", status=202)
            assert said(await responses(client)) == {}
            await assert_whole(client)
            questions = words(" ".join(ASKED))
            assert prompts
            assert not [prompt for prompt in prompts if words(prompt) & ONLY_THERE - questions]
            assert not any("Astbury's vellum" in prompt for prompt in prompts)
