"""A tenant moves from one deployment to another completely, and is invisible there until it is complete."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from moved_tenants import FLAGS, ONTOLOGY, QUESTION_OF_DATASET, Opens, evaluation_of, report

from agentic_rag_backend.container import models
from agentic_rag_backend.domain.asked_questions import RatingCounts
from agentic_rag_backend.domain.document import ChunkingOptions
from agentic_rag_backend.domain.evaluation import CaseSource, EvaluationCase
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.domain.tenant import KeyRequest, Scope, TenantId, TenantState
from agentic_rag_backend.errors import Conflict, Forbidden, NotFound
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.stores.catalogue.base import TransferCatalogue
from agentic_rag_backend.stores.vector.base import Collection

Archived = tuple[Path, TenantId, list[Any], dict[str, Any], dict[str, Any]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def archived(opens_once: Opens, tmp_path_factory: pytest.TempPathFactory) -> Archived:
    """Return an archive, its tenant, its search results, and the contents of graph and vectors. Tests do not change them."""
    async with opens_once("from") as source:
        tenant = await source.filled("acme")
        assert await source.differences(tenant) == {}
        path = await source.archive(tenant, tmp_path_factory.mktemp("archive") / "acme.tar.gz")
        return path, tenant, await source.answers(tenant), source.graph(tenant), await source.points(tenant)


class _NoPassages(BundledEmbedder):
    """Embeds questions only: all other vectors are recorded."""

    async def embed(self, texts: Sequence[str]) -> Any:
        raise AssertionError("something was embedded again")


@pytest.fixture
def no_passages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "open_encoder", lambda *_: _NoPassages(model_path=None, threads=0, arithmetic=None))


def _check_evaluation(contents: dict[str, Any]) -> None:
    """Fail unless a tenant has the datasets, feedback and scores that `evaluated` made, which name chunks and documents of it."""
    by_chunk, by_key = contents["harbour 1"]
    assert [len(contents[f"harbour {version}"]) for version in (1, 2, 3)] == [2, 3, 2]
    assert by_chunk[:5] == (QUESTION_OF_DATASET, CaseSource.UPLOAD, ("people",), None, RatingCounts(0, 1))
    ((quote, chunk, document),) = by_chunk[5]
    assert (quote == chunk, document) == (True, "document"), "ids are those of this tenant"
    assert (by_key[3], by_key[5]) == ({"shelf": {"gte": 1}}, [("", None, "report-1")])
    saved = contents["harbour 3"][1]
    assert (saved[1], [item[1] == chunk for item in saved[5]]) == (CaseSource.ANSWER, [True])
    assert contents["feedback"] == [("bad", "Ines was born there.", None), ("good", None, chunk)]
    ((_, means),) = contents["scores"]
    assert (means["correct"].mean, means["correct"].computed) == (0.5, 1)


async def test_under_its_own_id_everything_is_the_same_and_nothing_is_computed(
    archived: Archived, opens: Opens, no_passages: None
) -> None:
    path, tenant, answers, graph, points = archived
    async with opens("to") as target:
        arrived, job = await target.imported(path)

        assert (arrived, job.state, job.error) == (tenant, JobState.SUCCEEDED, None)
        assert ((job.result or {})["embedded"], (job.result or {})["evaluation"]) == (0, 7)
        _check_evaluation(await evaluation_of(target, tenant))
        assert await target.answers(tenant) == answers
        assert target.graph(tenant) == graph
        assert await target.points(tenant) == points
        assert await target.differences(tenant) == {}
        again = await target.rebuilt(tenant, "incremental")
        assert (again.result or {})["summaries_written"] == 0
        assert await target.container.catalogue.tenants.flags(tenant) == FLAGS
        assert await target.container.catalogue.tenants.ontology(tenant) == ONTOLOGY


async def test_under_another_id_every_id_is_another_and_nothing_is_paid_again(
    archived: Archived, opens: Opens, no_passages: None
) -> None:
    path, _, answers, _, points = archived
    async with opens("to") as target:
        empty = (await target.container.catalogue.tenants.create("acme's twin")).id
        arrived, job = await target.imported(path, empty)

        assert (arrived, job.state, job.error) == (empty, JobState.SUCCEEDED, None)
        assert await target.differences(empty) == {}
        _check_evaluation(await evaluation_of(target, empty))
        found = await target.answers(empty)
        for now, then in zip(found, answers, strict=True):
            assert [score for _, score in now[2]] == pytest.approx([score for _, score in then[2]])
        # Themes of equal scores come in the order of their ids, which are others.
        assert [sorted(theme[1:] for theme in each[4]) for each in found] == [
            sorted(theme[1:] for theme in each[4]) for each in answers
        ]
        ids = {id for each in answers for id, _ in each[2]} | {
            id for collection in Collection for id in points[f"{collection} vectors"]
        }
        stored = target.stored()
        assert not [id for id in ids if id.encode() in stored]
        again = await target.rebuilt(empty, "incremental")
        assert ((again.result or {})["summaries_written"], (again.result or {})["summaries_reused"] > 0) == (0, True)


async def test_what_comes_later_builds_on_what_arrived(archived: Archived, opens: Opens) -> None:
    """Also edits of the graph: they change a later version of a document as they changed the archived one."""
    path, *_ = archived
    async with opens("to") as target:
        empty = (await target.container.catalogue.tenants.create("twin")).id
        await target.imported(path, empty)
        before = await target.container.catalogue.documents.counts(empty)
        await target.take_in(empty, "report-1", report(1) + "\n\nOne sentence more.")
        after = await target.container.catalogue.documents.counts(empty)

        assert after["documents"] == before["documents"]
        who = await target.container.catalogue.tenants.tenant(empty)
        page = await target.container.entities.page(who, limit=1000)
        found = {each.entity.name: each.entity.id for each in page.items}
        assert "Juno Carrow" in found
        assert not {"Ines Carrow", "Juno Abara", "Greenholm"} & found.keys()
        named = (await target.container.entities.entity(who, found["Juno Carrow"])).names
        assert {"Juno Carrow", "Juno Abara", "Ines Carrow"} == set(named)
        edits = (await target.container.graph_editor.page(who)).items
        assert [(each.edit.number, each.edit.undone_at is not None) for each in edits] == [
            (4, True), (3, False), (2, False), (1, False)
        ]  # fmt: skip
        jobs = await target.container.catalogue.jobs.jobs(empty, limit=1)
        assert (jobs.items[0].result or {})["reused"] > 0
        assert await target.differences(empty) == {}


async def test_nothing_of_other_tenants_and_nothing_deleted_or_replaced_is_in_it(opens: Opens, tmp_path: Path) -> None:
    async with opens("from") as source:
        tenant = await source.filled("acme", 3)
        other = (await source.container.catalogue.tenants.create("globex")).id
        await source.take_in(other, "secret", "# Quillfeather\n\nThe Quillfeather Trust owns the pier of Wexcombe.")
        doomed = await source.take_in(
            tenant, "doomed", "# Nightjar\n\nThe Nightjar Company was founded by Odile Brask in Scarrow."
        )
        await source.take_in(tenant, "changed", "# Heron\n\nThe Heronsgate Bank was founded by Piet Lund in Greenholm.")
        await source.rebuilt(tenant)
        await source.take_in(tenant, "changed", "# Heron\n\nThis says something else by now.")
        await source.ended(tenant, await source.container.ingestion.delete(tenant, doomed))
        issued = await source.container.tenants.issue_key(tenant, KeyRequest("first"))

        path = await source.archive(tenant, tmp_path / "a")
        hidden = await source.take_in(tenant, "hidden", "# Kestrel\n\nThe Kestrel Line sails from Scarrow.")
        await source.container.catalogue.documents.tombstone(tenant, hidden, lambda *_: None)
        again = await source.archive(tenant, tmp_path / "b")

    for content in (gzip.decompress(path.read_bytes()), gzip.decompress(again.read_bytes())):
        assert b"Harbour Office" in content
        words = (b"Quillfeather", b"Wexcombe", other.value.encode(), b"Nightjar", b"Brask", b"Heronsgate", b"Lund", b"Kestrel")
        assert [word for word in (*words, issued.secret.encode(), issued.key.id.encode()) if word in content] == []
        assert hashlib.sha256(issued.secret.encode()).hexdigest().encode() not in content


async def test_a_tenant_with_documents_a_taken_name_and_a_stranger_are_refused(archived: Archived, opens: Opens) -> None:
    path, tenant, *_ = archived
    async with opens("to") as target:
        await target.imported(path)
        with pytest.raises(Conflict, match="has 5 documents"):
            await target.imported(path)
        with pytest.raises(NotFound):
            await target.imported(path, TenantId.new())
        assert await target.differences(tenant) == {}
    async with opens("elsewhere") as target:
        await target.container.catalogue.tenants.create("acme")
        with pytest.raises(Conflict, match="the tenant name 'acme' is taken"):
            await target.imported(path)
        arrived, job = await target.imported(path, name="acme of old")
        assert (arrived, job.state) == (tenant, JobState.SUCCEEDED)


class Gate:
    """Allows some documents to be staged, and holds the next one until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, let_through: int) -> None:
        self.reached, self.open = asyncio.Event(), asyncio.Event()
        self.staged: list[str] = []
        stage = TransferCatalogue.stage

        async def gated(own: TransferCatalogue, tenant: TenantId, record: Any) -> None:
            if len(self.staged) >= let_through:
                self.reached.set()
                await self.open.wait()
            await stage(own, tenant, record)
            self.staged.append(record.id)

        monkeypatch.setattr(TransferCatalogue, "stage", gated)


async def test_nobody_sees_half_of_it(archived: Archived, opens: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    path, tenant, answers, *_ = archived
    gate = Gate(monkeypatch, 2)
    async with opens("to", operator_key="o" * 32) as target:
        begun = await target.container.transfer.begin_import(path)
        issued = await target.container.tenants.issue_key(tenant, KeyRequest("early"))
        async with asyncio.timeout(60):
            await gate.reached.wait()

        assert (await target.container.tenants.get(tenant)).state is TenantState.IMPORTING
        with pytest.raises(Forbidden, match="importing"):
            await target.container.authenticator.authenticate(issued.secret)
        operator = await target.container.authenticator.authenticate("o" * 32, acting_for=tenant.value)
        assert not operator.may_use(Scope.WRITE)
        assert (await target.container.catalogue.documents.counts(tenant))["chunks"] == 0
        assert {len(each[2]) + len(each[3]) + len(each[4]) for each in await target.answers(tenant)} == {0}
        gate.open.set()
        assert (await target.ended(tenant, begun.job)).state is JobState.SUCCEEDED
        assert await target.answers(tenant) == answers


async def test_an_import_that_was_interrupted_goes_on_where_it_was(
    archived: Archived, opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, tenant, answers, *_ = archived
    gate = Gate(monkeypatch, 2)
    async with opens("to") as target:
        begun = await target.container.transfer.begin_import(path)
        async with asyncio.timeout(60):
            await gate.reached.wait()
    gate.open.set()
    first = list(gate.staged)
    async with opens("to") as target:
        job = await target.ended(tenant, begun.job)

        assert (job.state, job.error) == (JobState.SUCCEEDED, None)
        assert len(first) == 2
        assert len(gate.staged) == 5, "what was staged is staged once"
        assert await target.answers(tenant) == answers
        assert await target.differences(tenant) == {}


async def test_what_fails_leaves_an_empty_tenant_that_can_be_filled_again(
    archived: Archived, opens: Opens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, tenant, answers, *_ = archived
    content = path.read_bytes()
    cut = tmp_path / "cut"
    cut.write_bytes(content[: int(len(content) * 0.8)])
    async with opens("to") as target:
        arrived, job = await target.imported(cut)

        assert (arrived, job.state, (job.error or {})["code"]) == (tenant, JobState.FAILED, "invalid_request")
        assert (await target.container.tenants.get(tenant)).state is TenantState.ACTIVE
        assert set(map(len, target.graph(tenant).values())) == {0}
        assert set(map(len, (await target.points(tenant)).values())) == {0}
        assert await target.container.blobs.delete_tenant(tenant) == 0
        retried = await target.ended(tenant, await target.container.jobs.retry(tenant, job.id))
        assert "import it again" in (retried.error or {})["message"]
        await target.container.datasets.create(tenant, "own", [EvaluationCase(question="An own one?")])
        _, job = await target.imported(path)
        assert (job.state, (job.result or {})["evaluation"]) == (JobState.SUCCEEDED, 0)
        assert set(await evaluation_of(target, tenant)) == {"own 1", "feedback", "scores"}, "own datasets stay, alone"
        assert await target.answers(tenant) == answers


class _Hashing(BundledEmbedder):
    """Another embedder: vectors of 8 numbers from the words of a text."""

    embedded = 0

    @property
    def fingerprint(self) -> str:
        return "hashing"

    @property
    def dimensions(self) -> int:
        return 8

    async def embed(self, texts: Sequence[str]) -> Any:
        type(self).embedded += len(texts)
        return np.stack([await self.embed_query(text) for text in texts])

    async def embed_query(self, text: str) -> Any:
        vector = np.full(8, 0.01, dtype=np.float32)
        for word in text.lower().split():
            vector[hashlib.sha256(word.encode()).digest()[0] % 8] += 1
        return vector / np.linalg.norm(vector)


async def test_another_embedder_embeds_again_and_nothing_else_is_computed(
    archived: Archived, opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, tenant, answers, graph, points = archived
    monkeypatch.setattr(models, "open_encoder", lambda *_: _Hashing(model_path=None, threads=0))
    async with opens("to") as target:
        _, job = await target.imported(path)
        found = await target.points(tenant)

        assert (job.state, job.error) == (JobState.SUCCEEDED, None)
        assert (job.result or {})["embedded"] == _Hashing.embedded > 0
        assert target.graph(tenant) == graph
        assert found["chunks points"] == points["chunks points"]
        assert {len(vector) for vector in found["chunks vectors"].values()} == {4 * 8}
        by_words = [each for each in answers if each[1] == "sparse"]
        assert [each for each in await target.answers(tenant) if each[1] == "sparse"] == by_words
        assert await target.differences(tenant) == {}
        # They are recorded too: the next version of a document only embeds its new text.
        _Hashing.embedded = 0
        await target.take_in(tenant, "report-2", report(2) + "\n\nOne sentence more.")
        assert 0 < _Hashing.embedded < 4


async def test_an_export_beside_uploads_and_deletions_is_of_one_moment(opens: Opens, tmp_path: Path) -> None:
    async with opens("from") as source:
        tenant = await source.filled("acme", 3)
        going = True
        versions: list[dict[str, str]] = []

        async def note() -> None:
            held = await source.container.catalogue.transfer.headers(tenant)  # type: ignore[attr-defined]
            versions.append({id: str(header) for id, header in held.items()})

        async def busy() -> None:
            number = 10
            while going:
                number += 1
                document = await source.take_in(tenant, f"more-{number}", report(number))
                await note()
                if number % 3 == 0:
                    await source.ended(tenant, await source.container.ingestion.delete(tenant, document))
                    await note()

        await note()
        work = asyncio.create_task(busy())
        paths = [await source.archive(tenant, tmp_path / f"{number}") for number in range(3)]
        going = False
        await work
    for number, path in enumerate(paths):
        async with opens(f"to-{number}") as target:
            _, job = await target.imported(path)
            assert job.state is JobState.SUCCEEDED, job.error
            held = await target.container.catalogue.transfer.headers(tenant)  # type: ignore[attr-defined]
            assert {id: str(header) for id, header in held.items()} in versions
            assert await target.differences(tenant) == {}


async def test_a_tenant_that_changes_at_every_look_is_given_up_on(
    opens: Opens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opens("from") as source:
        tenant = await source.filled("acme", 1)
        record = TransferCatalogue.summaries

        async def changing(own: TransferCatalogue, of: TenantId) -> Any:
            await source.container.catalogue.tenants.set_flags(of, {"DUAL_LEVEL_RETRIEVAL_ENABLED": False})
            return await record(own, of)

        monkeypatch.setattr(TransferCatalogue, "summaries", changing)
        with pytest.raises(Conflict, match="changed during every attempt"):
            await source.archive(tenant, tmp_path / "a")
        assert list((source.folder / "transfer").iterdir()) == []


async def test_an_empty_tenant_moves_too(opens: Opens, tmp_path: Path) -> None:
    async with opens("from") as source:
        tenant = (await source.container.catalogue.tenants.create("nobody")).id
        path = await source.archive(tenant, tmp_path / "a")
    async with opens("to") as target:
        arrived, job = await target.imported(path)

        assert (arrived, job.state, job.error) == (tenant, JobState.SUCCEEDED, None)


@pytest.mark.parametrize(("kept_there", "kept_here"), [(False, True), (True, False)])
async def test_originals_that_are_not_kept_do_not_travel_and_do_not_arrive(
    opens: Opens, tmp_path: Path, kept_there: bool, kept_here: bool
) -> None:
    async with opens("from", keep_originals=kept_there) as source:
        tenant = (await source.container.catalogue.tenants.create("acme")).id
        document = await source.take_in(tenant, "report", report(1))
        path = await source.archive(tenant, tmp_path / "acme.tar.gz")
    async with opens("to", keep_originals=kept_here) as target:
        assert (await target.imported(path))[1].state is JobState.SUCCEEDED
        with pytest.raises(NotFound, match="was not kept"):
            await target.container.ingestion.read_original(tenant, document)
        assert await target.differences(tenant) == {}
        cut = await target.container.ingestion.chunk_again(tenant, document, ChunkingOptions(chunk_size=32, overlap=0))
        assert (await target.ended(tenant, cut.job)).state is JobState.SUCCEEDED
        assert (await target.container.catalogue.documents.version(tenant, document, 2)).text == report(1)
        assert await target.differences(tenant) == {}
