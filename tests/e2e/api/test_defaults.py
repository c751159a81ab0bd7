"""Default limits and weights are the same for every entry point, and `/status` shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import structlog
from tests.e2e.api.conftest import Client

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "Why was the tidal barrage delayed?"
SETTINGS = {
    "dual_level_retrieval_enabled": True,
    "dual_level_low_limit": 2,
    "dual_level_high_limit": 1,
    "dual_level_low_weight": 0.9,
    "dual_level_high_weight": 0.9,
}


async def every_door(client: Client, **limit: int) -> dict[str, tuple[int, int, set[float]]]:
    """Return the number of chunks and themes from each entry point, and the weights of the themes."""
    found: dict[str, tuple[int, int, set[float]]] = {}
    both = await client.data("POST", "/search/dual-level", json={"query": QUESTION, **_levels(limit)})
    found["dual-level"] = _counts(both["low_level_results"], both["high_level_results"])
    for name in ("dual_level", "auto"):
        data = await client.data("POST", "/search", json={"query": QUESTION, "strategy": name, **limit})
        found[f"search {name}"] = _counts(data["results"], data["themes"])
        data = await client.data("POST", "/answers", json={"query": QUESTION, "strategy": name, **limit})
        found[f"answers {name}"] = _counts(data["sources"], data["themes"])
    return found


def _levels(limit: dict[str, int]) -> dict[str, int]:
    return {name: value for value in limit.values() for name in ("low_limit", "high_limit")}


def _counts(results: list[Any], themes: list[dict[str, Any]]) -> tuple[int, int, set[float]]:
    return len(results), len(themes), {round(theme["weighted_score"] / theme["score"], 6) for theme in themes}


async def test_one_resolution_for_every_door(
    tmp_path_factory: pytest.TempPathFactory, open_world: Any, new_tenant: Any, fill_tenant: Any
) -> None:
    folder: Path = tmp_path_factory.mktemp("defaults")
    with structlog.testing.capture_logs() as at_start:
        async with open_world(folder, **SETTINGS) as (_, http):
            (client,) = await new_tenant(http, "alpha", "admin")
            await fill_tenant(client, "alpha")
            with structlog.testing.capture_logs() as later:
                assert set(map(str, (await every_door(client)).values())) == {str((2, 1, {0.5}))}
                assert set(map(str, (await every_door(client, limit=1)).values())) == {str((1, 1, {0.5}))}
                assert (await _status(client)) == (0.5, 0.5, 2, 1)
                flags = {flag["name"]: flag["value"] for flag in (await client.get("/features")).json()["data"]}
                assert flags["DUAL_LEVEL_LOW_WEIGHT"] == 0.5
            assert [entry for entry in later if "normalised" in entry["event"]] == []
            await client.data("PATCH", "/features", json={"DUAL_LEVEL_LOW_WEIGHT": 0.8})
            assert (await _status(client)) == (0.8, 0.2, 2, 1)
            assert (await every_door(client))["search auto"][2] == {0.2}
            for strategy in ("community", "global", "drift", "raptor"):
                for path in ("/search", "/answers"):
                    data = await client.data("POST", path, json={"query": QUESTION, "strategy": strategy, "limit": 1})
                    assert len(data["themes"]) <= 1
                    assert len(data["results" if path == "/search" else "sources"]) <= 1
    (warned,) = [entry for entry in at_start if entry["event"] == "weights_normalised"]
    assert warned["log_level"] == "warning"
    assert warned["settings"] == "DUAL_LEVEL_LOW_WEIGHT and DUAL_LEVEL_HIGH_WEIGHT"
    assert (warned["given"], warned["used"]) == ("0.9 and 0.9", "0.5 and 0.5")


async def _status(client: Client) -> tuple[float, float, int, int]:
    shown = (await client.data("GET", "/status"))["dual_level"]
    return round(shown["low_weight"], 6), round(shown["high_weight"], 6), shown["low_limit"], shown["high_limit"]


async def test_weights_of_the_legs_act_on_hybrid(world: Any) -> None:
    async def scores(**body: Any) -> list[tuple[str, float]]:
        asked = {"query": "eel passage counts", "strategy": "hybrid", "limit": 10, **body}
        return [(result["id"], result["score"]) for result in (await world.alpha.data("POST", "/search", json=asked))["results"]]

    usual = await scores()
    assert usual == await scores(weights={"dense": 0.7})
    for given, alone in (({"dense": 1}, "dense"), ({"sparse": 1}, "sparse")):
        order = [id for id, _ in await scores(weights=given)]
        by_leg = [id for id, _ in await scores(strategy=alone)]
        assert order == by_leg[: len(order)]
    assert await scores(weights={"dense": 0.1}) != usual
    assert await scores(weights={"dense": 1}, options={"fusion": "rrf"}) != await scores(options={"fusion": "rrf"})
    refused = await world.alpha.post("/search", {"query": "eels", "strategy": "hybrid", "weights": {"low": 0.5}})
    assert refused.status_code == 422
    assert "'hybrid' takes the weights dense, sparse; got weights.low" in refused.json()["detail"]
