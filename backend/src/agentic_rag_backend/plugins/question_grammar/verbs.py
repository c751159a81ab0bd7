"""Forms of common English verbs. Questions are made only from verbs whose base form is known for sure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Verb(NamedTuple):
    """Forms of a verb: "write", "wrote", "written", "writes"."""

    base: str
    past: str
    participle: str
    present: str


# Verbs of speech and thought are left out: what somebody said is the rest of the sentence, which no question can name.
_REGULAR = """
accept achieve acquire add admit adopt advise agree aim allow announce appoint approve arrive award ban base borrow call cancel
carry cause celebrate chair change charge close collaborate collapse collect commission commit compete complete compose conclude
conduct construct contain continue contribute convert cover create cross date declare decline defeat deliver deny depart describe
design destroy develop die direct discover donate drop earn edit elect employ enable end enter escape establish estimate examine
exhibit expand explain explore express extend fail feature file fill finance finish force form found gain gather generate
graduate grant guide handle head help hire host identify improve include increase influence inherit inspect inspire install
introduce invade invent invest investigate invite issue join kill land last launch learn license list live locate manage
manufacture marry measure merge move name occur offer open operate oppose order organise organize own paint participate pass
perform pick place plan plant play predict premiere present preserve press prevent produce promise promote propose protect prove
provide publish purchase raise rank reach receive recommend record recover reduce refuse reject release remove rename renew
repair replace represent request require rescue research resign restore result retire return reveal review rule sail save seize
select serve settle share sign sponsor star start stop study submit succeed suffer supply support suspend test thank total tour
train transfer translate travel treat try turn use view visit vote vow watch weigh widen work
"""
_IRREGULAR = """
bear bore born; become became become; begin began begun; break broke broken; bring brought brought; build built built
buy bought bought; catch caught caught; choose chose chosen; come came come; cost cost cost; draw drew drawn; drive drove driven
fall fell fallen; fight fought fought; find found found; fly flew flown; forbid forbade forbidden; get got got; give gave given
go went gone; grow grew grown; hold held held; keep kept kept; lead led led; leave left left; lend lent lent; lose lost lost
make made made; meet met met; pay paid paid; ride rode ridden; rise rose risen; run ran run; sell sold sold; send sent sent
set set set; sing sang sung; sink sank sunk; speak spoke spoken; spend spent spent; stand stood stood; steal stole stolen
take took taken; teach taught taught; throw threw thrown; undertake undertook undertaken; wear wore worn; win won won
write wrote written
"""
_DOUBLED = frozenset({"admit", "ban", "commit", "drop", "plan", "stop", "transfer"})


def _past(base: str) -> str:
    if base.endswith("e"):
        return f"{base}d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return f"{base[:-1]}ied"
    return f"{base}{base[-1]}ed" if base in _DOUBLED else f"{base}ed"


def _form_present_tense(base: str) -> str:
    if base.endswith("y") and base[-2] not in "aeiou":
        return f"{base[:-1]}ies"
    return f"{base}es" if base.endswith(("s", "x", "ch", "sh", "o")) else f"{base}s"


def _verbs() -> Iterator[Verb]:
    for base in _REGULAR.split():
        yield Verb(base, _past(base), _past(base), _form_present_tense(base))
    for forms in _IRREGULAR.replace("\n", ";").strip(";").split(";"):
        base, past, participle = forms.split()
        yield Verb(base, past, participle, _form_present_tense(base))


BY_PAST = {verb.past: verb for verb in _verbs()}
"""Verbs by their past tense. "Found" is that of "find"."""
BY_PRESENT = {verb.present: verb for verb in _verbs()}
"""Verbs by the third person singular."""
BY_PARTICIPLE = {verb.participle: verb for verb in _verbs()}
"""Verbs by their past participle."""
