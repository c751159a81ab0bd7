"""Contradictions between a claim and the words quoted for it (names, numbers, opposites), in the order of their checks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from agentic_rag_backend.answering.claims.assertion import asserts_more
from agentic_rag_backend.answering.claims.base import Reason
from agentic_rag_backend.answering.claims.comparison.frames import changes_frame, exchanges_sides, replaces_name, swaps_sides
from agentic_rag_backend.answering.claims.comparison.polarity import denies_otherwise, find_denials, hides_hedge
from agentic_rag_backend.answering.claims.tokens import Token, content_of, mentions_in, read_tokens
from agentic_rag_backend.language.entries.base import Entry
from agentic_rag_backend.language.languages import ENGLISH
from agentic_rag_backend.language.vocabulary.lexicon import Language, plain_form


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Words around quotes that can resolve "he" and "the institute": of the titles, and of the sentences before the quotes."""

    titles: frozenset[str]
    before: frozenset[str]


def changes_name(
    claim: Sequence[Token],
    quotes: Sequence[Sequence[Token]],
    around: Surroundings,
    names: frozenset[str],
    language: Language,
) -> bool:
    """Return whether the claim has a name that is not in the quotes.

    A title's name is always known. A name of an earlier sentence counts if a word of the quotes refers back and the claim
    no longer contains it: "He founded it" may be "Mira Voss founded it". A longer form of a name counts, too.
    """
    quoted = frozenset(token.form for quote in quotes for token in quote)
    backward = sum(_count_references(quote, language) for quote in quotes) - _count_references(claim, language)
    for mention in mentions_in(claim, names):
        if mention.number or mention.forms <= quoted | around.titles:
            continue
        if not mention.forms <= quoted | around.titles | around.before:
            return True
        if mention.forms & quoted:
            continue
        backward -= 1
        if backward < 0:
            return True
    return False


def joins_names(claim: Sequence[Token], texts: Sequence[Sequence[Token]], names: frozenset[str]) -> bool:
    """Return whether the claim makes one name of two: "Mira Brandt" of "Mira Voss" and "Anna Brandt", "Oslo of Mayor"."""
    pairs: set[tuple[str, str]] = set()
    for text in texts:
        for mention in mentions_in(text, names):
            forms = [token.form for token in text[mention.first : mention.last + 1] if token.content]
            pairs.update((form, later_form) for index, form in enumerate(forms) for later_form in forms[index + 1 :])
    for mention in mentions_in(claim, names):
        forms = [token.form for token in claim[mention.first : mention.last + 1] if token.content]
        if any(pair not in pairs and set(pair) <= names for pair in pairwise(forms)):
            return True
    return False


def _count_references(tokens: Sequence[Token], language: Language) -> int:
    """Return the number of words that refer back: pronouns, and "the" before a common noun."""
    count = 0
    for index, token in enumerate(tokens):
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        definite = token.form in language.articles and token.first and following is not None and following.raw[0].islower()
        count += token.form in language.pronouns or definite
    return count


def states_opposite(
    claim: Sequence[Token], quotes: Sequence[Sequence[Token]], names: Collection[str], language: Language
) -> bool:
    """Return whether the claim has the opposite of a word of the quotes, in place of that word.

    Denials are left to `denies_otherwise`: "did not accept" may be "rejected". Words that a true rewording may exchange ("A sold
    it to B", "B bought it from A") are no opposites in the lexicon.
    """
    if find_denials(claim, language) or any(find_denials(quote, language) for quote in quotes):
        return False
    claimed, quoted = content_of(claim), frozenset[str]().union(*map(content_of, quotes))
    return any(form not in names and language.opposites.get(form, frozenset()) & (quoted - claimed) for form in claimed - quoted)


_PERCENT = "percent"


def changes_quantity(
    claim: Sequence[Token], quotes: Iterable[Sequence[Token]], exempt: frozenset[str], language: Language
) -> bool:
    """Return whether a number of the claim is not in the quotes, or has another unit there.

    Args:
        exempt: numbers that need not be in the quotes, such as those of a title.
    """
    quoted: dict[str, set[str]] = {}
    for quote in quotes:
        for index, token in enumerate(quote):
            if token.number:
                quoted.setdefault(token.form, set()).add(unit_of(quote, index, language))
    for index, token in enumerate(claim):
        units = quoted.get(token.form)
        if (
            token.number
            and (units is not None or token.form not in exempt)
            and unit_of(claim, index, language) not in (units or ())
        ):
            return True
    return False


def unit_of(tokens: Sequence[Token], index: int, language: Language) -> str:
    """Return the unit after a number: "km", "percent", or the value of "million". Empty if there is none."""
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    if following is None:
        return ""
    if "%" in following.gap[:2]:
        return _PERCENT
    if following.form == "per" and tokens[index + 2 : index + 3] and tokens[index + 2].form == "cent":
        return _PERCENT
    return language.units.get(following.form, "") if following.gap.strip() in ("", "-") else ""


def misplaces_number(claim: Sequence[Token], rows: Sequence[Entry]) -> bool:
    """Return whether a claim has a number of ``rows`` and names another column or another row than the number's own."""
    forms = content_of(claim)
    columns = {label: _forms_of(label) for row in rows for label in (*row.blank, *(value.label for value in row.values))}
    claimed = {label for label, column_forms in columns.items() if column_forms and column_forms <= forms}
    about = [row for row in rows if _forms_of(row.subject) and _forms_of(row.subject) <= forms]
    labels = frozenset().union(*(columns[label] for label in claimed), *(_forms_of(row.subject) for row in about))
    for token in claim:
        if not token.number or token.form in labels:
            continue
        places = [(row, value.label) for row in rows for value in row.values if token.form in _forms_of(value.text)]
        if places and claimed and not any(label in claimed for _, label in places):
            return True
        if places and about and not any(row in about for row, _ in places):
            return True
    return False


@lru_cache(maxsize=4096)
def _forms_of(text: str) -> frozenset[str]:
    return content_of(read_tokens(text))


_QUOTED = re.compile('["“”„«「『]([^"“”„«»「」『』]{3,600})(?:["“”»」』]|\\Z)')
"""A quotation. One that the claim does not close ends with the claim."""
_NOT_LETTERS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The words that a claim must agree with, in ``language``: ``quotes``, and ``texts`` of the passages and titles.

    ``names`` are all names, ``known`` the ones of the passages. ``originals`` are the texts as they are written.
    """

    language: Language
    quotes: Sequence[Sequence[Token]]
    texts: Sequence[Sequence[Token]]
    originals: Sequence[str]
    around: Surroundings
    names: frozenset[str]
    known: frozenset[str]


def find_conflict(claim: str, tokens: Sequence[Token], evidence: Evidence) -> Reason | None:
    """Return the reason why a claim contradicts its evidence. None if it contradicts nothing; it may still be unsupported."""
    quotes, language = evidence.quotes, evidence.language
    if misquotes(claim, evidence.originals):
        return "quote"
    if changes_quantity(tokens, quotes, evidence.around.titles, language):
        return "number"
    if (
        changes_name(tokens, quotes, evidence.around, evidence.names, language)
        or joins_names(tokens, evidence.texts, evidence.known)
        or (language.unspaced and replaces_name(tokens, quotes, language))
    ):
        return "name"
    if denies_otherwise(tokens, quotes, language) or states_opposite(tokens, quotes, evidence.names, language):
        return "negated"
    if hides_hedge(tokens, quotes, language):
        return "modality"
    qualified = asserts_more(tokens, quotes, language)
    if qualified is not None:
        return qualified
    exchanges = exchanges_sides(tokens, quotes, language) if language.unspaced else False
    if exchanges or (language.code == ENGLISH and swaps_sides(tokens, quotes, evidence.names, language)):
        return "roles"
    quoted = frozenset(token.form for quote in quotes for token in quote)
    return changes_frame(tokens, quotes, evidence.names, evidence.around.titles - quoted, language)


def misquotes(claim: str, texts: Sequence[str]) -> bool:
    """Return whether the claim has words in quotation marks that no text contains. A single word is a title or a nickname."""
    quotations = [match[1] for match in _QUOTED.finditer(claim) if len(match[1].split()) > 1 or not match[1].isascii()]
    if not quotations:
        return False
    plain = [_NOT_LETTERS.sub("", plain_form(text)) for text in texts]
    return any(not any(_NOT_LETTERS.sub("", plain_form(quotation)) in text for text in plain) for quotation in quotations)
