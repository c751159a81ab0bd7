"""The tree over passages over HTTP: built on request, listed, searched, used for answers, and isolated between tenants."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.api.conftest import World

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "Who pumped the cellar of the archive dry?"
TEXTS = {
    "cellar": "# The cellar\n\nTobias Rennick pumped the cellar of the Lacewater Archive dry with four engines in 1998.",
    "maps": "# The maps\n\nTobias Rennick drew new maps of the cellar. The Lacewater Archive sells the maps in Dunmere.",
    "vellum": "# The vellum\n\nWilhelmine Astbury restored the Grobian Vellum with parchment glue at the archive.",
    "ferry": "# The ferry\n\nThe ferry from Dunmere sails at noon, and the captain sells tickets on the pier.",
}


async def test_a_tree_is_built_searched_and_answered_from(world: World) -> None:  # noqa: PLR0915 - one story, in its order
    client = await world.tenant("climbs")
    for key, text in TEXTS.items():
        await client.upload(text, key=key)
    before = await client.data("POST", "/search", json={"query": QUESTION, "strategy": "raptor"})
    assert (before["themes"], before["trace"]["fallback_used"], len(before["results"])) == ([], True, 4)

    estimate = await client.build_tree(dry_run=True)
    assert (estimate["result"]["dry_run"], estimate["result"]["model_calls"]) == (True, 0)
    for index in ("communities", "raptor"):
        empty = await (await world.tenant(f"nothing-{index}")).data("GET", f"/admin/{index}")
        assert (empty["generation"], empty["stale"]) == (0, False), index
        unbuilt = await client.data("GET", f"/admin/{index}")
        assert (unbuilt["generation"], unbuilt["stale"]) == (0, True), index
    built = await client.build_tree(cluster_size=2, mode="full")
    status = await client.data("GET", "/admin/raptor")
    assert (status["generation"], status["stale"], status["last_job"]["id"]) == (1, False, built["id"])
    assert (await client.data("GET", "/status"))["raptor"]["generation"] == 1
    nodes = await client.data("GET", "/raptor")
    assert len(nodes) == built["result"]["nodes"]
    leaf = (await client.data("GET", "/raptor", params={"level": 1}))[0]
    assert await client.data("GET", f"/raptor/{leaf['id']}") == leaf
    for finding in leaf["findings"]:
        for source in finding["sources"]:
            assert finding["statement"] in (await client.data("GET", f"/chunks/{source['chunk_id']}"))["content"].replace(
                "\n", " "
            )

    for options in ({}, {"search": "levels"}, {"levels": [1]}, {"order": "leaves_first"}):
        found = await client.data("POST", "/search", json={"query": QUESTION, "strategy": "raptor", "options": options})
        assert "pumped the cellar" in found["results"][0]["content"], options
        assert found["themes"][0]["type"] == "raptor"
        assert set(found["themes"][0]["representatives"]) & {result["id"] for result in found["results"]}
    top = max(node["level"] for node in nodes)
    assert top > 1
    known = ", ".join(str(level) for level in range(1, top + 1))
    for search in ("collapsed", "levels"):
        for levels in ([top], [1], [0]):
            asked = {"query": QUESTION, "strategy": "raptor", "options": {"search": search, "levels": levels}}
            found = await client.data("POST", "/search", json=asked)
            assert {theme["level"] for theme in found["themes"]} == set(levels) - {0}, asked
            assert all(theme["representatives"] for theme in found["themes"]), asked
            assert found["results"]
    for levels, warnings in (([0, top], []), ([1, 10], [f"options.levels: there is no level 10; levels are {known}"])):
        asked = {"query": QUESTION, "strategy": "raptor", "options": {"levels": levels}}
        assert (await client.post("/search", asked)).json()["meta"]["warnings"] == warnings
    bare = {"query": QUESTION, "strategy": "raptor", "options": {"include_summaries": False}}
    assert (await client.data("POST", "/search", json=bare))["themes"] == []
    filtered = {"query": QUESTION, "strategy": "raptor", "filters": {"key": "ferry"}}
    found = await client.data("POST", "/search", json=filtered)
    assert [result["title"] for result in found["results"]] == ["The ferry"]
    assert "Rennick" not in str(found["themes"])

    answer = await client.data("POST", "/answers", json={"query": QUESTION, "strategy": "raptor"})
    assert answer["citations"]
    assert "Rennick" in answer["answer"]

    later = await client.upload("# The pumps\n\nTobias Rennick sold the four engines to the ferry of Dunmere.", key="pumps")
    assert (await client.data("GET", "/admin/raptor"))["stale"]
    grown = await client.build_tree(cluster_size=2)
    assert (grown["result"]["mode"], grown["result"]["passages"]) in {("incremental", 5), ("full", 5)}
    deleted = await client.data("DELETE", f"/documents/{later['id']}", status=202)
    receipt = (await client.ended(deleted["job_id"]))["result"]
    assert receipt["removed"]["summaries"] >= 1
    assert "four engines to the ferry" not in str(await client.data("GET", "/raptor"))


async def test_options_outside_their_limits_are_refused(world: World) -> None:
    options: Any
    for options in [
        {"levels": []},
        {"levels": [11]},
        {"levels": [True]},
        {"levels": 1},
        {"search": "up"},
        {"order": 1},
        {"include_summaries": 1},
    ]:
        response = await world.alpha.post("/search", {"query": "x", "strategy": "raptor", "options": options})
        assert (response.status_code, next(iter(options)) in response.text) == (422, True)
