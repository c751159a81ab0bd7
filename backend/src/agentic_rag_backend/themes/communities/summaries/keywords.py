"""Names and keywords of a community: central names that suit a title, and noun phrases that contrast it with the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from keyword import iskeyword

from agentic_rag_backend.domain.graph import Label, Support, normalise_name
from agentic_rag_backend.knowledge.extraction.lexicon import IMPERSONAL, REGIONS
from agentic_rag_backend.knowledge.extraction.names.aliases import is_acronym_of
from agentic_rag_backend.knowledge.extraction.names.extension import is_adjectival
from agentic_rag_backend.knowledge.extraction.types.entity_types import GROUP, PERSON
from agentic_rag_backend.language.noun_phrases import noun_phrases
from agentic_rag_backend.language.vocabulary.word_classes import ADVERBS, VERBS
from agentic_rag_backend.language.words import comparable, content_forms, words
from agentic_rag_backend.themes.communities.summaries.community_evidence import CentralEntity, SummaryEvidence

MAX_PASSAGES = 8
"""Passages kept for one label, so that it survives the deletion of seven documents. Readers usually need only the first."""


def spread(supports: Iterable[Support], *, most: int = MAX_PASSAGES) -> tuple[Support, ...]:
    """Return up to ``most`` passages, the first of each document before the second of any."""
    distinct = list(dict.fromkeys(supports))
    first_of_document = {support.document_id: support for support in reversed(distinct)}
    leading = [support for support in distinct if first_of_document[support.document_id] is support]
    return tuple(dict.fromkeys([*leading, *distinct]))[:most]


_LONGEST_NAME = 5
_UNTYPED = 0.7
"""Factor on the share of an entity of no known kind."""
_MIN_SHARE = 0.5
"""Share of the most central entity's weight that another entity needs to join it in the name."""


def central_names(
    entities: Sequence[CentralEntity], statements: Sequence[str] = (), *, only_good: bool = False
) -> tuple[Label, ...]:
    """Return the one to three most central names.

    Entities of no known kind are used only if nothing better exists, and so is a word that only begins sentences; titles of
    documents, file names and code only if those are missing too. Of several names of one thing, such as "EU", the first stays.

    Args:
        statements: sentences that show which words are names.
        only_good: return nothing rather than a worse name, and do not compare shares.
    """
    chosen: list[Label] = []
    good = [entity for entity in entities if names_well(entity) and _is_written_as_name(entity.name, statements)]
    pools = ([entity for entity in entities if suits(entity)] for suits in (names_well, reads_well))
    entities = good if good or only_good else next(filter(None, pools), entities)
    entities = [entity for entity in entities if not _is_broad(entity)] or entities
    # Names of an unknown kind are often no names.
    entities = sorted(entities, key=lambda entity: -entity.share * (_UNTYPED if entity.type == "other" else 1.0))
    for entity in entities:
        if len(chosen) == 3 or (not only_good and len(chosen) > 1 and entity.share < _MIN_SHARE * entities[0].share):
            break
        label = name_label(_find_full_name(entity, entities))
        if not any(_is_same_name(label.text, chosen_label.text) for chosen_label in chosen):
            chosen.append(label)
    return tuple(chosen)


def _is_broad(entity: CentralEntity) -> bool:
    """Return whether a name is that of a people or a country, or an adjective: "Swedish" and "U.S." distinguish few themes."""
    name = normalise_name(entity.name)
    region = name in REGIONS or name.replace(" ", "") in REGIONS
    return entity.type == GROUP or region or (" " not in entity.name and is_adjectival(entity.name))


def _is_same_name(name: str, other_name: str) -> bool:
    """Return whether two names have the same words, one has all words of the other, or one is the acronym of the other."""
    forms, other_forms = ({word.form for word in words(text)} for text in (name, other_name))
    if forms <= other_forms or other_forms <= forms:
        return True
    return is_acronym_of(name, other_name.split()) or is_acronym_of(other_name, name.split())


def _find_full_name(entity: CentralEntity, entities: Sequence[CentralEntity]) -> CentralEntity:
    """Return the person whose name has one more word, such as the surname; else the entity itself."""
    if " " in entity.name or entity.type != PERSON:
        return entity
    name = entity.name.casefold()
    fuller = (candidate for candidate in entities if candidate.type == entity.type and name in candidate.name.casefold().split())
    return max(fuller, key=lambda candidate: len(candidate.name.split()) == 2, default=entity)


def _is_written_as_name(name: str, statements: Sequence[str]) -> bool:
    """Return whether a name has several words, or stands after a word in small letters: "from Carrowby", but not "Fix …"."""
    if " " in name or not statements:
        return True
    for statement in statements:
        start = statement.find(f" {name}")
        before = statement[max(0, start - 1) : max(0, start)]
        if before.islower() or before == ",":
            return True
    return False


def name_label(entity: CentralEntity) -> Label:
    """Return an entity's name as it is shown, with its passages. A file's name is read as words."""
    name = " ".join(entity.name.split())
    if name.isupper() and " " in name:
        name = name.title()
    if "-" in name and " " not in name and name == name.casefold() and entity.type != "code":
        # The check whether a passage contains the name reads a file's name as words too.
        name = name.replace("-", " ").strip()
        name = name[:1].upper() + name[1:]
    return Label(name, entity.passages)


def names_well(entity: CentralEntity) -> bool:
    """Return whether a name suits a theme: it reads well, and it is of a known kind."""
    known = entity.type != "other" and entity.name.casefold() not in IMPERSONAL
    return reads_well(entity) and (known or len(entity.name.split()) > 1)


def reads_well(entity: CentralEntity) -> bool:
    """Return whether a name is short, capitalised and of letters: no date, no code, no file, no sentence's beginning."""
    words = entity.name.split()
    spelled = entity.name.replace(" ", "").replace("'", "").replace("’", "").replace("-", "").replace(".", "").replace("&", "")
    return (
        len(words) <= _LONGEST_NAME
        and spelled.isalpha()
        and entity.name[:1].isupper()
        and " - " not in entity.name
        and not iskeyword(entity.name)
        and (entity.type not in ("date", "code") or len(words) > 1)
        and bool(content_forms(entity.name))
        and bool(content_forms(words[-1]))
        and not (len(words) == 1 and (comparable(words[0]) in VERBS | ADVERBS))
    )


MAX_KEYWORDS = 8
MAX_PHRASES = 5
_LONGER = 0.35
"""Gain of a phrase for each word after the first, as a share of its value."""
_LEADING_FACTS = 6
"""The facts that make the prose. Their phrases are preferred, so that keywords and prose agree."""
_IN_LEADING_FACTS = 1.3
_IN_ONE_PASSAGE = 0.5
"""Factor on the count of a phrase of one passage, if the theme has more than two documents."""
_ELSEWHERE = 0.5
"""Factor on the count of a phrase that no fact contains."""
_LEAST_DOCUMENTS = 2
"""Documents with a phrase that no fact contains."""
_MOST = 10
"""A phrase in more passages counts no more: it may be a formula that the documents repeat."""
_DAMPING = 0.7
_RARITY_POWER = 1.3
_UNKNOWN_SHARE = 0.7
"""Rarity of a word that the sampled facts do not contain, relative to the rarest word of them."""


_phrases_of = lru_cache(maxsize=16_384)(noun_phrases)
"""A community and those above it have the same facts, so their phrases are read once."""


@dataclass(slots=True)
class _Found:
    """The occurrences of a phrase: its passages, the best fact that contains it, and its spellings with their passages."""

    passages: set[Support] = field(default_factory=set)
    fact: int | None = None
    spellings: defaultdict[str, list[Support]] = field(default_factory=lambda: defaultdict(list))


def select_keywords(evidence: SummaryEvidence, names: Sequence[Label], term_weights: Mapping[str, float]) -> tuple[Label, ...]:
    """Return up to eight: noun phrases by falling contrast, and central names that are not in ``names``.

    Args:
        term_weights: ln(1 + n / frequency) of words in the tenant's facts. A word that is missing counts as the rarest.
    """
    known_forms = {word.form for label in names for word in words(label.text)}
    further: list[Label] = []
    for entity in filter(names_well, evidence.entities):
        forms = {word.form for word in words(entity.name)}
        if len(further) < MAX_KEYWORDS - MAX_PHRASES and not forms <= known_forms:
            further.append(name_label(entity))
            known_forms |= forms
    phrases = select_topics(evidence, known_forms, term_weights)
    return (*phrases[:MAX_PHRASES], *further)


def select_topics(evidence: SummaryEvidence, known_forms: Iterable[str], term_weights: Mapping[str, float]) -> tuple[Label, ...]:
    """Return the noun phrases that contrast most with the tenant's other facts, best first: tf · idf, both damped.

    The frequency is the mean of the passages and the documents that contain the phrase, the rarity that of its rarest word.
    A phrase that repeats a word of a better one is left out.

    Args:
        known_forms: forms of words that are shown already.
    """
    occurrences = _count_occurrences(evidence)
    known_set = frozenset(known_forms)
    documents = len({source.document_id for occurrence in occurrences.values() for source in occurrence.passages})
    rarest = max(term_weights.values(), default=1.0)
    value = {
        forms: _measure_contrast(
            occurrence, documents, len(forms), max(term_weights.get(form, _UNKNOWN_SHARE * rarest) for form in forms)
        )
        for forms, occurrence in occurrences.items()
    }
    chosen: list[Label] = []
    used_forms: set[str] = set()
    for forms in sorted(value, key=lambda forms: (-value[forms], forms)):
        if value[forms] <= 0 or len(chosen) == MAX_KEYWORDS:
            break
        if not used_forms.isdisjoint(forms) or known_set.issuperset(forms):
            continue
        spellings = occurrences[forms].spellings
        text = min(spellings, key=lambda text: (-len(spellings[text]), text))
        chosen.append(Label(text, spread(spellings[text])))
        used_forms.update(forms)
    return tuple(chosen)


def _count_occurrences(evidence: SummaryEvidence) -> dict[tuple[str, ...], _Found]:
    occurrences: defaultdict[tuple[str, ...], _Found] = defaultdict(_Found)
    # The passages contain the further facts too.
    further = () if evidence.texts else evidence.further
    for number, fact in enumerate((*evidence.facts, *further)):
        for phrase in _phrases_of(fact.statement):
            occurrence = occurrences[phrase.forms]
            occurrence.fact = number if occurrence.fact is None else occurrence.fact
            occurrence.passages.update(fact.sources)
            occurrence.spellings[" ".join(fact.statement[phrase.start : phrase.end].split())].extend(fact.sources)
    for text in evidence.texts:
        for forms, spelling in text.spellings.items():
            occurrences[forms].passages.add(text.source)
            occurrences[forms].spellings[spelling].append(text.source)
    for forms in [forms for forms in occurrences if len(forms) > 1]:
        # "clinic boat" is an occurrence of "boat" as well.
        for part in (forms[-1:], forms[-2:]):
            if part != forms and part in occurrences:
                occurrences[part].passages |= occurrences[forms].passages
    return occurrences


def _measure_contrast(occurrence: _Found, theme_documents: int, length: int, rarity: float) -> float:
    documents = len({source.document_id for source in occurrence.passages})
    count = min(_MOST, (len(occurrence.passages) + documents) / 2)
    if len(occurrence.passages) == 1 and theme_documents > _LEAST_DOCUMENTS:
        count *= _IN_ONE_PASSAGE
    if occurrence.fact is None:
        if documents < _LEAST_DOCUMENTS:
            return 0.0
        count *= _ELSEWHERE
    elif occurrence.fact < _LEADING_FACTS:
        count *= _IN_LEADING_FACTS
    longer = 1 + _LONGER * (length - 1)
    return float(count**_DAMPING * rarity**_RARITY_POWER * longer)
