"""Contract of every catalogue for synthetic questions: they belong to chunks, are reused, and go with their version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from agentic_rag_backend.domain.document import Document, Failure, content_hash
from agentic_rag_backend.domain.synthetic_questions import SyntheticQuestion, question_id
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest, NotFound
from agentic_rag_backend.stores.catalogue.base import Catalogue, ChunkQuestions, ParsedVersion, PreparedQuestion
from agentic_rag_backend.testing.catalogue.samples import (
    LINES,
    TEXT,
    Check,
    equal,
    ingest,
    nothing,
    prepared,
    raises,
    stage,
    submission,
    tenant,
)

NEW = "The engine was never finished."
SECOND = "\n".join((*LINES[1:], NEW))
NO_MODEL = Failure("questions", "no_model", "no model is configured")


def questions(document_id: str, version: int, text: str = TEXT, *, made_with: str = "v1") -> dict[str, ChunkQuestions]:
    """Return two questions for each line of ``text``, one of them without a vector, by chunk id."""
    found = {}
    for item in prepared(document_id, version, text):
        id, asked = item.chunk.id, (f"Who {item.chunk.text[:9]}?", f"{made_with} of {item.chunk.text}?")
        items = tuple(
            PreparedQuestion(
                SyntheticQuestion(id=question_id(id, each), chunk_id=id, text=each, source="patterns"),
                np.arange(8, dtype=np.float32) if number else None,
            )
            for number, each in enumerate(asked)
        )
        found[id] = ChunkQuestions(content_hash(f"{id} {made_with}"), items)
    return found


def recipes(document_id: str, version: int, text: str, *, made_with: str = "v1") -> dict[str, str]:
    """Return the recipes of `questions` by chunk id."""
    return {id: each.recipe for id, each in questions(document_id, version, text, made_with=made_with).items()}


def seen(held: ChunkQuestions | None) -> object:
    """Return the comparable fields of a chunk's questions."""
    if held is None:
        return None
    items = [(item.question, None if item.vector is None else list(item.vector)) for item in held.items]
    return held.recipe, held.failure, items


async def ask(catalogue: Catalogue, owner: TenantId, key: str, text: str = TEXT) -> Document:
    """Submit a version of ``text`` and stage it with questions."""
    document = await stage(catalogue, owner, await catalogue.documents.submit(owner, submission(key, text), nothing), text)
    version = document.latest_version
    await catalogue.questions.save(owner, document.id, version, questions(document.id, version, text))
    return document


async def questions_are_shown_with_their_version(catalogue: Catalogue) -> None:
    """A staged version's questions are on record and not shown. A tombstone hides them."""
    owner = await tenant(catalogue)
    document = await ask(catalogue, owner, "report")
    made = questions(document.id, 1)
    first, ids = next(iter(made)), [item.question.id for each in made.values() for item in each.items]
    held = await catalogue.documents.prepared(owner, document.id, 1)
    equal([seen(item.questions) for item in held], [seen(each) for each in made.values()])
    await _hidden(catalogue, owner, document.id, made)
    equal(await catalogue.documents.publish(owner, document.id, 1), True)
    shown = await catalogue.questions.of_chunks(owner, [*made, "unknown"])
    equal(shown, {id: tuple(item.question for item in each.items) for id, each in made.items()})
    equal(set(await catalogue.questions.by_id(owner, [*ids, "unknown"])), set(ids))
    equal((await catalogue.questions.by_id(owner, ids))[ids[0]], made[first].items[0].question)
    embedded = [item.question.id for each in made.values() for item in each.items if item.vector is not None]
    equal(await catalogue.questions.embedded(owner, [document.id]), {document.id: embedded})
    equal((await catalogue.documents.counts(owner))["questions"], len(ids))
    await catalogue.questions.save(owner, document.id, 1, questions(document.id, 1, made_with="v2"))
    equal(await catalogue.questions.of_chunks(owner, list(made)), shown, "a visible version is not changed")
    await catalogue.documents.tombstone(owner, document.id, nothing)
    await _hidden(catalogue, owner, document.id, made)
    await raises(NotFound, catalogue.questions.save(owner, document.id, 1, made), "a deleted document")


async def _hidden(catalogue: Catalogue, owner: TenantId, document_id: str, made: Mapping[str, ChunkQuestions]) -> None:
    equal(await catalogue.questions.of_chunks(owner, list(made)), {})
    equal(await catalogue.questions.by_id(owner, [item.question.id for each in made.values() for item in each.items]), {})
    equal(await catalogue.questions.embedded(owner, [document_id]), {})
    equal((await catalogue.documents.counts(owner))["questions"], 0)


async def unchanged_questions_are_reused(catalogue: Catalogue) -> None:
    """Questions of equal chunks and recipes are copied, from one version only, and superseded ones are not shown."""
    owner = await tenant(catalogue)
    document = await ask(catalogue, owner, "report")
    equal(await catalogue.documents.publish(owner, document.id, 1), True)
    second = await stage(catalogue, owner, await catalogue.documents.submit(owner, submission("report", SECOND), nothing), SECOND)
    equal((second.id, second.latest_version), (document.id, 2))
    wanted, old = recipes(document.id, 2, SECOND), questions(document.id, 1)
    other = await catalogue.questions.reuse(owner, document.id, 2, recipes(document.id, 2, SECOND, made_with="v2"))
    equal(other, frozenset(), "another recipe")
    kept = await catalogue.questions.reuse(owner, document.id, 2, wanted)
    equal(kept, frozenset(wanted) & frozenset(old))
    equal(await catalogue.questions.reuse(owner, document.id, 2, wanted), kept, "repeated")
    held = {item.chunk.id: item.questions for item in await catalogue.documents.prepared(owner, document.id, 2)}
    equal({id: seen(each) for id, each in held.items()}, {id: seen(old[id]) if id in kept else None for id in held})
    new = questions(document.id, 2, SECOND)
    await catalogue.questions.save(owner, document.id, 2, {id: each for id, each in new.items() if id not in kept})
    equal(await catalogue.documents.publish(owner, document.id, 2), True)
    equal(set(await catalogue.questions.of_chunks(owner, [*old, *new])), set(new), "only those of the visible version")
    equal(list(await catalogue.documents.drop_versions(owner, document.id, below=2)), [submission("report").blob_key])
    equal((await catalogue.documents.remains(owner, document.id))["chunk_questions"], 6)


async def failed_questions_are_not_reused(catalogue: Catalogue) -> None:
    """Questions with a failure are listed with their chunk and made again. Equal recipes of other documents do not count."""
    owner, other = await tenant(catalogue), await tenant(catalogue, "second")
    document = await ask(catalogue, owner, "report")
    made = questions(document.id, 1)
    first, *rest = made
    await catalogue.questions.save(owner, document.id, 1, {first: replace(made[first], failure=NO_MODEL)})
    held = await catalogue.documents.prepared(owner, document.id, 1)
    equal([item.failures for item in held], [(NO_MODEL,), (), ()])
    equal([item.complete for item in held], [True] * 3, "the chunk's own results are good")
    equal(await catalogue.questions.reuse(owner, document.id, 1, recipes(document.id, 1, TEXT)), frozenset(rest))
    await catalogue.questions.save(owner, document.id, 1, {first: ChunkQuestions(made[first].recipe)})
    equal(
        await catalogue.questions.reuse(owner, document.id, 1, recipes(document.id, 1, TEXT)), frozenset(made), "none is a result"
    )
    await raises(
        InvalidRequest, catalogue.questions.save(owner, document.id, 1, {"unknown": made[first]}), "a chunk that is not staged"
    )
    theirs = await stage(catalogue, other, await catalogue.documents.submit(other, submission("report"), nothing))
    equal(await catalogue.questions.reuse(other, theirs.id, 1, recipes(theirs.id, 1, TEXT)), frozenset(), "another tenant's")


async def questions_go_with_their_chunks(catalogue: Catalogue) -> None:
    """Another parse, a chunk that is staged again, and a purge remove them; all rows are counted."""
    owner, docs = await tenant(catalogue), catalogue.documents
    document = await ask(catalogue, owner, "report")
    staged = prepared(document.id, 1, TEXT)
    await docs.save_prepared(owner, document.id, 1, staged[:1])
    equal([item.questions is None for item in await docs.prepared(owner, document.id, 1)], [True, False, False])
    await docs.save_prepared(owner, document.id, 1, [replace(staged[0], questions=questions(document.id, 1)[staged[0].chunk.id])])
    equal([item.questions is None for item in await docs.prepared(owner, document.id, 1)], [False, False, False])
    equal((await docs.remains(owner, document.id))["chunk_questions"], 6)
    await docs.save_parsed(owner, document.id, 1, ParsedVersion(f"{TEXT}!", "Report", {}))
    equal((await docs.remains(owner, document.id))["chunk_questions"], 0, "another parse")
    again = await ask(catalogue, owner, "other")
    equal(await docs.publish(owner, again.id, 1), True)
    await docs.tombstone(owner, again.id, nothing)
    equal((await docs.purge(owner, again.id, up_to_version=1))["chunk_questions"], 6)
    equal(sum((await docs.remains(owner, again.id)).values()), 0)
    await ingest(catalogue, owner, "without questions")


CHECKS: tuple[Check, ...] = (
    questions_are_shown_with_their_version,
    unchanged_questions_are_reused,
    failed_questions_are_not_reused,
    questions_go_with_their_chunks,
)
