"""The prose of a summary without a model: an introduction, and a few sentences that stand by themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentic_rag_backend.communities.summaries.community_evidence import Fact, SummaryEvidence
from agentic_rag_backend.domain.graph import Label, Support
from agentic_rag_backend.language.independence import rate_independence, simplify_sentence, split_claims
from agentic_rag_backend.language.times.dates import find_years, first_date, in_order_of_time
from agentic_rag_backend.language.words import content_forms

MAX_SENTENCES = 4
_PROSE_CHARACTERS = 700
_MAX_ALIKE = 0.35
"""Cosine of two sentences' words, weighted by rarity, above which the second sentence is left out."""
_STANDS = 0.7
"""Least `rate_independence` of a sentence, unless there is none."""
_UNSEEN_WEIGHT = 6.0
"""Weight of a word that the sampled facts do not contain; about that of a word in one of 400."""
_LISTED = 3


@dataclass(frozen=True, slots=True)
class Prose:
    """Sentences with the passages that they rest on."""

    text: str
    sources: tuple[Support, ...]


def write_prose(facts: Sequence[Fact], term_weights: Mapping[str, float]) -> Prose:
    """Return up to four of the facts as sentences, without repetition, by date if they have dates, otherwise in their order."""
    chosen: list[Fact] = []
    vectors: list[dict[str, float]] = []
    room = _PROSE_CHARACTERS
    for fact in _select_standing_facts(facts):
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
    labels = names[:_LISTED] or phrases[:_LISTED]
    if len(documents) < 2 or not labels:
        return Prose("", ())
    dated = sorted(((year, number) for number, fact in enumerate(facts) for year in find_years(fact.statement)))
    matters = [label for label in phrases if label not in labels][:_LISTED]
    period = f" ({_format_period(dated[0][0], dated[-1][0])})" if dated else ""
    topics_text = f": {_join_names([label.text for label in matters])}" if matters else ""
    about = _join_names([label.text for label in labels])
    sources = [label.sources[0] for label in (*labels, *matters) if label.sources]
    sources += [facts[number].sources[0] for _, number in (dated[:1] + dated[-1:]) if facts[number].sources]
    return Prose(
        f"The {len(documents)} documents of this theme{period} speak mostly of {about}{topics_text}.",
        tuple(dict.fromkeys(sources)),
    )


def _select_standing_facts(facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts that stand by themselves; if there are none, those that stand best."""
    stands = [rate_independence(fact.statement) for fact in facts]
    least = min(_STANDS, max(stands, default=0.0))
    return [fact for fact, value in zip(facts, stands, strict=True) if value >= least]


def _format_period(begin: int, end: int) -> str:
    return str(begin) if begin == end else f"{begin} to {end}"


def _join_names(parts: Sequence[str]) -> str:
    *other_parts, last_part = parts
    return f"{', '.join(other_parts)} and {last_part}" if other_parts else last_part


def _make_sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "…", '"', "”", "。")) else f"{text}."


def _cosine_of(weights: Mapping[str, float], other_weights: Mapping[str, float]) -> float:
    shared = sum(value * other_weights[form] for form, value in weights.items() if form in other_weights)
    length = math.sqrt(sum(value * value for value in weights.values()) * sum(value * value for value in other_weights.values()))
    return shared / length if length else 0.0
