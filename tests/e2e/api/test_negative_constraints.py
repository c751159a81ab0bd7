"""Negative constraints of a request over HTTP, without a model, on the three people called Rowan Teller of the examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

CORPUS = Path(__file__).resolve().parents[3] / "examples/corpus"
NURSE = "teller-nurse-profile-2020"
TITLE = "Staff profile: Rowan Teller"
OTHERS = ("teller-oceanographer-interview-2016", "fishers-association-2023-minutes")


async def search(client: Any, **options: Any) -> dict[str, Any]:
    body = {"query": "Where did Rowan Teller grow up?", "strategy": "agentic", "limit": 10, "options": options}
    found: dict[str, Any] = (await client.post("/search", body)).json()
    return found


def titles(found: dict[str, Any]) -> set[str]:
    return {result["title"] for result in found["data"]["results"]}


async def test_without_a_model_a_request_names_whom_it_does_not_mean(tmp_path: Path, open_world: Any, new_tenant: Any) -> None:
    async with open_world(tmp_path) as (_, http):
        (made,) = await new_tenant(http, "alpha", "admin")
        for key in (NURSE, *OTHERS):
            (file,) = CORPUS.glob(f"{key}.*")
            await made.upload(file.read_text(encoding="utf-8"), key=key)
        found = await search(made)
        assert TITLE in titles(found)
        assert found["meta"]["fallback_reason"] == "no language model plans and reflects: rules do"
        (nurse,) = {
            entity["id"]
            for result in found["data"]["results"]
            if result["title"] == TITLE
            for entity in result["entities"]
            if entity["name"] == "Rowan Teller"
        }
        left = await search(made, negative_constraints=[f"entity:{nurse}"])
        assert TITLE not in titles(left)
        assert left["data"]["results"]
        phrase = await search(made, negative_constraints=["lobster", "senior nurse"])
        assert not [each for each in phrase["data"]["results"] if "senior nurse" in each["content"].lower()]
