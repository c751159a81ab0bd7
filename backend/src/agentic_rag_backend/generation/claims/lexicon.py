"""Irregular verbs and a few synonyms: words that claim checks treat as one."""

from __future__ import annotations

from agentic_rag_backend.language.words import comparable

_IRREGULAR = """
arise arose arisen; awake awoke; beat beaten; become became; begin began begun; bind bound; blow blew blown; break broke broken;
bring brought; build built; burn burnt; buy bought; catch caught; choose chose chosen; come came; cost costs; deal dealt; dig dug;
draw drew drawn; drive drove driven; eat ate eaten; fall fell fallen; feel felt; fight fought; flee fled; fly flew flown;
forget forgot forgotten; freeze froze frozen; get got gotten; give gave given; go went gone; grow grew grown; hang hung;
hear heard; hide hid hidden; hold held; keep kept; know knew known; lead led; learn learnt; leave left; lend lent; lose lost;
make made; mean meant; meet met; overcome overcame; overthrow overthrew overthrown; pay paid; ride rode ridden; rise rose risen;
run ran; say said; see saw seen; seek sought; sell sold; send sent; shake shook shaken; shoot shot; show shown; shrink shrank;
sing sang sung; sink sank sunk; sit sat; sleep slept; speak spoke spoken; spend spent; split splits; stand stood; steal stole
stolen; strike struck; swear swore sworn; sweep swept; swim swam; take took taken; teach taught; tear tore torn; tell told;
think thought; throw threw thrown; undergo underwent undergone; understand understood; undertake undertook undertaken; wear wore
worn; win won; withdraw withdrew withdrawn; write wrote written; child children; man men; woman women; person people; foot feet
"""
_SYNONYMS = """
founded established; started began; purchased bought; constructed built; situated located; movie film; authored wrote;
firm company; municipality town; nation country; region area; named called; approximately about
"""


def _groups(text: str) -> dict[str, str]:
    """Return the form of the first word of each group by the forms of its other words."""
    groups = [[comparable(word) for word in group.split()] for group in text.split(";")]
    return {form: group[0] for group in groups for form in group[1:]}


_BASE = _groups(_IRREGULAR)
_FORMS = _BASE | {form: _BASE.get(first, first) for form, first in _groups(_SYNONYMS).items()}
_FORMS |= {form: _FORMS[first] for form, first in _BASE.items() if first in _FORMS}


def common_form(form: str) -> str:
    """Return the form under which a normalised word is compared: "led" becomes "lead"."""
    return _FORMS.get(form, form)


def is_irregular(word: str) -> bool:
    """Return whether a word is an irregular past form or plural."""
    return comparable(word) in _BASE
