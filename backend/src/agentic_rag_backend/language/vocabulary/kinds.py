"""Nouns that state what a person or a thing is ("painter", "trawler"), in fields of which one bearer of a name has one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agentic_rag_backend.language.words import comparable


@dataclass(frozen=True, slots=True)
class Field:
    """A field of kinds. ``sort`` is a person, a vessel, a work … ``open`` fields go with every other field of their sort."""

    sort: str
    name: str
    open: bool = False


_FIELDS = {
    "person/art": "painter sculptor artist illustrator engraver printmaker watercolourist draughtsman cartoonist potter",
    "person/performance": "singer musician composer pianist violinist cellist organist guitarist drummer conductor soprano tenor "
    "actor actress dancer choreographer comedian director filmmaker producer screenwriter rapper songwriter",
    "person/letters": "poet novelist playwright dramatist",
    "person/science": "chemist physicist biologist botanist zoologist geologist astronomer mathematician oceanographer "
    "meteorologist entomologist naturalist scientist statistician engineer inventor physiologist biochemist neuroscientist",
    "person/medicine": "surgeon nurse midwife dentist veterinarian",
    "person/sport": "footballer goalkeeper cricketer swimmer runner sprinter boxer wrestler cyclist golfer rower jockey athlete "
    "gymnast skier skater midfielder striker quarterback pitcher racer",
    "person/craft": "carpenter blacksmith baker butcher weaver cobbler shoemaker mason plumber tailor miller glazier saddler "
    "goldsmith clockmaker watchmaker boatbuilder shipwright cooper tanner brewer",
    "person/sea": "fisherman whaler pirate lighthouse-keeper pilot skipper",
    "person/faith": "bishop archbishop priest monk nun abbot vicar missionary rabbi imam cardinal",
    "person/crime": "murderer thief burglar robber swindler smuggler outlaw",
    "person*/letters": "writer author editor journalist critic essayist biographer",
    "person*/public": "politician minister senator mayor governor councillor ambassador diplomat activist philanthropist "
    "explorer architect photographer king queen prince princess",
    "person*/law": "lawyer judge barrister solicitor",
    "person*/arms": "soldier officer general colonel captain admiral sailor",
    "person*/science": "researcher historian economist philosopher psychologist physician",
    "person*/trade": "merchant businessman businesswoman banker entrepreneur farmer accountant",
    "person*/role": "teacher professor lecturer doctor chair chairman chairwoman president secretary",
    "vessel/frigate": "frigate",
    "vessel/destroyer": "destroyer",
    "vessel/battleship": "battleship",
    "vessel/submarine": "submarine",
    "vessel/trawler": "trawler drifter",
    "vessel/ferry": "ferry",
    "vessel/tanker": "tanker",
    "vessel/yacht": "yacht",
    "vessel/liner": "liner",
    "vessel/tug": "tug tugboat",
    "vessel/whaler": "whaleship",
    "vessel/sail": "schooner brig barque galleon clipper",
    "vessel*/ship": "ship boat vessel steamer steamship warship cruiser coaster freighter",
    "water/river": "river stream tributary",
    "water/lake": "lake reservoir loch",
    "land/mountain": "mountain volcano peak",
    "land*/place": "city town village municipality suburb county parish hamlet settlement island port district region country",
    "institution/bank": "bank insurer",
    "institution/brewery": "brewery distillery winery",
    "institution/bakery": "bakery restaurant",
    "institution/yard": "shipyard boatyard",
    "institution/hospital": "hospital clinic",
    "institution/school": "school college university academy",
    "institution/hotel": "hotel inn pub",
    "institution/church": "church chapel cathedral monastery",
    "institution/museum": "museum gallery",
    "institution/newspaper": "newspaper magazine",
    "institution/mill": "mill factory",
    "institution/theatre": "theatre cinema",
    "institution/bridge": "bridge",
    "institution/lighthouse": "lighthouse",
    "institution*/company": "company firm organisation organization charity business society club association",
    "work/film": "film movie documentary",
    "work/book": "novel book memoir",
    "work/album": "album",
    "work/song": "song single",
    "work/opera": "opera musical ballet",
    "work/painting": "painting portrait sculpture",
    "work/poem": "poem",
}
"""Words by sort and field. ``*`` marks an open field: a politician may be a painter, too."""
_SCHOLARSHIP = {
    "chemistry": "chemist", "physics": "physicist", "biology": "biologist", "botany": "botanist", "zoology": "zoologist",
    "geology": "geologist", "astronomy": "astronomer", "mathematics": "mathematician", "oceanography": "oceanographer",
    "science": "scientist", "engineering": "engineer", "painting": "painter", "sculpture": "sculptor", "art": "artist",
    "music": "musician", "poetry": "poet", "swimming": "swimmer", "football": "footballer", "cricket": "cricketer",
    "rowing": "rower", "surgery": "surgeon", "nursing": "nurse", "literature": "novelist", "acting": "actor",
}  # fmt: skip
"""What somebody does by the name of the discipline: a "professor of chemistry" is a chemist, who wins a "chemistry prize"."""
_DEEDS = {
    "directed": "director", "painted": "painter", "composed": "composer", "sung": "singer", "discovered": "scientist",
    "sculpted": "sculptor", "invented": "inventor", "filmed": "filmmaker", "choreographed": "choreographer",
}  # fmt: skip


def _make_table() -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for name, nouns in _FIELDS.items():
        sort, _, field = name.partition("/")
        for noun in nouns.split():
            fields.setdefault(comparable(noun), Field(sort.rstrip("*"), field, sort.endswith("*")))
    return fields


FIELDS = _make_table()
"""The field of each noun, by its form."""
DISCIPLINES = {comparable(name): person for name, person in _SCHOLARSHIP.items()}
"""The noun for somebody of a discipline, by its form."""
DEEDS = {comparable(verb): person for verb, person in _DEEDS.items()}
"""The noun for somebody by whom something was done, by the form of the participle."""


ROLES = frozenset(kind for kind, field in FIELDS.items() if field.name == "role")
"""Nouns that go with any profession: a professor may be a lawyer."""


def fields_of(kinds: Iterable[str]) -> frozenset[Field]:
    """Return the fields of nouns, given by their forms."""
    return frozenset(FIELDS[kind] for kind in kinds)


def kinds_differ(kinds: Iterable[str], other_kinds: Iterable[str], *, strictly: bool = True) -> bool:
    """Return whether no kind of one goes with a kind of the other: a painter is no chemist. False if either has none.

    Args:
        strictly: kinds of an open field ("politician") go with all of their sort. Otherwise only with their own field.
    """
    firsts, seconds = fields_of(kinds), fields_of(other_kinds)
    return bool(firsts and seconds) and not any(_go_together(a, b, strictly) for a in firsts for b in seconds)


def _go_together(field: Field, other_field: Field, strictly: bool) -> bool:
    return field.sort == other_field.sort and (field.name == other_field.name or (strictly and (field.open or other_field.open)))
