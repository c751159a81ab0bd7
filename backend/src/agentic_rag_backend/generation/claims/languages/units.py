"""Currencies and measures in the words of several languages.

Only units of one kind are compared: a sentence about dollars contradicts a quote about euros, not one without a currency.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORDS: dict[str, dict[str, str]] = {
    "currency": {
        "euro": "euros? eur €",
        "dollar": "dollars? dólar(?:es)? usd dollaro \\$",
        "pound": "pounds? pfund gbp £",
        "franc": "francs? franken chf",
        "yen": "yens? jpy",
        "yuan": "yuan renminbi cny rmb",
        "rupee": "rupees? rupien roupies?",
        "rouble": "roubles? rubles? rubel",
        "krone": "kronen? kronor krone",
    },
    "length": {
        "metre": "met(?:re|er)s? metern? mètres? metros?",
        "kilometre": "kilomet(?:re|er)s? kilometern? kilomètres? kilómetros? km",
        "centimetre": "centimet(?:re|er)s? zentimetern? centimètres? cm",
        "millimetre": "millimet(?:re|er)s? millimetern? millimètres? mm",
        "mile": "miles? meilen? milles",
    },
    "weight": {
        "tonne": "tonnes? tons? tonnen? toneladas?",
        "kilogram": "kilos? kilogram(?:me)?s? kilogramm kg",
        "gram": "gram(?:me)?s? gramm",
    },
}
_UNSPACED: dict[str, dict[str, str]] = {
    "currency": {
        "euro": "欧元 歐元 ユーロ",
        "dollar": "美元 美金 ドル",
        "pound": "英镑 英鎊 ポンド",
        "franc": "法郎 フラン",
        "yen": "日元 日圆 円",
        "rupee": "卢比 ルピー",
        "rouble": "卢布 ルーブル",
        "yuan": "人民币 人民元 元",
    },
    "length": {
        "kilometre": "公里 千米 キロメートル",
        "centimetre": "厘米 センチ",
        "millimetre": "毫米 ミリ",
        "metre": "米 メートル",
    },
    "weight": {"kilogram": "公斤 千克 キログラム", "tonne": "吨 噸 トン", "gram": "克 グラム"},
}
_NUMBER = r"(?<=[\d〇零一二两兩三四五六七八九十百千万萬亿億半])\s*"
"""Before a unit in scripts without spaces: these characters are part of many words."""


def _spelled(words: str) -> str:
    return "|".join(word if word in ("€", "\\$", "£") else rf"(?<![^\W\d_])(?:{word})(?!\w)" for word in words.split())


_SPACED = re.compile(
    "|".join(f"(?P<{kind}_{unit}>{_spelled(words)})" for kind, units in _WORDS.items() for unit, words in units.items()),
    re.IGNORECASE,
)
_CHARACTERS = re.compile(
    _NUMBER
    + "(?:"
    + "|".join(
        f"(?P<{kind}_{unit}>{'|'.join(words.split())})" for kind, units in _UNSPACED.items() for unit, words in units.items()
    )
    + ")"
)


def units_in(text: str) -> frozenset[str]:
    """Return the currencies and measures of a text: "currency_euro"."""
    patterns = (_SPACED,) if text.isascii() else (_SPACED, _CHARACTERS)
    return frozenset(found.lastgroup for each in patterns for found in each.finditer(text) if found.lastgroup)


def changes_unit(claim: str, quotes: Iterable[str]) -> bool:
    """Return whether a claim has a unit that its quotes lack, although they have another one of the kind."""
    wanted = units_in(claim)
    if not wanted:
        return False
    held = frozenset[str]().union(*map(units_in, quotes))
    kinds = {unit.split("_")[0] for unit in held}
    return any(unit.split("_")[0] in kinds for unit in wanted - held)
