"""A tenant's responses do not depend on the existence of other tenants: not in a word, not in a score.

The folder of a container that only alpha uses is copied. In the copy, beta is added, with the same keys, overlapping texts and
words of its own. Every response to alpha is then identical, byte for byte, except time and request id.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx
from tests.e2e.api.conftest import Client

from agentic_rag_backend.container import Container

Opened = Callable[..., AbstractAsyncContextManager[tuple[Container, httpx.AsyncClient]]]
Tenants = Callable[..., Any]

QUESTIONS = (
    "Why was the tidal barrage delayed?",
    "Who leads the Harbour Authority?",
    "Brimwhistle Society eels",
    "Oskar Tindlebrae",
)
STRATEGIES = ("dense", "sparse", "hybrid", "graph", "community", "dual_level")
GETS = (
    "/status",
    "/documents",
    "/jobs",
    "/communities",
    "/admin/communities",
    "/features",
    "/strategies",
    "/rerankers",
    "/tenants/me",
)
_VOLATILE = re.compile(
    r'"(?:requestId|timestamp)":"[^"]*"|"processing_time_ms":\{[^}]*\}|"cache":(?:null|"\w+")|"(?:answer_)?id":"a_\w+"'
)


async def test_answers_are_the_same_with_and_without_another_tenant(
    tmp_path: Path, open_world: Opened, new_tenant: Tenants, fill_tenant: Tenants
) -> None:
    async with open_world(tmp_path / "alone", dual_level_retrieval_enabled=True) as (_, http):
        (alpha,) = await new_tenant(http, "alpha", "admin")
        await fill_tenant(alpha, "alpha")
        alone = await _told(alpha)
    shutil.copytree(tmp_path / "alone", tmp_path / "beside")
    async with open_world(tmp_path / "beside", dual_level_retrieval_enabled=True) as (_, http):
        (beta,) = await new_tenant(http, "beta", "admin")
        documents = await fill_tenant(beta, "beta")
        notes = [f"The barrage of note {number} was delayed by a cracked caisson and by eels." for number in range(10)]
        await asyncio.gather(*(beta.upload(note) for note in notes))
        alpha.http = http
        beside = await _told(alpha)
        await beta.data("DELETE", f"/documents/{documents['tide']['id']}", status=202)
        after_delete = await _told(alpha)
        rebuilt = await alpha.rebuild()

    assert len(alone) == len(GETS) + len(QUESTIONS) * (2 * len(STRATEGIES) + 1)
    for asked, answer in alone.items():
        assert beside[asked] == answer, asked
        assert after_delete[asked] == answer, asked
    assert rebuilt["result"]["communities"] > 0


async def _told(client: Client) -> dict[str, str]:
    """Return all responses that the tenant can get, by request."""
    told = {f"GET {path}": await client.get(path) for path in GETS}
    for question in QUESTIONS:
        told[f"dual {question}"] = await client.post("/search/dual-level", {"query": question, "low_limit": 100})
        for strategy in STRATEGIES:
            body = {"query": question, "strategy": strategy, "limit": 100}
            told[f"search {json.dumps(body)}"] = await client.post("/search", body)
            told[f"answer {json.dumps(body)}"] = await client.post("/answers", body)
    assert all(response.status_code == 200 for response in told.values())
    return {asked: _VOLATILE.sub("", response.text) for asked, response in told.items()}
