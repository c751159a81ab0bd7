"""Write a community's summary without a model: title, introduction, keywords, findings and a few sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentic_rag_backend.domain.graph import CommunitySummary, Finding, Label, Support, join_names
from agentic_rag_backend.language.independence import rate_independence, reads_as_prose, simplify_sentence, split_claims
from agentic_rag_backend.language.times import find_years, first_date, in_order_of_time
from agentic_rag_backend.language.words import content_forms, words
from agentic_rag_backend.themes.communities.summaries.community_evidence import Fact, SummaryEvidence, merge_facts
from agentic_rag_backend.themes.communities.summaries.keywords import (
    MAX_PASSAGES,
    central_names,
    name_label,
    reads_well,
    select_keywords,
)
from agentic_rag_backend.themes.communities.summaries.theme_documents import list_openings, name_documents, shorten_title

MAX_SENTENCES = 2
_PROSE_CHARACTERS = 700
_MAX_ALIKE = 0.35
"""Cosine of two sentences' words, weighted by rarity, above which the second sentence is left out."""
_STANDS = 0.7
"""Least `rate_independence` of a sentence, unless there is none."""
_UNSEEN_WEIGHT = 6.0
"""Weight of a word that the sampled facts do not contain; about that of a word in one of 400."""
_INTRODUCED = 3
_TITLE_NAMES = 2
_FEW = 2
_LEAST_DOCUMENTS = 2
_REACH = 0.15
"""Documents that contain the phrase of a name, if the theme has more than `_FEW`: at least so many, and this share of them."""


@dataclass(frozen=True, slots=True)
class Prose:
    """Sentences with the passages that they rest on."""

    text: str
    sources: tuple[Support, ...]


def write_prose(facts: Sequence[Fact], term_weights: Mapping[str, float], openings: Sequence[Fact] = ()) -> Prose:
    """Return up to two sentences, without repetition, by date if they have dates, otherwise in their order.

    Args:
        facts: sentences of which those that stand by themselves are used.
        openings: sentences that are preferred.
    """
    chosen: list[Fact] = []
    vectors: list[dict[str, float]] = []
    room = _PROSE_CHARACTERS
    for fact in (*openings, *_select_standing_facts(facts, anything=not openings)):
        vector = {form: term_weights.get(form, _UNSEEN_WEIGHT) for form in sorted(content_forms(fact.statement))}
        if len(chosen) == MAX_SENTENCES or (chosen and len(fact.statement) > room):
            break
        if all(_cosine_of(vector, chosen_vector) <= _MAX_ALIKE for chosen_vector in vectors):
            chosen.append(fact)
            vectors.append(vector)
            room -= len(fact.statement)
    ordered = in_order_of_time(chosen, lambda fact: first_date(fact.statement))
    return Prose(
        " ".join(_make_sentence(claim) for fact in ordered for claim in split_claims(simplify_sentence(fact.statement))),
        tuple(dict.fromkeys(source for fact in ordered for source in fact.sources)),
    )


def write_introduction(evidence: SummaryEvidence, names: Sequence[Label], phrases: Sequence[Label]) -> Prose:
    """Return the sentence that introduces the theme: its documents, their years, its names and its keywords.

    Every word of it is counted or copied. Its sources contain the names, keywords and years. Empty for less than two documents.
    """
    facts = (*evidence.facts, *evidence.further)
    documents = {source.document_id for fact in facts for source in fact.sources}
    labels = names[:_INTRODUCED] or phrases[:_INTRODUCED]
    if len(documents) < 2 or not labels or (_is_titled(evidence) and len(labels) == 1):
        return Prose("", ())
    dated = sorted(((year, number) for number, fact in enumerate(facts) for year in find_years(fact.statement)))
    # Titles of documents name the theme, so no phrase has to.
    matters = [] if _is_titled(evidence) else [label for label in phrases if label not in labels][:_INTRODUCED]
    period = f" ({_format_period(dated[0][0], dated[-1][0])})" if dated else ""
    topics_text = f": {join_names([label.text for label in matters])}" if matters else ""
    about = join_names([label.text for label in labels])
    sources = [label.sources[0] for label in (*labels, *matters) if label.sources]
    sources += [facts[number].sources[0] for _, number in (dated[:1] + dated[-1:]) if facts[number].sources]
    return Prose(
        _make_sentence(f"The {len(documents)} documents of this theme{period} speak mostly of {about}{topics_text}"),
        tuple(dict.fromkeys(sources)),
    )


def _select_standing_facts(facts: Sequence[Fact], *, anything: bool) -> list[Fact]:
    """Return the facts that stand by themselves; if there are none, and ``anything`` may be said, those that stand best.

    Code, rows and settings say nothing.
    """
    prose = [fact for fact in facts if reads_as_prose(simplify_sentence(fact.statement))]
    stands = [rate_independence(fact.statement) for fact in prose]
    least = min(_STANDS, max(stands, default=0.0)) if anything else _STANDS
    return [fact for fact, value in zip(prose, stands, strict=True) if value >= least]


def _is_titled(evidence: SummaryEvidence) -> bool:
    """Return whether titles of documents name the theme."""
    return any(shorten_title(document.title) for document in evidence.about_documents)


def _format_period(begin: int, end: int) -> str:
    return str(begin) if begin == end else f"{begin} to {end}"


def _make_sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "…", '"', "”", "。")) else f"{text}."


def _cosine_of(weights: Mapping[str, float], other_weights: Mapping[str, float]) -> float:
    shared = sum(value * other_weights[form] for form, value in weights.items() if form in other_weights)
    length = math.sqrt(sum(value * value for value in weights.values()) * sum(value * value for value in other_weights.values()))
    return shared / length if length else 0.0


EXTRACTIVE_MODEL = "extractive"
EXTRACTIVE_VERSION = "extractive@8"

MAX_FINDINGS = 8
_LISTED = 5


def extractive_summary(evidence: SummaryEvidence, term_weights: Mapping[str, float]) -> CommunitySummary:
    """Return a summary made of verbatim sentences; the same evidence gives the same summary.

    The first sentence of the prose states what the theme is, unless the theme rests on one document.

    Args:
        evidence: entities and facts, best first.
        term_weights: inverse frequency of words, for the keywords.
    """
    names, title = _choose_names(evidence)
    keyword_labels = select_keywords(evidence, names, term_weights)
    known_names = {label.text for label in names} | {entity.name for entity in evidence.entities}
    phrases = [label for label in keyword_labels if label.text not in known_names]
    openings = list_openings(evidence.about_documents)[:MAX_SENTENCES]
    findings = merge_facts([*openings, *evidence.facts])[:MAX_FINDINGS]
    lead, body = write_introduction(evidence, names, phrases), write_prose(evidence.facts, term_weights, openings)
    repeated = len(names) == 1 and names[0].text in {child.name for child in evidence.children}
    if title is None and (repeated or not _is_titled(evidence)):
        title = _make_title(evidence, names, phrases)
    resting = [*lead.sources, *body.sources]
    if title is not None:
        labels = (*names, *phrases, *map(name_label, evidence.entities))
        resting += [label.sources[0] for label in labels if label.sources and label.text in title.text]
    return CommunitySummary(
        fingerprint=evidence.fingerprint,
        names=names,
        title=title,
        summary=" ".join(filter(None, (lead.text, body.text))) or _list_names(evidence),
        keywords=keyword_labels,
        findings=tuple(Finding(fact.statement, fact.sources) for fact in findings),
        rating=rate_passages(evidence.passages),
        model=EXTRACTIVE_MODEL,
        prompt_version=EXTRACTIVE_VERSION,
        sources=tuple(dict.fromkeys(resting)) or _list_passages(evidence),
    )


def _choose_names(evidence: SummaryEvidence) -> tuple[tuple[Label, ...], Label | None]:
    """Return the names and, if they already make one, the title: of the documents that the theme is about, or of entities."""
    child_names = {child.name for child in evidence.children}
    statements = [fact.statement for fact in (*evidence.facts, *evidence.further)]
    labels, title = name_documents(evidence.about_documents, child_names)
    if not labels:
        readable = any(map(reads_well, evidence.entities))
        return (() if readable else name_documents(evidence.documents)[0]) or central_names(evidence.entities, statements), None
    if len(labels) == 1 and labels[0].text in child_names:
        further_entities = [entity for entity in evidence.entities if not _share_words(entity.name, labels[0].text)]
        further = central_names(further_entities, statements, only_good=True)
        titles = (f"{labels[0].text}: {', '.join(label.text for label in further[:most])}" for most in range(2, len(further) + 1))
        title = next((Label(title) for title in titles if title not in child_names), None)
    return labels, title


def _share_words(name: str, other_name: str) -> bool:
    return not {word.form for word in words(name)}.isdisjoint(word.form for word in words(other_name))


def _make_title(evidence: SummaryEvidence, names: Sequence[Label], phrases: Sequence[Label]) -> Label | None:
    """Return "Name and name: phrase", different from the titles of the children; None without a name or a phrase.

    The label has no passages of its own, so it is shown and withheld with the prose, which rests on the passages of both.
    """
    if not names:
        return None
    child_names = {child.name for child in evidence.children}
    name_forms = {word.form for label in names[:_TITLE_NAMES] for word in words(label.text)}
    documents = len({source.document_id for fact in evidence.facts for source in fact.sources})
    least = min(MAX_PASSAGES, max(_LEAST_DOCUMENTS, _REACH * documents)) if documents > _FEW else 1
    fresh = [
        label
        for label in phrases
        if len({source.document_id for source in label.sources}) >= least
        and not name_forms & {word.form for word in words(label.text)}
    ]
    # Two words say more: "clinic boat" rather than "nurse".
    fresh.sort(key=lambda label: " " not in label.text)
    heads = [join_names([label.text for label in names[:count]]) for count in range(min(_TITLE_NAMES, len(names)), 0, -1)]
    titles = (f"{head}: {label.text}" for head in heads for label in fresh if names[0].sources)
    return next((Label(title) for title in titles if title not in child_names), None)


def rate_passages(passages: int) -> float:
    """Return how well documented a community is, in [0, 10): 1.7 for 10 passages, 5 for 50, 9.1 for 500."""
    return round(10 * passages / (passages + 50), 1)


def _list_names(evidence: SummaryEvidence) -> str:
    names = [" ".join(entity.name.split()) for entity in evidence.entities[:_LISTED]]
    remaining = evidence.entity_count - len(names)
    return f"{', '.join(names)}{f' and {remaining} more' if remaining > 0 else ''}."


def _list_passages(evidence: SummaryEvidence) -> tuple[Support, ...]:
    return tuple(dict.fromkeys(support for entity in evidence.entities[:_LISTED] for support in entity.passages[:1]))
