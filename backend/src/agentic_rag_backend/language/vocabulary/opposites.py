"""Pairs of words with opposite meanings."""

from __future__ import annotations

from agentic_rag_backend.language.words import comparable

_PAIRS = """
increase decrease; before after; first last; north south; east west; northern southern; eastern western; north east; more less;
more fewer; most least; most fewest; largest smallest; larger smaller; highest lowest; higher lower; high low; large small;
big small; best worst; better worse; oldest youngest; older younger; old new; win lose; won lost; begin end; began ended;
start end; start stop; started finished; open close; opened closed; opened demolished; accept reject; accepted rejected;
accept decline; accepted declined; like dislike; support oppose; supported opposed; import export; always never; major minor;
majority minority; maximum minimum; strong weak; strongest weakest; allow prevent; allow forbid; legal illegal; male female;
men women; mother father; son daughter; sons daughters; brother sister; king queen; husband wife; early late; earliest latest;
long short; longest shortest; fast slow; fastest slowest; hot cold; inside outside; above below; upper lower; public private;
possible impossible; true false; agree disagree; agreed disagreed; easy difficult; easier harder; simple complex;
positive negative; rise fall; rose fell; gain lose; gained lost; attack defend; attacked defended; enter leave; entered left;
arrive leave; arrived left; include exclude; included excluded; add remove; added removed; create destroy; created destroyed;
build destroy; built destroyed; built demolished; buy sell; bought sold; love hate; friend enemy; victory defeat;
known unknown; common rare; common uncommon; natural artificial; internal external; rich poor; dry wet; right left; light dark;
light heavy; full empty; success failure; succeed fail; succeeded failed; ancient modern; domestic foreign; urban rural;
odd even; finite infinite; direct indirect; active passive; formal informal; founded abolished; founded dissolved;
founded cancelled; made cancelled; signed cancelled; granted refused; approved rejected; approved refused; hired dismissed;
appointed dismissed; joined left; lent borrowed; lend borrow; teach learn; taught learned; parent child; employer employee
"""


def _load_opposites() -> dict[str, frozenset[str]]:
    opposites: dict[str, set[str]] = {}
    for pair in _PAIRS.replace("\n", " ").split(";"):
        first_form, opposite_form = (comparable(word) for word in pair.split())
        opposites.setdefault(first_form, set()).add(opposite_form)
        opposites.setdefault(opposite_form, set()).add(first_form)
    return {form: frozenset(opposite_forms) for form, opposite_forms in opposites.items()}


OPPOSITES = _load_opposites()
"""The opposites of each form."""
