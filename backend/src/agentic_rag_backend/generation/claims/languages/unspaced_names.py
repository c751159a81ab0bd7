"""Names that changed in Chinese and Japanese, which have no capitals and no spaces around them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agentic_rag_backend.language.unspaced import UNSPACED_RUN

_DATE = re.compile(r"\d[\d年月日]*")
_CLAUSE_ENDS = re.compile(r"[,，、。；;：:！!？?\n]+")
_SURNAMES = frozenset(
    "王李张張刘劉陈陳杨楊赵趙吴吳周徐孙孫朱胡郭何林罗羅郑鄭梁谢謝宋唐许許韩韓冯馮邓鄧曹彭曾萧蕭田董袁潘蔡蒋余杜叶葉程魏苏蘇吕呂丁沈任姚卢盧傅钟鍾姜崔谭譚廖"
    "范汪陆陸贾賈韦韋夏邱侯邹鄒熊孟秦阎薛尹段雷黎龙陶贺顾毛郝龚邵钱錢严赖覃洪武莫孔"
)
"""Characters with which most Chinese names begin."""
_SYMMETRIC = frozenset(["和", "与", "與", "跟", "同", "及", "、", "或", "是", "为", "為", "即", "就是", "と", "や"])
"""Words between two names that may be exchanged."""
_LONGEST_CLAUSE = 80
MAX_COMPARED = 300
"""Different names of the quotes that a Japanese name is compared with."""
_FOLLOWING = 2
"""Characters after two names that must be the same to compare the names."""
_BEFORE_PARTICLE = re.compile("([\u4e00-\u9fff々ァ-ヶー]{3,8})(?=[はがをにでと])")
"""A Japanese name before a particle."""


def changes_unspaced_name(claim: str, quotes: Sequence[str]) -> bool:
    """Return whether a claim has another person at the beginning of a clause, or before a particle, than its quotes."""
    texts = [text for text in quotes if UNSPACED_RUN.search(text)]
    if not texts or not UNSPACED_RUN.search(claim):
        return False
    followings = frozenset(after for text in texts for clause in _clauses(text) for _, after in _persons(clause))
    return any(_changes_person(clause, followings, texts) for clause in _clauses(claim)) or _changes_run(claim, texts)


def exchanges_names(claim: str, quotes: Sequence[str]) -> bool:
    """Return whether a clause of the claim has the characters of a quote's clause with two parts exchanged."""
    if not UNSPACED_RUN.search(claim):
        return False
    held = [clause for text in quotes for clause in _clauses(text)]
    return any(_exchanged(clause, other) for clause in _clauses(claim) for other in held if len(clause) == len(other))


def _clauses(text: str) -> Iterator[str]:
    """Yield the clauses without spaces, and without a date at the beginning."""
    for clause in _CLAUSE_ENDS.split(text):
        plain = "".join(clause.split())
        date = _DATE.match(plain)
        rest = plain[date.end() :] if date else plain
        if rest:
            yield rest[:_LONGEST_CLAUSE]


def _changes_person(clause: str, followings: frozenset[str], texts: Sequence[str]) -> bool:
    """Return whether a clause begins with a person that the quotes lack, and goes on as one that begins with another person."""
    persons = list(_persons(clause))
    if any(name in text for name, _ in persons for text in texts):
        return False
    return any(following in followings for _, following in persons)


def _persons(clause: str) -> Iterator[tuple[str, str]]:
    """Yield the names of two and three characters with which a clause may begin, and the characters after each."""
    if clause[:1] in _SURNAMES:
        for length in (2, 3):
            following = clause[length : length + _FOLLOWING]
            if len(following) == _FOLLOWING:
                yield clause[:length], following


def _changes_run(claim: str, texts: Sequence[str]) -> bool:
    """Return whether half of the characters before a Japanese particle are changed: 山田一郎 for 田中一郎."""
    held = list(dict.fromkeys(found[1] for text in texts for found in _BEFORE_PARTICLE.finditer(text)))[:MAX_COMPARED]
    runs = (found[1] for found in _BEFORE_PARTICLE.finditer(claim))
    return any(_differs_in_part(run, other) for run in runs if not any(run in text for text in texts) for other in held)


def _differs_in_part(one: str, other: str) -> bool:
    same = sum(a == b for a, b in zip(one, other, strict=False))
    return len(one) == len(other) and 2 * same >= len(one)


def _exchanged(one: str, other: str) -> bool:
    """Return whether one text is ``x v y`` and the other ``y v x``, apart from a common beginning and end."""
    if one == other or sorted(one) != sorted(other):
        return False
    start = next(place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
    end = next(place for place, (a, b) in enumerate(zip(reversed(one), reversed(other), strict=True)) if a != b)
    first, second = one[start : len(one) - end], other[start : len(other) - end]
    for left in range(1, len(first)):
        if not second.endswith(first[:left]):
            continue
        for right in range(1, len(first) - left):
            middle = first[left : len(first) - right]
            if second.startswith(first[-right:]) and second[right : len(second) - left] == middle:
                return middle not in _SYMMETRIC
    return False
