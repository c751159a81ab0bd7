"""What only a removed text said is in no field of any response, at once: not in a theme's name or keywords either."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agentic_rag_backend.testing.model_server import ModelServer

if TYPE_CHECKING:
    from tests.e2e.api.conftest import Client, World

pytestmark = pytest.mark.asyncio(loop_scope="module")

VELLUM = """# The Grobian Vellum

Wilhelmine Astbury restored the Grobian Vellum at the Lacewater Archive with parchment glue. Wilhelmine Astbury paid the
Lacewater Archive for parchment, and the Lacewater Archive lent the Grobian Vellum to Wilhelmine Astbury for two winters.
Parchment shrinks near stoves, said Wilhelmine Astbury of the Grobian Vellum.
"""
CELLAR = """# The cellar

The Lacewater Archive flooded in 1998. Tobias Rennick pumped the cellar of the Lacewater Archive dry with four engines.
Tobias Rennick works for the Lacewater Archive. The flood ruined the maps in the cellar.
"""
MAPS = """# The maps

Tobias Rennick drew new maps of the cellar for the Lacewater Archive. The Lacewater Archive sells the maps in Dunmere.
Tobias Rennick lives in Dunmere.
"""
WORD = re.compile(r"\w{4,}")
ASKED = (
    "Who restored the Grobian Vellum?",
    "What is the Lacewater Archive about?",
    "Wilhelmine Astbury parchment glue",
)
SEARCHES = ("dense", "sparse", "hybrid", "graph", "community", "dual_level", "auto")


def words(text: str) -> set[str]:
    return set(WORD.findall(text.casefold()))


ONLY_THERE = words(VELLUM) - words(CELLAR) - words(MAPS)


def texts(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text of a response with where it stands; not the question, which is only said back."""
    if isinstance(value, dict):
        for name, held in value.items():
            if name != "query":
                yield from texts(held, f"{at}.{name}")
    elif isinstance(value, list):
        for held in value:
            yield from texts(held, f"{at}[]")
    elif isinstance(value, str):
        yield at, value


async def responses(client: Client) -> dict[str, Any]:
    """Return what every route says that shows texts."""
    shown = {}
    for path in ("/communities", "/documents", "/jobs", "/status", "/admin/communities"):
        shown[path] = (await client.get(path)).json()
    for community in shown["/communities"]["data"]:
        shown[f"/communities/{community['id']}"] = (await client.get(f"/communities/{community['id']}")).json()
    for question in ASKED:
        asked = {"query": question}
        shown[f"/search/dual-level {question}"] = (await client.post("/search/dual-level", asked)).json()
        for strategy in SEARCHES:
            body = {**asked, "strategy": strategy, "limit": 20}
            shown[f"/search {strategy} {question}"] = (await client.post("/search", body)).json()
        for strategy in ("hybrid", "dual_level"):
            for generator in ("attributed", "standard"):
                body = {**asked, "strategy": strategy, "generator": generator}
                shown[f"/answers {strategy} {generator} {question}"] = (await client.post("/answers", body)).json()
            streamed = await client.post("/answers", {**asked, "strategy": strategy, "stream": True})
            shown[f"/answers {strategy} stream {question}"] = streamed.text
    return shown


def said(shown: dict[str, Any]) -> dict[str, set[str]]:
    """Return where words of the removed text stand."""
    found: dict[str, set[str]] = {}
    for route, response in shown.items():
        for at, text in texts(response):
            if held := words(text) & ONLY_THERE:
                found.setdefault(f"{route}{at}", set()).update(held)
    return found


async def fill(world: World, name: str) -> tuple[Client, str]:
    client = await world.tenant(name)
    await client.data("PATCH", "/features", json={"DUAL_LEVEL_RETRIEVAL_ENABLED": True})
    document = await client.upload(VELLUM, key="one")
    await client.upload(CELLAR, key="two")
    await client.upload(MAPS, key="three")
    await client.rebuild()
    before = said(await responses(client))
    held = {at for at in before if at.startswith("/communities.")}
    assert {"/communities.data[].name", "/communities.data[].keywords[]", "/communities.data[].summary"} <= held
    assert any(at.endswith(".themes[].name") for at in before), before
    return client, document["id"]


async def _whole(client: Client) -> None:
    """What the other documents say is told in full, under a name."""
    for community in (await client.get("/communities")).json()["data"]:
        assert "Lacewater Archive" in community["name"] or "Dunmere" in community["name"], community
        assert community["keywords"]


async def test_a_deleted_documents_words_are_nowhere(world: World) -> None:
    client, document = await fill(world, "forgets")
    accepted = await client.data("DELETE", f"/documents/{document}", status=202)
    assert said(await responses(client)) == {}
    await _whole(client)
    assert (await client.ended(accepted["job_id"]))["state"] == "succeeded"
    assert said(await responses(client)) == {}
    await client.rebuild(mode="incremental")
    assert said(await responses(client)) == {}
    await _whole(client)


async def test_words_that_a_new_version_lacks_are_nowhere(world: World) -> None:
    client, document = await fill(world, "corrects")
    changed = await client.upload("# The reading room\n\nThe Lacewater Archive has a reading room.\n", key="one")
    assert changed["id"] == document
    assert said(await responses(client)) == {}
    await _whole(client)
    await client.rebuild(mode="incremental")
    assert said(await responses(client)) == {}


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
"""What a model might make of it: words of documents that its sources do not name, and of none."""


async def test_what_a_model_wrote_of_it_is_nowhere_and_in_no_prompt(
    open_world: Callable[..., Any], new_tenant: Callable[..., Any], tmp_path: Path
) -> None:
    prompts: list[str] = []

    def noted(prompt: str) -> bool:
        prompts.append(prompt)
        return False

    matchers = [(noted, ""), (lambda prompt: "<facts>" in prompt, json.dumps(WRITTEN))]
    with ModelServer(matchers=matchers) as server:
        model = {"llm": "openai", "llm_model": "cite", "openai_api_key": "any", "openai_base_url": server.base_url}
        async with open_world(tmp_path / "model", extraction="rules", **model) as (_, http):
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
            await _whole(client)
            questions = words(" ".join(ASKED))
            assert prompts
            assert not [prompt for prompt in prompts if words(prompt) & ONLY_THERE - questions]
            assert not any("Astbury's vellum" in prompt for prompt in prompts)
