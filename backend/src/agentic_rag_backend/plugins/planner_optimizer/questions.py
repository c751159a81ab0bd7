"""Questions from examples: their tenants and documents, as this deployment has them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from agentic_rag_backend.domain.filter_grammar import parse_filter
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest, NotFound
from agentic_rag_backend.plugins.planner_optimizer.examples import Example
from agentic_rag_backend.plugins.planner_optimizer.planned_search import Question
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue, Matching

_REPORTED = 10
_MOST_OF_ONE_TITLE = 100


async def resolve(
    examples: Sequence[Example], caller: Callable[[str | None], Awaitable[Principal]], documents: DocumentCatalogue
) -> tuple[Question, ...]:
    """Return the questions.

    Args:
        caller: returns the caller for the name or id of a tenant. None: the default tenant.

    Raises:
        InvalidRequest: rows name a tenant or a document that does not exist. The message has the first ten with their numbers.
    """
    questions, problems = [], []
    for example in examples:
        try:
            questions.append(await _question(example, await caller(example.tenant), documents))
        except (NotFound, InvalidRequest) as error:
            problems.append(f"row {example.row}: {error.message}")
    if problems:
        suffix = f"; and {len(problems) - _REPORTED} more" if len(problems) > _REPORTED else ""
        raise InvalidRequest(f"the training file does not match the stores: {'; '.join(problems[:_REPORTED])}{suffix}")
    return tuple(questions)


async def _question(example: Example, caller: Principal, documents: DocumentCatalogue) -> Question:
    gold_ids = {}
    for name in example.documents:
        gold_ids[name] = await _ids(name, caller, documents)
        if not gold_ids[name]:
            raise NotFound(f"no document of tenant {caller.tenant.name!r} has the id, key or title {name[:200]!r}")
    return Question(example, caller, gold_ids)


async def _ids(name: str, caller: Principal, documents: DocumentCatalogue) -> frozenset[str]:
    tenant = caller.tenant.id
    try:
        return frozenset([(await documents.document(tenant, name)).id])
    except AgenticRagError:
        pass  # a key or a title
    page = await documents.documents(tenant, Matching(key=name), limit=1)
    if not page.items:
        page = await documents.documents(tenant, Matching(filter=parse_filter({"title": {"eq": name}})), limit=_MOST_OF_ONE_TITLE)
    return frozenset(document.id for document in page.items)
