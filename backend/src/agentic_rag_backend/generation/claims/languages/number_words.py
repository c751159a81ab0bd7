"""Number words up to a thousand in English, German and French."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def _words(text: str) -> list[str]:
    return text.split()


_ENGLISH_TENS = _words("twenty thirty forty fifty sixty seventy eighty ninety")
_GERMAN_UNITS = _words("ein zwei drei vier fünf sechs sieben acht neun")
_GERMAN_TEENS = _words("zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn")
_GERMAN_TENS = _words("zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig")
_FRENCH_UNITS = _words("un deux trois quatre cinq six sept huit neuf")
_FRENCH_TEENS = _words("dix onze douze treize quatorze quinze seize dix-sept dix-huit dix-neuf")
_FRENCH_TENS = _words("vingt trente quarante cinquante soixante")


def english_numbers() -> Mapping[str, str]:
    """Return the digits of "two" to "ninety-nine", and of "hundred"."""
    units = _words("one two three four five six seven eight nine")
    teens = _words("ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
    found = _counted([*units[1:], *teens], 2)
    for tens, word in enumerate(_ENGLISH_TENS, 2):
        found |= {word: str(10 * tens), **{f"{word}-{unit}": str(10 * tens + one) for one, unit in enumerate(units, 1)}}
    return found | {"hundred": "100", "half": "0.5"}


def german_numbers() -> Mapping[str, str]:
    """Return the digits of "zwei" to "neunhundertneunundneunzig", and of whole thousands up to "zwanzigtausend"."""
    below = {**_counted(_GERMAN_UNITS, 1), **_counted(_GERMAN_TEENS, 10)}
    for tens, word in enumerate(_GERMAN_TENS, 2):
        below |= {word: str(10 * tens)}
        below |= {f"{unit}und{word}": str(10 * tens + one) for one, unit in enumerate(_GERMAN_UNITS, 1)}
    found = dict(below)
    for number, unit in enumerate(("", *_GERMAN_UNITS)):
        hundred = 100 * max(1, number)
        found |= {f"{unit}hundert": str(hundred), f"{unit}hunderteins": str(hundred + 1)}
        found |= {f"{unit}hundert{word}": str(hundred + int(value)) for word, value in below.items() if word != "ein"}
    found |= {f"{word}tausend": f"{value}000" for word, value in below.items() if int(value) <= 20}
    del found["ein"]
    return found


def french_numbers() -> Mapping[str, str]:
    """Return the digits of "deux" to "quatre-vingt-dix-neuf", and of "cent"."""
    found = {**_counted(_FRENCH_UNITS[1:], 2), **_counted(_FRENCH_TEENS, 10)}
    for tens, word in enumerate(_FRENCH_TENS, 2):
        found |= {word: str(10 * tens), **{f"{word}-{unit}": str(10 * tens + one) for one, unit in enumerate(_FRENCH_UNITS, 1)}}
    for base, word in ((60, "soixante"), (80, "quatre-vingt")):
        found |= {f"{word}-{unit}": str(base + one) for one, unit in enumerate((*_FRENCH_UNITS, *_FRENCH_TEENS), 1)}
    return found | {"quatre-vingts": "80", "cent": "100", "cents": "100"}


def _counted(words: Sequence[str], first: int) -> dict[str, str]:
    return {word: str(number) for number, word in enumerate(words, first)}
