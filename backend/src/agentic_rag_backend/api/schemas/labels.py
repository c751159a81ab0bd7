"""Labels of texts."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from agentic_rag_backend.api.schemas.base import View
from agentic_rag_backend.application.labelling import LabelRequest
from agentic_rag_backend.labelling.labeller import Labelling, Method
from agentic_rag_backend.labelling.votes import LabelledDocument

_SNIPPET_CHARACTERS = 300


class LabelBody(LabelRequest):
    """A text to label."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "My card has not arrived yet.", "labels": ["card_arrival", "lost_card"]}]}
    )


class VoteView(View):
    """The votes for a label."""

    label: str
    share: float = Field(description="share of all votes, 0 to 1; nearer documents have more weight")
    documents: int = Field(description="number of documents that have the label")


class ExampleView(View):
    """A labelled document that voted."""

    document_id: str
    chunk_id: str
    title: str
    labels: list[str]
    score: float = Field(description="the score of the search, 0 to 1")
    text: str = Field(description=f"the beginning of the chunk, at most {_SNIPPET_CHARACTERS} characters")

    @classmethod
    def of(cls, document: LabelledDocument) -> ExampleView:
        """Return the view of a document."""
        return cls(
            document_id=document.document_id,
            chunk_id=document.chunk_id,
            title=document.title,
            labels=list(document.labels),
            score=document.score,
            text=document.text[:_SNIPPET_CHARACTERS],
        )


class LabelView(View):
    """The label of a text."""

    label: str | None = Field(description="null: no labelled document was found, or the model says that no label fits")
    confidence: float = Field(description="estimated probability that the label is right, 0 to 1, by the votes alone")
    method: Method = Field(description="what decided: `votes` or `model`")
    strategy: str
    votes: list[VoteView] = Field(description="largest share first")
    examples: list[ExampleView] = Field(description="the documents that voted, the nearest first")

    @classmethod
    def of(cls, labelling: Labelling) -> LabelView:
        """Return the view of a label."""
        return cls(
            label=labelling.label,
            confidence=round(labelling.confidence, 4),
            method=labelling.method,
            strategy=labelling.strategy,
            votes=[VoteView(label=vote.label, share=round(vote.share, 4), documents=vote.documents) for vote in labelling.votes],
            examples=[ExampleView.of(document) for document in labelling.documents],
        )
