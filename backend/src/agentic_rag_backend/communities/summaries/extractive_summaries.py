"""Write a community's summary without a model: an entity and a phrase name it, its most informative sentences describe it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentic_rag_backend.communities.summaries.community_evidence import SummaryEvidence
from agentic_rag_backend.communities.summaries.keywords import select_keywords
from agentic_rag_backend.communities.summaries.names import central_names
from agentic_rag_backend.communities.summaries.prose import write_introduction, write_prose
from agentic_rag_backend.domain.graph import CommunitySummary, Finding, Label, Support
from agentic_rag_backend.language.words import words

EXTRACTIVE_MODEL = "extractive"
EXTRACTIVE_VERSION = "extractive@6"

MAX_FINDINGS = 8
_LISTED = 5


def extractive_summary(evidence: SummaryEvidence, term_weights: Mapping[str, float]) -> CommunitySummary:
    """Return a summary made of verbatim sentences; the same evidence gives the same summary.

    The first sentence of the prose states what the theme is, unless the theme rests on one document.

    Args:
        evidence: entities and facts, best first.
        term_weights: inverse frequency of words, for the keywords.
    """
    names = central_names(evidence.entities)
    keyword_labels = select_keywords(evidence, names, term_weights)
    known_names = {label.text for label in names} | {entity.name for entity in evidence.entities}
    phrases = [label for label in keyword_labels if label.text not in known_names]
    lead, body = write_introduction(evidence, names, phrases), write_prose(evidence.facts, term_weights)
    title = _make_title(evidence, names, phrases)
    resting = [*lead.sources, *body.sources]
    if title is not None:
        resting += [label.sources[0] for label in (*names[:1], *phrases) if label.sources and label.text in title.text]
    return CommunitySummary(
        fingerprint=evidence.fingerprint,
        names=names,
        title=title,
        summary=" ".join(filter(None, (lead.text, body.text))) or _list_names(evidence),
        keywords=keyword_labels,
        findings=tuple(Finding(fact.statement, fact.sources) for fact in evidence.facts[:MAX_FINDINGS]),
        rating=rate_passages(evidence.passages),
        model=EXTRACTIVE_MODEL,
        prompt_version=EXTRACTIVE_VERSION,
        sources=tuple(dict.fromkeys(resting)) or _list_passages(evidence),
    )


def _make_title(evidence: SummaryEvidence, names: Sequence[Label], phrases: Sequence[Label]) -> Label | None:
    """Return "Name: phrase", different from the titles of the children; None without a name or a phrase.

    The label has no passages of its own, so it is shown and withheld with the prose, which rests on the passages of both.
    """
    if not names:
        return None
    child_titles = {child.name for child in evidence.children}
    name_forms = {word.form for label in names[:1] for word in words(label.text)}
    fresh = [label for label in phrases if not name_forms & {word.form for word in words(label.text)}]
    titles = (f"{name.text}: {label.text}" for name in names for label in fresh if label.sources and name.sources)
    return next((Label(title) for title in titles if title not in child_titles), None)


def rate_passages(passages: int) -> float:
    """Return how well documented a community is, in [0, 10): 1.7 for 10 passages, 5 for 50, 9.1 for 500."""
    return round(10 * passages / (passages + 50), 1)


def _list_names(evidence: SummaryEvidence) -> str:
    names = [" ".join(entity.name.split()) for entity in evidence.entities[:_LISTED]]
    remaining = evidence.entity_count - len(names)
    return f"{', '.join(names)}{f' and {remaining} more' if remaining > 0 else ''}."


def _list_passages(evidence: SummaryEvidence) -> tuple[Support, ...]:
    return tuple(dict.fromkeys(support for entity in evidence.entities[:_LISTED] for support in entity.passages[:1]))
