"""Datasets, feedback and scores as lines of an archive, and back. Texts of documents that the archive lacks are left out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, RootModel, StringConstraints, model_validator

from agentic_rag_backend.domain.asked_questions import Rating
from agentic_rag_backend.domain.document import stable_id
from agentic_rag_backend.domain.evaluation import MAX_CASES, MAX_DATASETS, CaseSource, EvaluationCase, GoldItem
from agentic_rag_backend.domain.feedback import MAX_CORRECTION_CHARACTERS, MAX_REASON_CHARACTERS
from agentic_rag_backend.domain.filter_grammar import parse_filter
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest, PayloadTooLarge
from agentic_rag_backend.retrieval.requests.search_requests import MAX_QUERY_CHARACTERS
from agentic_rag_backend.stores.catalogue.base import (
    ArchivedCase,
    ArchivedDataset,
    ArchivedFeedback,
    ArchivedScore,
    EvaluationRecord,
    EvaluationTransferCatalogue,
    without_quotes,
)
from agentic_rag_backend.transfer.identity import Identity
from agentic_rag_backend.transfer.records import Record
from agentic_rag_backend.transfer.value_checks import Count, Counter, Name, TenantNameText, Time, Uuid, Word

MAX_EVALUATION_LINES: Mapping[str, int] = {
    "datasets": MAX_DATASETS,
    "cases": 1_000_000,
    "feedback": 1_000_000,
    "scores": 2_000_000,
}
"""Lines of each kind in an archive."""
_PAGE = 500
_MAX_TEXT_CHARACTERS = 4_000
_MAX_GOLD = 200
_MAX_DOCUMENTS = 10_000

R = TypeVar("R", bound=Record)
_Text = Annotated[str, StringConstraints(max_length=_MAX_TEXT_CHARACTERS)]
_Texts = Annotated[tuple[_Text, ...], Field(max_length=50)]
_Label = Annotated[str, StringConstraints(max_length=200)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Documents = Annotated[tuple[Uuid, ...], Field(max_length=_MAX_DOCUMENTS)]


class DatasetLine(Record):
    """A dataset. Its cases follow it."""

    part: Literal["dataset"] = "dataset"
    id: Uuid
    name: TenantNameText
    version: Count
    created_at: Time
    updated_at: Time


class GoldRecord(Record):
    """An item of evidence."""

    quote: _Text = ""
    chunk_id: Name | None = None
    document: Name | None = None


class CaseLine(Record):
    """A case of a dataset, of all versions. ``documents`` are those whose texts it has."""

    part: Literal["case"] = "case"
    dataset_id: Uuid
    number: Annotated[int, Field(ge=1, le=MAX_CASES)]
    id: Uuid
    added_in: Counter
    removed_in: Counter | None
    question: Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUERY_CHARACTERS)]
    expected_answer: _Text | None
    must_say: _Texts
    answerable: bool
    kind: _Label
    tags: _Texts
    gold: Annotated[tuple[GoldRecord, ...], Field(max_length=_MAX_GOLD)]
    filters: dict[str, Any] | None
    source: CaseSource
    documents: _Documents

    @model_validator(mode="after")
    def _has_valid_filter(self) -> CaseLine:
        try:
            parse_filter(self.filters)
        except InvalidRequest as error:
            raise ValueError(f"filters: {error.message}") from None
        return self


class FeedbackLine(Record):
    """Feedback. ``documents`` are those that its texts may quote."""

    part: Literal["feedback"] = "feedback"
    id: Uuid
    answer_id: Word
    key_id: Word
    citation: Count | None
    result: Word | None
    chunk_id: Word | None
    strategy: _Label
    generator: _Label
    confidence: _Share
    estimate: _Share | None = None
    grounded: bool
    question_hash: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")] | None
    rating: Rating
    reason: Annotated[str, StringConstraints(max_length=MAX_REASON_CHARACTERS)] | None
    correction: Annotated[str, StringConstraints(max_length=MAX_CORRECTION_CHARACTERS)] | None
    question: Annotated[str, StringConstraints(max_length=MAX_QUERY_CHARACTERS)] | None = None
    texts_removed: bool
    created_at: Time
    updated_at: Time
    documents: _Documents


class ScoreLine(Record):
    """A score of a submission."""

    part: Literal["score"] = "score"
    id: Uuid
    metric: Word
    day: date
    strategy: _Label
    configuration: _Label
    value: Annotated[float, Field(allow_inf_nan=False)]
    computed: bool


class EvaluationLine(RootModel[Annotated[DatasetLine | CaseLine | FeedbackLine | ScoreLine, Field(discriminator="part")]]):
    """A line of the archive's evaluation."""


AnyLine = DatasetLine | CaseLine | FeedbackLine | ScoreLine


async def read_evaluation(
    catalogue: EvaluationTransferCatalogue, tenant: TenantId, documents: Collection[str]
) -> AsyncIterator[list[AnyLine]]:
    """Yield the lines of a tenant in pages.

    Args:
        documents: ids of the archive's documents. Cases that were made from other ones are left out, and texts that may quote
            other ones are removed: no deletion of a document would reach them.
    """
    for dataset in await catalogue.datasets(tenant):
        yield [DatasetLine.from_value(dataset)]
        after = 0
        while cases := await catalogue.cases(tenant, dataset.id, after=after, limit=_PAGE):
            yield [_record_case(case) for item in cases if (case := _restrict_case(item, documents)) is not None]
            after = cases[-1].number
    last_id = ""
    while items := await catalogue.feedback(tenant, after=last_id, limit=_PAGE):
        yield [FeedbackLine.from_value(_restrict_feedback(item, documents)) for item in items]
        last_id = items[-1].id
    last_score = ("", "")
    while scores := await catalogue.scores(tenant, after=last_score, limit=_PAGE):
        yield [ScoreLine.from_value(score) for score in scores]
        last_score = (scores[-1].id, scores[-1].metric)


def _restrict_case(archived: ArchivedCase, documents: Collection[str]) -> ArchivedCase | None:
    case = archived.case
    missing_ids = {document_id for document_id in case.documents if document_id not in documents}
    if not missing_ids:
        return archived
    if case.source is not CaseSource.UPLOAD:
        return None
    remaining = tuple(document_id for document_id in case.documents if document_id not in missing_ids)
    return replace(archived, case=replace(case, gold=without_quotes(case.gold, missing_ids), documents=remaining))


def _restrict_feedback(item: ArchivedFeedback, documents: Collection[str]) -> ArchivedFeedback:
    remaining = tuple(document_id for document_id in item.documents if document_id in documents)
    has_text = any(text is not None for text in (item.reason, item.correction, item.question))
    if len(remaining) < len(item.documents) and has_text:
        item = replace(item, reason=None, correction=None, question=None, texts_removed=True)
    return replace(item, documents=remaining)


def _record_case(archived: ArchivedCase) -> CaseLine:
    case = archived.case
    gold = tuple(GoldRecord.from_value(item) for item in case.gold)
    names = ("question", "expected_answer", "must_say", "answerable", "kind", "tags", "filters", "source", "documents")
    return CaseLine.from_value(archived, **{name: getattr(case, name) for name in names}, gold=gold)


@dataclass(slots=True)
class EvaluationInspection:
    """Checks the lines of an archive in their order.

    Args:
        documents: ids of the archive's documents.
    """

    documents: Collection[str]
    _datasets: dict[str, int] = field(default_factory=dict)
    _case_ids: set[str] = field(default_factory=set)
    _last_number: dict[str, int] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MAX_EVALUATION_LINES, 0))

    def check_line(self, line: AnyLine) -> None:
        """Check a line, and that it fits the earlier ones.

        Raises:
            InvalidRequest: the message names the error.
            PayloadTooLarge: there are too many lines of a kind.
        """
        if isinstance(line, DatasetLine):
            self._add_one("datasets")
            if line.id in self._datasets:
                raise InvalidRequest(f"dataset {line.id} is twice in the archive")
            self._datasets[line.id] = line.version
        elif isinstance(line, CaseLine):
            self._add_one("cases")
            self._check_case(line)
        elif isinstance(line, FeedbackLine):
            self._add_one("feedback")
        else:
            self._add_one("scores")
        if isinstance(line, CaseLine | FeedbackLine) and not set(line.documents) <= set(self.documents):
            raise InvalidRequest(f"{line.part} {line.id} has texts of documents that are not in the archive")

    def _add_one(self, kind: str) -> None:
        self._counts[kind] += 1
        if self._counts[kind] > MAX_EVALUATION_LINES[kind]:
            raise PayloadTooLarge(f"the archive has more than {MAX_EVALUATION_LINES[kind]} {kind}, which is the limit")

    def _check_case(self, line: CaseLine) -> None:
        version = self._datasets.get(line.dataset_id, 0)
        if line.number <= self._last_number.get(line.dataset_id, 0) or line.id in self._case_ids:
            raise InvalidRequest(f"case {line.id}, or its number {line.number}, is twice in the archive")
        if not line.added_in <= version or not line.added_in < (line.removed_in or version + 1) <= version + 1:
            raise InvalidRequest(f"case {line.id} is not in a version of dataset {line.dataset_id}, which has {version}")
        self._last_number[line.dataset_id] = line.number
        self._case_ids.add(line.id)


@dataclass(frozen=True, slots=True)
class EvaluationMapping:
    """Maps lines of an archive to records of the target.

    Args:
        chunks: the target's chunk id by the archive's, if they differ.
        documents: ids of the target's documents.
    """

    identity: Identity
    chunks: Mapping[str, str]
    documents: Collection[str]

    def make_record(self, line: AnyLine) -> EvaluationRecord:
        """Return the record of a line, with ids of the target."""
        if isinstance(line, DatasetLine):
            return line.to_value(ArchivedDataset, id=self._id("dataset", line.id))
        if isinstance(line, CaseLine):
            gold = tuple(self._make_evidence(item) for item in line.gold)
            documents = tuple(map(self.identity.document_id, line.documents))
            return line.to_value(
                ArchivedCase,
                dataset_id=self._id("dataset", line.dataset_id),
                id=self._id("case", line.id),
                case=line.to_value(EvaluationCase, id="", gold=gold, documents=documents),
            )
        if isinstance(line, FeedbackLine):
            return line.to_value(
                ArchivedFeedback,
                rating=line.rating.value,
                result=self._chunk_id(line.result),
                chunk_id=self._chunk_id(line.chunk_id),
                documents=tuple(map(self.identity.document_id, line.documents)),
            )
        return line.to_value(ArchivedScore)

    def _id(self, kind: str, id: str) -> str:
        return id if self.identity.kept else stable_id(f"imported-{kind}", self.identity.target, id)

    def _chunk_id(self, id: str | None) -> str | None:
        return id if id is None else self.chunks.get(id, id)

    def _make_evidence(self, item: GoldRecord) -> GoldItem:
        """Return the evidence. ``document`` may also be a key, which stays."""
        mapped = None if item.document is None else self.identity.document_id(item.document)
        document = mapped if mapped in self.documents else item.document
        return item.to_value(GoldItem, chunk_id=self._chunk_id(item.chunk_id), document=document)
