"""A changed embedder is detected, the old vectors stay in use where possible, and the new ones replace them in one step."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from moved_tenants import Opens, report
from qdrant_clients import WITHOUT_INDEXES, local_client

from agentic_rag_backend.api.app import create_app
from agentic_rag_backend.container import Container, models, reindexing
from agentic_rag_backend.container.reindexing import open_reindexing
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ConfigurationError, ReindexRequired, StoreLocked
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.models.embedding.onnx import onnx_sessions
from agentic_rag_backend.models.installation import LocalFolder, install_model
from agentic_rag_backend.models.registry import known_model
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.vector.base import Collection
from agentic_rag_backend.stores.vector.edge import folder as vector_folder
from agentic_rag_backend.stores.vector.qdrant import server as qdrant_server


class Hashing(BundledEmbedder):
    """Another embedder: vectors of 8 numbers from the words of a text. It can be set to die after some texts."""

    embedded = 0
    dies_after = 10**9

    @property
    def fingerprint(self) -> str:
        return "hashing"

    @property
    def dimensions(self) -> int:
        return 8

    async def embed(self, texts: Sequence[str]) -> Any:
        if Hashing.embedded >= Hashing.dies_after:
            raise KeyboardInterrupt
        Hashing.embedded += len(texts)
        return np.stack([await self.embed_query(text) for text in texts])

    async def embed_query(self, text: str) -> Any:
        vector = np.full(8, 0.01, dtype=np.float32)
        for word in text.lower().split():
            vector[hashlib.sha256(word.encode()).digest()[0] % 8] += 1
        return vector / np.linalg.norm(vector)


@pytest.fixture
def hashing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that makes the other embedder the configured one."""
    Hashing.embedded, Hashing.dies_after = 0, 10**9
    configured = models.open_encoder

    def configure(chosen: bool) -> None:
        def encoder(settings: Settings, *more: Any) -> Any:  # without a setting, or one of those that are tried instead
            return configured(settings, *more) if settings.embedding_arithmetic else Hashing(model_path=None)

        monkeypatch.setattr(models, "open_encoder", encoder if chosen else configured)

    return configure


async def quiet(stage: str, done: int, total: int) -> None:
    """Print nothing."""


async def reindexed(settings: Settings) -> Any:
    async with open_reindexing(settings) as reindexing:
        done = await reindexing.reindexer.run(quiet)
        await reindexing.finish()
    return done


async def filled(opens: Opens, **settings: Any) -> tuple[TenantId, list[Any]]:
    async with opens(**settings) as application:
        tenant = await application.filled("acme", 3)
        return tenant, await application.answers(tenant)


def settings_of(tmp_path: Path, **other: Any) -> Settings:
    return Settings(_env_file=None, data_dir=tmp_path / "data", **other)


async def test_vectors_are_built_beside_and_take_over_at_once(opens: Opens, tmp_path: Path, hashing: Any) -> None:
    tenant, answers = await filled(opens)
    hashing(True)
    done = await reindexed(settings_of(tmp_path))
    async with opens() as application:
        assert application.container.reindex_due is None
        assert done.embedded == Hashing.embedded > 0
        points = await application.points(tenant)
        assert {len(vector) for vector in points["chunks vectors"].values()} == {4 * 8}
        assert await application.differences(tenant) == {}
        by_words = [each for each in answers if each[1] == "sparse"]
        assert [each for each in await application.answers(tenant) if each[1] == "sparse"] == by_words
        # Also recorded: text that an edit does not change is not embedded again.
        Hashing.embedded = 0
        await application.take_in(tenant, "report-2", report(2) + "\n\nOne sentence more.")
        assert 0 < Hashing.embedded < 4
    homes = [path.name for path in (tmp_path / "data" / "vectors").iterdir() if path.is_dir()]
    assert len(homes) == 1


async def test_interrupted_it_leaves_the_old_ones_in_use_and_pays_nothing_twice(
    opens: Opens, tmp_path: Path, hashing: Any
) -> None:
    tenant, answers = await filled(opens)
    hashing(True)
    Hashing.dies_after = 5
    with pytest.raises(KeyboardInterrupt):
        await reindexed(settings_of(tmp_path))
    paid = Hashing.embedded
    hashing(False)
    async with opens() as application:
        assert await application.answers(tenant) == answers
        await application.container.vectors.delete_document(
            tenant, (await application.container.catalogue.documents.documents(tenant, limit=1)).items[0].id, up_to_version=9
        )
        await application.container.reconciler.run(tenant, repair=True)
        assert await application.differences(tenant) == {}
    hashing(True)
    Hashing.dies_after = 10**9
    done = await reindexed(settings_of(tmp_path))
    async with opens() as application:
        whole = sum([await application.container.vectors.count(tenant, each) for each in Collection])
        assert await application.differences(tenant) == {}
        assert application.container.reindex_due is None
    assert (paid > 0, done.embedded + paid <= whole) == (True, True)


async def test_a_swap_that_was_interrupted_is_finished_by_whoever_opens_next(
    opens: Opens, tmp_path: Path, hashing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant, _ = await filled(opens)
    hashing(True)
    with monkeypatch.context() as broken:
        broken.setattr(vector_folder, "_remove_replaced_folders", lambda folder, home: None)
        await reindexed(settings_of(tmp_path))
    vectors = tmp_path / "data" / "vectors"
    assert len([path for path in vectors.iterdir() if path.is_dir()]) == 2
    async with opens() as application:
        assert await application.differences(tenant) == {}
    assert len([path for path in vectors.iterdir() if path.is_dir()]) == 1


async def test_over_vectors_of_the_same_embedder_nothing_is_embedded(opens: Opens, tmp_path: Path) -> None:
    tenant, answers = await filled(opens)
    async with opens() as application:
        before = await application.points(tenant)
        for document in (await application.container.catalogue.documents.documents(tenant, limit=9)).items[:2]:
            await application.container.vectors.delete_document(tenant, document.id, up_to_version=9)
    done = await reindexed(settings_of(tmp_path))
    async with opens() as application:
        assert await application.points(tenant) == before
        assert await application.answers(tenant) == answers
    assert (done.embedded, done.documents) == (0, 3)


async def test_a_folder_in_use_is_refused(opens: Opens, tmp_path: Path) -> None:
    async with opens():
        with pytest.raises(StoreLocked):
            await reindexed(settings_of(tmp_path))


async def ready(container: Any) -> httpx.Response:
    transport = httpx.ASGITransport(create_app(container))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        return await client.get("/health/ready")


async def test_the_embedder_that_made_them_serves_on_where_it_can_be_had(opens: Opens, tmp_path: Path) -> None:
    tenant, answers = await filled(opens)
    elsewhere = {"embedder": "openai", "openai_base_url": "http://127.0.0.1:1/v1", "embedding_dimensions": 8}
    async with opens(**elsewhere) as application:
        assert await application.answers(tenant) == answers
        told = await ready(application.container)
        assert (told.status_code, told.json()["reindex_required"]) == (200, True)
        await application.take_in(tenant, "report-7", report(7))
        assert await application.differences(tenant) == {}


def arithmetic_of(container: Container) -> str:
    assert isinstance(container.embedder, BundledEmbedder)
    return container.embedder.arithmetic


async def test_float_vectors_stay_in_use_until_a_reindex_moves_to_integers(
    opens: Opens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (onnx_sessions, reindexing):  # a processor that multiplies exactly, whichever this is
        monkeypatch.setattr(module, "multiplies_exactly", lambda: True)
    tenant, answers = await filled(opens, embedding_arithmetic="float32")
    async with opens() as application:
        assert application.container.reindex_due is None
        assert arithmetic_of(application.container) == "float32"
        assert await application.answers(tenant) == answers
        await application.take_in(tenant, "report-7", report(7))
        assert await application.differences(tenant) == {}
    assert (await reindexed(settings_of(tmp_path))).embedded > 0
    async with opens() as application:
        assert arithmetic_of(application.container) == "int8"
        assert await application.differences(tenant) == {}
        answers = await application.answers(tenant)
    async with opens(embedding_arithmetic="float32") as application:
        assert application.container.reindex_due is not None
        assert await application.answers(tenant) == answers


async def test_where_it_cannot_be_had_searches_name_the_command(opens: Opens, hashing: Any, tmp_path: Path) -> None:
    hashing(True)
    tenant, _ = await filled(opens)
    hashing(False)
    async with opens() as application:
        with pytest.raises(ReindexRequired, match="agentic-rag reindex"):
            await application.answers(tenant)
        told = await ready(application.container)
        assert (told.status_code, told.json()["stores"]["vectors"]) == (503, "reindex_required")
        with pytest.raises(StoreLocked):
            await reindexed(settings_of(tmp_path))


@pytest.mark.filterwarnings(WITHOUT_INDEXES)
async def test_on_qdrant_the_old_collections_serve_until_the_new_ones_are_whole(
    opens: Opens, tmp_path: Path, hashing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qdrant_server, "connect", lambda *args, **named: local_client(tmp_path / "qdrant"))
    for module in (onnx_sessions, reindexing):  # a processor that multiplies exactly, whichever this is
        monkeypatch.setattr(module, "multiplies_exactly", lambda: True)
    server = {"vector_store": "qdrant", "qdrant_url": "http://127.0.0.1:1", "qdrant_timeout_s": 60.0}
    tenant, answers = await filled(opens, **server)
    hashing(True)
    Hashing.dies_after = 5
    with pytest.raises(KeyboardInterrupt):
        await reindexed(settings_of(tmp_path, **server))
    hashing(False)
    async with opens(**server) as application:
        assert await application.answers(tenant) == answers
    hashing(True)
    Hashing.dies_after = 10**9
    async with opens(**server) as application:
        assert application.container.reindex_due is not None
    await reindexed(settings_of(tmp_path, **server))
    async with opens(**server) as application:
        assert application.container.reindex_due is None
        assert await application.differences(tenant) == {}
    client = local_client(tmp_path / "qdrant")
    assert len((await client.get_collections()).collections) == 2
    await client.close()


async def test_a_server_database_that_was_not_migrated_is_refused(opens: Opens, empty_postgres: str) -> None:
    apart = {"database_url": empty_postgres, "migrate_on_start": False}
    with pytest.raises(ConfigurationError, match=r"no revision.*agentic-rag migrate"):
        async with opens(**apart):
            pass
    async with opens(database_url=empty_postgres):
        pass
    async with opens(**apart) as application:
        await application.container.catalogue.ping()


async def test_another_language_needs_a_reindex_which_embeds_no_passage_again(opens: Opens, tmp_path: Path) -> None:
    text = "# Port\n\nZwei Häuser stehen am Wasser, und die Möwen schweigen."

    async def found(application: Any, tenant: TenantId, words: str) -> bool:
        current = await application.container.catalogue.tenants.tenant(tenant)
        query = Query(tenant=current, text=words)
        return bool((await application.container.retrievers.get("sparse").retrieve(query)).hits)

    async with opens() as application:
        tenant = await application.filled("acme", 1)
        await application.take_in(tenant, "haus", text)
        # By the terms of its own language, which it has in every deployment.
        assert await found(application, tenant, "Haus")
    async with opens(language="de") as application:
        with pytest.raises(ReindexRequired, match=r"english word.*german word"):
            await found(application, tenant, "Haus")
        told = await ready(application.container)
        assert (told.status_code, told.json()["stores"]["vectors"]) == (503, "reindex_required")
    done = await reindexed(settings_of(tmp_path, language="de"))
    assert done.embedded == done.communities + done.tree_nodes < done.chunks
    async with opens(language="de") as application:
        assert application.container.reindex_due is None
        assert await found(application, tenant, "Haus")
        assert not await found(application, tenant, "und")
        assert await application.differences(tenant) == {}


async def test_vectors_of_the_bundled_encoder_are_used_until_those_of_a_named_one_are_built(
    opens: Opens, tmp_path: Path, bge_small: Path
) -> None:
    tenant, answers = await filled(opens)
    install_model(known_model("bge-small-en-v1.5"), tmp_path / "data" / "models", LocalFolder(bge_small))
    named = {"embedding_model": "bge-small-en-v1.5", "embedding_threads": 1}
    async with opens(**named) as application:
        assert "were made with [onnx-" in (application.container.reindex_due or "")
        assert await application.answers(tenant) == answers
    done = await reindexed(settings_of(tmp_path, **named))
    assert done.embedded > 0
    async with opens(**named) as application:
        assert application.container.reindex_due is None
        assert "-cls-512-384" in application.container.embedder.fingerprint
        assert await application.differences(tenant) == {}
        assert await application.answers(tenant) != answers
