"""From the embedded profile to PostgreSQL, Neo4j and Qdrant and back: the questions of ``examples/`` find the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from moved_tenants import Application, Opens
from qdrant_clients import WITHOUT_INDEXES, local_client
from services import ROOT

from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress
from agentic_rag_backend.stores.vector.qdrant import server as qdrant_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200), pytest.mark.filterwarnings(WITHOUT_INDEXES)]
EXAMPLES = ROOT / "examples"
DOCUMENTS = 14
"""The documents that the questions need, and some more. Not all, because the engine in the client's process is slow."""
QUESTIONS = [json.loads(line)["question"] for line in (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()][:6]


async def _examples(source: Application) -> Any:
    tenant = (await source.container.catalogue.tenants.create("examples")).id
    for path in sorted((EXAMPLES / "corpus").iterdir())[:DOCUMENTS]:
        submitted = await source.container.ingestion.submit(
            tenant, Upload(content=path.read_bytes(), file_name=path.name, key=path.stem)
        )
        assert (await source.ended(tenant, submitted.job)).state is JobState.SUCCEEDED
    await source.rebuilt(tenant)
    return tenant


def _ids(answers: list[Any]) -> list[Any]:
    return [(text, strategy, [id for id, _ in hits], facts, themes) for text, strategy, hits, facts, themes in answers]


async def test_embedded_to_server_and_back(
    opens: Opens, tmp_path: Path, empty_neo4j: Neo4jAddress, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qdrant_server, "connect", lambda *args, **named: local_client(tmp_path / "qdrant"))
    server = {
        "database_url": postgres_url,
        "graph_store": "neo4j",
        "neo4j_uri": empty_neo4j.uri,
        "neo4j_user": empty_neo4j.user,
        "neo4j_password": empty_neo4j.password,
        "neo4j_timeout_s": 60.0,
        "graphiti_search_enabled": False,
        "vector_store": "qdrant",
        "qdrant_url": "http://127.0.0.1:1",
        "qdrant_timeout_s": 60.0,
    }
    async with opens("embedded") as source:
        tenant = await _examples(source)
        asked = await source.answers(tenant, QUESTIONS)
        graph = source.graph(tenant)
        outward = await source.archive(tenant, tmp_path / "outward")
    async with opens("server", **server) as target:
        _, job = await target.imported(outward)
        assert (job.state, job.error) == (JobState.SUCCEEDED, None)
        assert (job.result or {})["embedded"] == 0
        assert _ids(await target.answers(tenant, QUESTIONS)) == _ids(asked)
        assert await target.differences(tenant) == {}
        homeward = await target.archive(tenant, tmp_path / "homeward")
    async with opens("home") as home:
        _, job = await home.imported(homeward)
        assert (job.state, job.error) == (JobState.SUCCEEDED, None)
        assert home.graph(tenant) == graph
        assert _ids(await home.answers(tenant, QUESTIONS)) == _ids(asked)
