"""Closed word classes of English that the rules read: function words, titles, head nouns, months, countries.

They are cues of grammar and of word formation, not lists of names: no person, company or town is in them.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files


def word_set(text: str) -> frozenset[str]:
    """Return the words of ``text``, which is separated by spaces: the form in which the classes are written down."""
    return frozenset(text.split())


_TEXTS: dict[str, str] = tomllib.loads((files(__package__) / "lexicon.toml").read_text(encoding="utf-8"))
_WORDS = {name: word_set(words) for name, words in _TEXTS.items()}

FUNCTION_WORDS = _WORDS["function_words"]
"""Words that are no name by themselves however they are spelled at the start of a sentence."""

COMMON_INITIALS = _WORDS["common_initials"]
"""Common nouns that often open a sentence. They are part of a name only if the document gives other evidence."""

MONTHS = _WORDS["months"]
WEEKDAYS = word_set("monday tuesday wednesday thursday friday saturday sunday")
SEASONS = word_set("spring summer autumn fall winter")

PERSON_TITLES = _WORDS["person_titles"]
STRIPPED_TITLES = _WORDS["stripped_titles"]
"""Titles that are left out of the name: "Dr. Keller" is the name "Keller"."""

FORMS_OF_ADDRESS = word_set("mr mrs ms miss mx dr prof professor sir madam rev reverend capt lt sgt cpl nurse")
"""Titles that no organisation, place or work opens with."""

ROLE_NOUNS = _WORDS["role_nouns"]

ORGANISATION_HEADS = _WORDS["organisation_heads"]
PLACE_HEADS = _WORDS["place_heads"]
PLACE_OPENERS = _WORDS["place_openers"]
EVENT_HEADS = _WORDS["event_heads"]
WORK_HEADS = _WORDS["work_heads"]
WORK_CUES = _WORDS["work_cues"]
THING_CUES = {
    "software": word_set(
        "software library package framework database compiler editor kernel plugin app application browser toolkit middleware "
        "daemon interpreter shell filesystem parser module tool"
    ),
    "standard": word_set("standard specification protocol format encoding norm"),
    "law": word_set("act bill treaty agreement accord convention constitution amendment directive regulation statute ordinance"),
    "product": word_set("product phone smartphone console laptop printer camera processor chip vehicle car aircraft handset"),
    "form": word_set("form questionnaire"),
}
"""Nouns that say what a named thing is, by type. They end its name, or stand around it: "the library X", "X is a format"."""
SUBJECT_NOUNS = {
    "person": frozenset[str](),
    "organisation": ORGANISATION_HEADS | word_set("company firm"),
    "place": PLACE_HEADS,
    "work": WORK_CUES | WORK_HEADS,
    "event": EVENT_HEADS,
    **THING_CUES,
}
"""Nouns that stand for the subject of a document, by its type: "The company was founded in Leeds"."""
COMPANY_SUFFIXES = _WORDS["company_suffixes"]
LEGAL_FORMS = word_set("inc incorporated ltd limited llc llp plc gmbh corp corporation oyj pty pte co")
"""Words at the end of a company's name that its own texts leave out, as normalised."""
UNDERTAKINGS = word_set("project operation programme program plan initiative mission task")
GENERATIONS = word_set("jr jr. sr sr. i ii iii iv vi vii viii ix xi xii xiii xiv xv xvi")
ROLE_WORDS = STRIPPED_TITLES | _WORDS["role_words"]
"""A name made of these words alone is a role, not a name."""

GENERIC_ALONE = (
    PLACE_HEADS | EVENT_HEADS | ORGANISATION_HEADS | WORK_CUES | WORK_HEADS | PERSON_TITLES | ROLE_NOUNS | MONTHS
) - _WORDS["generic_alone"]
"""Head nouns that name nothing by themselves, in any spelling: "the Board", "the University"."""

OF_HEADS_WITH_AND = _WORDS["of_heads_with_and"]
"""Heads after which "and" inside a name joins: "Ministry of Health and Welfare"."""

ORGANISATION_CUES = _WORDS["organisation_cues"]
"""Nouns before the name of an organisation: "the company X"."""

IMPERSONAL = (
    FUNCTION_WORDS | PLACE_HEADS | EVENT_HEADS | ORGANISATION_HEADS | WORK_HEADS | WORK_CUES | MONTHS | _WORDS["impersonal"]
)
"""Words that are not part of a person's name without other evidence."""

PLACE_PREPOSITIONS = _WORDS["place_prepositions"]
NAME_PARTICLES = _WORDS["name_particles"]
"""Lower-case words inside names of persons and places; the next word is capitalised."""

CONNECTORS = word_set("of for the in on to and or a an with & at under against from")

ABBREVIATIONS = _WORDS["abbreviations"]
"""Words whose full stop does not end a sentence."""

INNER_TITLES = _WORDS["inner_titles"]
"""Titles that open a new name wherever a capitalised name follows."""

RANK_OPENERS = word_set("supreme vice rear prime deputy chief brigadier major lieutenant assistant co-chief executive")

LABELS = _WORDS["labels"]
"""Labels of columns, fields, figures and letters: a name made of these words and numbers alone names nothing."""

GENERIC_HEADINGS = _WORDS["generic_headings"]
"""Headings made of these words alone name no entity."""


REGIONS = frozenset(" ".join(name.split()) for name in _TEXTS["regions"].split(","))
"""Normalised names (see `domain.graph.normalise_name`)."""

ADJECTIVES = _WORDS["adjectives"]
"""Adjectives of peoples and faiths that no ending gives away."""
