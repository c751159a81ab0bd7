"""Write a community's summary without a model: central entities name it, its most informative sentences describe it."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from agentic_rag_backend.communities.summaries.evidence import CentralEntity, Fact, SummaryEvidence
from agentic_rag_backend.communities.summaries.labels import spread
from agentic_rag_backend.domain.graph import CommunitySummary, Finding, Label, Support, normalise_name
from agentic_rag_backend.domain.text.words import words

EXTRACTIVE_MODEL = "extractive"
EXTRACTIVE_VERSION = "extractive@4"

MAX_KEYWORDS = 8
MAX_FINDINGS = 8
_SENTENCES = 4
_LONGEST_NAME = 5
_SHORTEST_KEYWORD = 4
_EMPHASIS = re.compile(r"(?<!\w)(\*\*|\*|__|_|`)(?=\S)(.{1,300}?)(?<=\S)\1(?!\w)")
_NO_KEYWORDS = frozenset(
    word.form
    for word in words(
        "another anything asked became become began brought called came come done every found gave give given gone good "
        "great having known later least less like long made make member might more much need never next often ought part "
        "people place said says seen several shown since small some something still take taken than that think thought "
        "told took used want well went year years month months week weeks time times first second third last under upon "
        "whole within without days hundred thousand million three four five seven eight nine ten twelve "
    )
)
"""Words that distinguish no theme, however often its sentences contain them."""
_PROSE_CHARACTERS = 700
_LISTED = 5
_MIN_SHARE = 0.5
"""Share of the most central entity's weight that another entity needs to join it in the name."""


def extractive_summary(evidence: SummaryEvidence, term_weights: Mapping[str, float]) -> CommunitySummary:
    """Return a summary made of verbatim sentences; the same evidence gives the same summary.

    Args:
        evidence: entities and facts, best first.
        term_weights: inverse frequency of words, for the keywords.
    """
    prose = _opening(evidence.facts)
    names = central_names(evidence.entities)
    return CommunitySummary(
        fingerprint=evidence.fingerprint,
        names=names,
        summary=" ".join(_sentence(fact.statement) for fact in prose) or _listing(evidence),
        keywords=keywords(evidence, names, term_weights),
        findings=tuple(Finding(fact.statement, fact.sources) for fact in evidence.facts[:MAX_FINDINGS]),
        rating=rating(evidence.passages),
        model=EXTRACTIVE_MODEL,
        prompt_version=EXTRACTIVE_VERSION,
        sources=tuple(dict.fromkeys(source for fact in prose for source in fact.sources)) or _listed(evidence),
    )


def central_names(entities: Sequence[CentralEntity]) -> tuple[Label, ...]:
    """Return the one to three most central names.

    Entities of no known kind are used only if nothing better exists; titles of documents, file names and code only if those are
    missing too.
    """
    chosen: list[Label] = []
    pools = ([entity for entity in entities if suits(entity)] for suits in (_names_well, _reads_well))
    entities = next(filter(None, pools), entities)
    for entity in entities:
        if len(chosen) == 3 or (len(chosen) > 1 and entity.share < _MIN_SHARE * entities[0].share):
            break
        own = set(normalise_name(entity.name).split())
        others = [set(normalise_name(label.text).split()) for label in chosen]
        if not any(own <= other or own >= other for other in others):
            chosen.append(_name(entity))
    return tuple(chosen)


def keywords(evidence: SummaryEvidence, names: Sequence[Label], term_weights: Mapping[str, float]) -> tuple[Label, ...]:
    """Return up to eight: central names not in ``names``, and the words that distinguish these facts from all others.

    A word rests on the passages of the sentences that contain its displayed spelling.
    """
    title = {word.form for label in names for word in words(label.text)}
    further: list[Label] = []
    for entity in [each for each in evidence.entities if _names_well(each)]:
        forms = {word.form for word in words(entity.name)}
        if len(further) < MAX_KEYWORDS // 2 and not forms <= title:
            further.append(_name(entity))
            title |= forms
    counts: Counter[str] = Counter()
    written: defaultdict[str, Counter[str]] = defaultdict(Counter)
    spelling: defaultdict[str, list[Support]] = defaultdict(list)
    for fact in evidence.facts:
        found = [word for word in words(fact.statement) if word.content and not word.name and _says_a_topic(word.form)]
        counts.update({word.form for word in found} - title)
        for word in found:
            text = fact.statement[word.start : word.end].casefold()
            written[word.form][text] += 1
            spelling[text] += fact.sources
    if any(count > 1 for count in counts.values()):
        counts = Counter({form: count for form, count in counts.items() if count > 1})
    rare = max(term_weights.values(), default=1.0)
    ranked = sorted(counts, key=lambda form: (-math.log1p(counts[form]) * term_weights.get(form, rare), form))
    found_in = {label.text: label.sources for label in further}
    for form in ranked:
        if len(found_in) >= MAX_KEYWORDS:
            break
        (text, _), *_ = sorted(written[form].items(), key=lambda each: (-each[1], each[0]))
        found_in.setdefault(text, spread(spelling[text]))
    return tuple(Label(text, sources) for text, sources in found_in.items())


def rating(passages: int) -> float:
    """Return how well documented a community is, in [0, 10): 1.7 for 10 passages, 5 for 50, 9.1 for 500."""
    return round(10 * passages / (passages + 50), 1)


def _name(entity: CentralEntity) -> Label:
    name = " ".join(entity.name.split())
    if "-" in name and " " not in name and name == name.casefold() and entity.type != "code":
        # a file's name is read as words; the check whether a passage contains it does the same
        name = name.replace("-", " ").strip()
        name = name[:1].upper() + name[1:]
    return Label(name, entity.passages)


def _names_well(entity: CentralEntity) -> bool:
    """Return whether a name suits a theme: `_reads_well`, and of a known kind."""
    return _reads_well(entity) and (entity.type != "other" or len(entity.name.split()) > 1)


def _reads_well(entity: CentralEntity) -> bool:
    """Return whether a name is short, capitalised and of letters: no date, no code and no file."""
    words = entity.name.split()
    spelled = entity.name.replace(" ", "").replace("'", "").replace("’", "").replace("-", "").replace(".", "").replace("&", "")
    return (
        len(words) <= _LONGEST_NAME
        and spelled.isalpha()
        and entity.name[:1].isupper()
        and (entity.type not in ("date", "code") or len(words) > 1)
    )


def _says_a_topic(form: str) -> bool:
    return len(form) >= _SHORTEST_KEYWORD and form not in _NO_KEYWORDS and not form.endswith("li")


def _opening(facts: Sequence[Fact]) -> list[Fact]:
    chosen: list[Fact] = []
    room = _PROSE_CHARACTERS
    for fact in facts:
        if len(chosen) == _SENTENCES or (chosen and len(fact.statement) > room):
            break
        chosen.append(fact)
        room -= len(fact.statement)
    return chosen


def _sentence(statement: str) -> str:
    text = _EMPHASIS.sub(r"\2", " ".join(statement.split())).lstrip("-*• ")
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "…", '"', "”", "。")) else f"{text}."


def _listing(evidence: SummaryEvidence) -> str:
    shown = [" ".join(entity.name.split()) for entity in evidence.entities[:_LISTED]]
    more = evidence.entity_count - len(shown)
    return f"{', '.join(shown)}{f' and {more} more' if more > 0 else ''}."


def _listed(evidence: SummaryEvidence) -> tuple[Support, ...]:
    return tuple(dict.fromkeys(support for entity in evidence.entities[:_LISTED] for support in entity.passages[:1]))
