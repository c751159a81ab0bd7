"""Labels a text: finds the nearest labelled documents, counts their votes, and lets a language model decide if it may."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from agentic_rag_backend.domain.query import Hit, Query
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.labelling.votes import LabelledDocument, Vote, confidence_of, count_votes
from agentic_rag_backend.models.embedding.calibration import CosineScale
from agentic_rag_backend.models.llm.base import INTEGER, object_of
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.retrieval.base import Retriever, Stores
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls, StructuredReply

LABEL_FIELD = "label"
"""Metadata key of a document's label: a text, or a list of texts."""
MAX_LABEL_CHARACTERS = 200
CHUNKS_PER_DOCUMENT = 2
"""Chunks that are searched for each labelled document that votes: a long document may be found by several chunks."""
_SHARE_OF_WORDS = 0.1
"""Weight of BM25, whose best score counts as 1, beside the cosine. Accuracy on CLINC150 with 30 documents for each label: .894
without it, .901 with .1, .889 with .3."""
_EXAMPLES = 12
"""Examples that the model reads."""
_EXAMPLE_CHARACTERS, _TEXT_CHARACTERS = 600, 6000
_MAX_LABELS = 100
_SCHEMA = object_of({"label": INTEGER})

Method = Literal["votes", "model"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelling:
    """The label of a text.

    Attributes:
        label: None: no labelled document was found, or the model says that no label fits.
        confidence: estimated probability, in [0, 1], that the label is right. It depends on the votes alone.
        votes: largest share first.
        documents: the documents that voted, the nearest first.
        method: what decided.
    """

    label: str | None
    confidence: float
    votes: tuple[Vote, ...]
    documents: tuple[LabelledDocument, ...]
    method: Method
    strategy: str
    usage: Usage = field(default_factory=Usage)
    warnings: tuple[str, ...] = ()


class Labeller:
    """Labels texts by the labels of a tenant's documents.

    Args:
        calls: calls of the fast model.
    """

    def __init__(self, stores: Stores, calls: StructuredCalls) -> None:
        self._stores = stores
        self._calls = calls

    @property
    def has_model(self) -> bool:
        """Whether a language model can decide."""
        return self._calls.possible

    async def label(
        self, query: Query, retriever: Retriever, strategy: str, *, limit: int, labels: Collection[str], method: Method
    ) -> Labelling:
        """Return the label of ``query.text``.

        Args:
            query: a search among labelled documents.
            limit: number of documents that vote.
            labels: the labels to choose from. Empty: those of the documents that are found.
        """
        # `graph` prefers results that differ, and votes need the nearest ones.
        retrieval = await retriever.retrieve(replace(query, diverse=False))
        scale = (await self._stores.calibration()).questions
        documents = tuple(nearest_documents(retrieval.hits, labels, scale))[:limit]
        votes = tuple(count_votes(documents))
        similarity = max((item.similarity for item in documents if item.similarity is not None), default=None)
        warnings = retrieval.trace.warnings
        result = Labelling(
            label=votes[0].label if votes else None,
            confidence=confidence_of(votes[0].share, similarity) if votes else 0.0,
            votes=votes,
            documents=documents,
            method="votes",
            strategy=strategy,
            usage=retrieval.usage,
            warnings=warnings if votes else (*warnings, f"no document with the metadata {LABEL_FIELD!r} was found"),
        )
        choices = list(dict.fromkeys((*(vote.label for vote in votes), *labels)))[:_MAX_LABELS]
        if method == "votes" or not choices:
            return result
        reply = await self._ask_model(query.text, choices, documents)
        usage = result.usage + reply.usage
        if reply.parsed is None:
            warning = f"the model did not choose a label ({reply.failure}): the votes decide"
            return replace(result, usage=usage, warnings=(*result.warnings, warning))
        number = reply.parsed.get("label")
        chosen = choices[number - 1] if isinstance(number, int) and 1 <= number <= len(choices) else None
        share = next((vote.share for vote in votes if vote.label == chosen), 0.0)
        return replace(result, label=chosen, confidence=confidence_of(share, similarity), method="model", usage=usage)

    async def _ask_model(self, text: str, choices: Sequence[str], documents: Sequence[LabelledDocument]) -> StructuredReply:
        """Return the reply of the model, which reads the nearest documents as examples."""
        numbers = {label: number for number, label in enumerate(choices, 1)}
        examples = (
            fence("passage", item.text[:_EXAMPLE_CHARACTERS], attributes={"label": numbers_text})
            for item in documents[:_EXAMPLES]
            if (numbers_text := ", ".join(str(numbers[label]) for label in item.labels if label in numbers))
        )
        values = {
            "labels": fence("points", "\n".join(f"{number}: {' '.join(label.split())}" for label, number in numbers.items())),
            "examples": "\n".join(examples),
            "text": fence("about", text[:_TEXT_CHARACTERS]),
        }
        return await self._calls.ask(built_in("label"), values, _SCHEMA, max_tokens=50)


def restrict_to_labelled(filters: Mapping[str, Any] | None, labels: Collection[str]) -> dict[str, Any]:
    """Return the filter of a search for documents that have a label, one of ``labels`` if there are any."""
    labelled = {f"metadata.{LABEL_FIELD}": list(labels) if labels else {"exists": True}}
    return {"and": [labelled, dict(filters)]} if filters else labelled


def labels_of(hit: Hit) -> tuple[str, ...]:
    """Return the labels of a result's document. Values that are no text are no labels."""
    value = hit.visible.metadata.get(LABEL_FIELD)
    values = value if isinstance(value, list) else [value]
    return tuple(item for item in values if isinstance(item, str) and 0 < len(item) <= MAX_LABEL_CHARACTERS)


def nearest_documents(hits: Sequence[Hit], labels: Collection[str], scale: CosineScale) -> Iterator[LabelledDocument]:
    """Yield the labelled documents of results, each once with its nearest chunk, the nearest first.

    Args:
        labels: other labels are left out. Empty: none is.
        scale: converts cosines to the bundled encoder's scale.
    """
    cosines = {hit.id: scale.convert_cosine(hit.scores["dense"]) for hit in hits if "dense" in hit.scores}
    best_bm25 = max((hit.scores.get("sparse", 0.0) for hit in hits), default=0.0)
    least = min(cosines.values(), default=0.0)
    documents = []
    for hit in hits:
        allowed = tuple(label for label in labels_of(hit) if not labels or label in labels)
        if not allowed:
            continue
        bm25 = hit.scores.get("sparse", 0.0) / best_bm25 if best_bm25 else 0.0
        # A result without a cosine was found by its words: its cosine is below those of the others.
        proximity = cosines.get(hit.id, least) + _SHARE_OF_WORDS * bm25 if cosines else hit.score
        documents.append(
            LabelledDocument(
                document_id=hit.visible.chunk.document_id,
                chunk_id=hit.id,
                title=hit.visible.document_title,
                text=hit.visible.chunk.text,
                labels=allowed,
                proximity=proximity,
                score=hit.score,
                similarity=cosines.get(hit.id),
            )
        )
    document_ids = set[str]()
    for document in sorted(documents, key=lambda item: -item.proximity):
        if document.document_id not in document_ids:
            document_ids.add(document.document_id)
            yield document
