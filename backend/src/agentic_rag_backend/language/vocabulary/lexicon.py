"""Words of a language that checks of answers compare: function words, denials, hedges, numbers and dates.

Each language is a file of `lexica`, so that a translator can add one. A list that a file leaves out is empty, and the checks
that need it do nothing in this language. Words stand in the files as people write them; here they are `Language.form_of` forms.
"""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from agentic_rag_backend.language.languages import ENGLISH
from agentic_rag_backend.language.languages import STOP_WORDS as FUNCTION_WORDS
from agentic_rag_backend.language.words import STOP_WORDS, comparable

_SHORTEST_STEM = 3
_EMPTY: frozenset[str] = frozenset()
_LIST = "frozenset[str]"
"""Type of the fields that are lists of words."""


@dataclass(frozen=True, eq=False)
class Language:
    """The words of one language, by its ISO 639-1 code.

    ``capital_nouns``: nouns have a capital, so that a capital shows no name. ``unspaced``: there are no spaces between words.
    ``verbs_last``: denials and hedges stand after the words that they apply to.
    ``takes_back``: words shortly after a denial that take it back ("not … until"), and ``limits`` directly after it ("not only").
    ``particles`` stand beside names in a script without capitals, ``transliteration`` has the characters of foreign names.
    ``marks`` are months, weekdays, directions and ordinals by their words: "october" is "month:10".
    """

    code: str
    capital_nouns: bool = False
    unspaced: bool = False
    verbs_last: bool = False
    endings: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    function_words: frozenset[str] = _EMPTY
    common_forms: Mapping[str, str] = field(default_factory=dict)
    irregular_forms: frozenset[str] = _EMPTY
    stop_words: frozenset[str] = _EMPTY
    negations: frozenset[str] = _EMPTY
    denying_verbs: frozenset[str] = _EMPTY
    deniers: frozenset[str] = _EMPTY
    takes_back: frozenset[str] = _EMPTY
    limits: frozenset[str] = _EMPTY
    hedges: frozenset[str] = _EMPTY
    hedges_before_to: frozenset[str] = _EMPTY
    hedges_before_that: frozenset[str] = _EMPTY
    statements: frozenset[str] = _EMPTY
    bare_statements: frozenset[str] = _EMPTY
    doubts: frozenset[str] = _EMPTY
    conditions: frozenset[str] = _EMPTY
    pronouns: frozenset[str] = _EMPTY
    articles: frozenset[str] = _EMPTY
    conjunctions: frozenset[str] = _EMPTY
    noun_phrases: frozenset[str] = _EMPTY
    links: frozenset[str] = _EMPTY
    symmetric: frozenset[str] = _EMPTY
    particles: frozenset[str] = _EMPTY
    transliteration: frozenset[str] = _EMPTY
    question_words: frozenset[str] = _EMPTY
    translated_titles: frozenset[str] = _EMPTY
    ambiguous: frozenset[str] = _EMPTY
    logic: Mapping[str, int] = field(default_factory=dict)
    opposites: Mapping[str, frozenset[str]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, str] = field(default_factory=dict)
    scales: Mapping[str, int] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)

    def form_of(self, word: str) -> str:
        """Return the form under which a word is compared: "led" becomes "lead", "gegründet" becomes "grundet"."""
        if self.code == ENGLISH:
            form = comparable(word)
            return self.common_forms.get(form, form)
        plain = plain_form(word)
        return plain if plain in self.function_words else _strip_affixes(plain, self.endings, self.prefixes)

    def forms_of(self, words: str) -> frozenset[str]:
        """Return the forms of words separated by spaces."""
        return frozenset(map(self.form_of, words.split()))


@lru_cache(maxsize=65536)
def plain_form(word: str) -> str:
    """Return a word in lower case and without accents: "Häuser" is "hauser"."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(letter))


@lru_cache(maxsize=65536)
def _strip_affixes(word: str, endings: tuple[str, ...], prefixes: tuple[str, ...]) -> str:
    """Return a plain word without its prefix and its endings. Deliberately crude: both sides of a comparison are alike."""
    form = word
    for prefix in prefixes:
        if form.startswith(prefix) and len(form) > len(prefix) + _SHORTEST_STEM + 1:
            form = form.removeprefix(prefix)
    stem = ""
    while stem != form:
        stem = form
        ending = next((ending for ending in endings if form.endswith(ending) and len(form) - len(ending) >= _SHORTEST_STEM), "")
        form = form.removesuffix(ending)
    return form


@cache
def language_of_code(code: str | None) -> Language:
    """Return a language by its ISO 639-1 code. A language without a file has no words here."""
    short = (code or ENGLISH).split("-")[0]
    path = files("agentic_rag_backend.language") / "lexica" / f"{short}.toml"
    if not path.is_file():
        return Language(short, stop_words=FUNCTION_WORDS.get(short, _EMPTY))
    return _parse_language(short, tomllib.loads(path.read_text(encoding="utf-8")))


def _parse_language(code: str, values: Mapping[str, Any]) -> Language:
    common, irregular = _group_forms(values.get("irregular", ""), values.get("synonyms", ""))
    lists = {item.name: values[item.name] for item in fields(Language) if item.type == _LIST and item.name in values}
    stops = STOP_WORDS if code == ENGLISH else FUNCTION_WORDS.get(code, _EMPTY) | frozenset(lists.get("stop_words", "").split())
    language = Language(
        code,
        capital_nouns=values.get("capital_nouns", False),
        unspaced=values.get("unspaced", False),
        verbs_last=values.get("verbs_last", False),
        endings=tuple(sorted(map(plain_form, values.get("endings", "").split()), key=len, reverse=True)),
        prefixes=tuple(values.get("prefixes", "").split()),
        function_words=frozenset(plain_form(word) for words in (*lists.values(), *stops) for word in words.split()),
        common_forms=common,
        irregular_forms=irregular,
        marks={plain_form(word): mark for mark, group in values.get("marks", {}).items() for word in group.split()},
    )
    values_of_fields: dict[str, Any] = {name: language.forms_of(words) for name, words in lists.items()}
    plain = comparable if code == ENGLISH else plain_form
    values_of_fields["stop_words"] = stops
    values_of_fields["transliteration"] = frozenset(values.get("transliteration", "").strip())
    values_of_fields["numbers"] = {plain(word): number for word, number in values.get("numbers", {}).items()}
    values_of_fields["scales"] = {language.form_of(word): scale for word, scale in values.get("scales", {}).items()}
    values_of_fields["units"] = {
        **{form: form for form in language.forms_of(values.get("units", ""))},
        **values.get("same_units", {}),
        **{form: str(scale) for form, scale in values_of_fields["scales"].items()},
    }
    groups = enumerate(_split_groups(values, "logic"))
    values_of_fields["logic"] = {form: number for number, group in groups for form in language.forms_of(group)}
    values_of_fields["opposites"] = _pair_opposites(language, _split_groups(values, "opposites"))
    return replace(language, **values_of_fields)


def _split_groups(values: Mapping[str, Any], name: str) -> list[str]:
    return [group for group in values.get(name, "").split(";") if group.strip()]


def _group_forms(irregular: str, synonyms: str) -> tuple[dict[str, str], frozenset[str]]:
    """Return the form of the first word of each group by its other words, and the irregular forms."""

    def read_groups(text: str) -> dict[str, str]:
        groups = [[comparable(word) for word in group.split()] for group in text.split(";") if group.strip()]
        return {form: group[0] for group in groups for form in group[1:]}

    base = read_groups(irregular)
    common = base | {form: base.get(representative, representative) for form, representative in read_groups(synonyms).items()}
    return common | {
        form: common[representative] for form, representative in base.items() if representative in common
    }, frozenset(base)


def _pair_opposites(language: Language, pairs: list[str]) -> dict[str, frozenset[str]]:
    opposites: dict[str, set[str]] = {}
    for pair in pairs:
        word, opposite = map(language.form_of, pair.split())
        opposites.setdefault(word, set()).add(opposite)
        opposites.setdefault(opposite, set()).add(word)
    return {form: frozenset(forms) for form, forms in opposites.items()}
