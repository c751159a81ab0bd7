"""Words of a sentence with the properties that claim checks compare, in any language."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.language.languages import ENGLISH
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.language.unspaced import UNSPACED_RUN
from agentic_rag_backend.language.vocabulary.lexicon import Language, language_of_code, plain_form
from agentic_rag_backend.language.words import words

MAY = "mai"
"""The form of the month: "may" is a verb."""
BRACKETED_NUMBER = re.compile(r"\[\s*(\d[\d\s,;–-]*)\]")
_PARENTHESISED_NUMBER = re.compile(r"\(\s*(\d[\d\s,;–-]*)\)")
_TRAILING_ZEROS = re.compile(r"(?<=\d)\.0+\Z")
_PIECE = re.compile(r"\d{1,3}(?:[.,'’ \u00a0\u202f]\d{3})+(?!\d)|\d+(?:[.,]\d+)?|[^\W\d_]+(?:-[^\W\d_]+)*")
_GROUPS = re.compile(r"\d{1,3}(?:[.,'’ \u00a0\u202f]\d{3})+")
_BREAKS = frozenset(",;:()–—.!?，。；：！？、（）")
_NUMERALS = re.compile("[〇零一二两兩三四五六七八九十百千万萬亿億]+")
_DIGITS = {"〇": 0, "零": 0, "一": 1, "二": 2, "两": 2, "兩": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9}
_POWERS = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_LONGEST_WORD = 4
"""Characters of the longest word of a lexicon in a script without spaces."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word, or a character of a script without spaces.

    ``form`` is normalised: number words are digits, and months and weekdays are marks ("month:10"), except in English. ``gap`` is
    the text before this word, back to the word before. ``capital`` marks an upper-case first letter of a word that may be a name,
    ``first`` the first word of a sentence, and ``content`` a word that carries meaning by itself.
    """

    start: int
    end: int
    raw: str
    form: str
    gap: str
    capital: bool
    first: bool
    content: bool

    @property
    def number(self) -> bool:
        """Whether it begins with a digit, or is a number word or a mark."""
        return self.form[:1].isdigit() or ":" in self.form

    @property
    def breaks(self) -> bool:
        """Whether punctuation separates it from the word before."""
        return not _BREAKS.isdisjoint(self.gap)

    @property
    def character(self) -> bool:
        """Whether it carries meaning in a script without spaces."""
        return self.content and not self.number and UNSPACED_RUN.match(self.form) is not None


def read_tokens(text: str, language: Language | None = None) -> tuple[Token, ...]:
    """Return the words of ``text``, in English by default, without bracketed references such as "[3]"."""
    language = language or language_of_code(ENGLISH)
    references = [match.span() for match in BRACKETED_NUMBER.finditer(text)]
    starts = [sentence.start for sentence in split_sentences(text)]
    tokens: list[Token] = []
    end = sentence = reference = 0
    first = False
    for word_start, word_end, form in _read_words(text, language):
        while reference < len(references) and references[reference][1] <= word_start:
            reference += 1
        if reference < len(references) and references[reference][0] <= word_start:
            continue
        while sentence < len(starts) and starts[sentence] <= word_start:
            sentence, first = sentence + 1, True
        raw = text[word_start:word_end]
        capital = raw[0].isupper()
        if language.code == ENGLISH:
            form = _english_form(form, raw, language, name=capital and not first)
        content = (form if language.code == ENGLISH else raw.lower()) not in language.stop_words
        tokens.append(Token(word_start, word_end, raw, form, text[end:word_start], capital, first, content))
        first, end = False, word_end
    return tuple(_mark_names(tokens, language)) if language.capital_nouns else tuple(tokens)


def _read_words(text: str, language: Language) -> Iterator[tuple[int, int, str]]:
    """Yield the place and form of each word. Characters of scripts without spaces are words, as are words of the lexicon."""
    if language.code == ENGLISH:
        yield from ((word.start, word.end, word.form) for word in words(text))
        return
    for match in _PIECE.finditer(text):
        if UNSPACED_RUN.match(match[0]):
            yield from _split_run(match.start(), match[0], language)
        else:
            yield match.start(), match.end(), _form_of(match[0], text[match.end() : match.end() + 1], language)


def _english_form(form: str, raw: str, language: Language, *, name: bool) -> str:
    if raw == "May" and name:
        return MAY
    # Names keep their form: "Ford" is not the past of a verb, nor is "Rose".
    form = form if name else language.common_forms.get(form, form)
    return language.numbers.get(form) or _TRAILING_ZEROS.sub("", form)


def _form_of(word: str, following: str, language: Language) -> str:
    """Return the form of a word or number: "4.200" is 4200, "1,2" is 1.2, "10月" a month, "Oktober" is "month:10"."""
    if not word[0].isdigit():
        plain = plain_form(word)
        return language.marks.get(plain) or language.numbers.get(plain) or language.form_of(word)
    number = re.sub(r"\D", "", word) if _GROUPS.fullmatch(word) else word.replace(",", ".")
    return f"month:{number}" if following == "月" and len(number) < 3 else _TRAILING_ZEROS.sub("", number)


def _split_run(start: int, run: str, language: Language) -> Iterator[tuple[int, int, str]]:
    lexicon = language.negations | language.hedges | language.limits | language.marks.keys()
    at = checked = 0  # the numerals before ``checked`` are no number
    while at < len(run):
        numerals = _NUMERALS.match(run, at) if at >= checked else None
        value = _value_of(numerals[0], run[at - 1 : at]) if numerals else None
        checked = numerals.end() if numerals else checked
        size = next((size for size in range(_LONGEST_WORD, 1, -1) if run[at : at + size] in lexicon), 1)
        size = len(numerals[0]) if numerals and value is not None else size
        word = run[at : at + size]
        yield start + at, start + at + size, language.marks.get(word, word) if value is None else str(value)
        at += size


def _value_of(numerals: str, before: str) -> int | None:
    """Return the value of Chinese numerals: "二十五" is 25, "二〇二三" 2023. None: "一" alone or "千万" is part of a word."""
    if not any(numeral in _DIGITS for numeral in numerals) or (numerals == "一" and before != "第"):
        return None
    if all(numeral in _DIGITS for numeral in numerals):
        return int("".join(str(_DIGITS[numeral]) for numeral in numerals[:18]))
    total = part = digit = 0
    for numeral in numerals:
        power = _POWERS.get(numeral, 0)
        if not power:
            digit = _DIGITS[numeral]
        elif power < 10**4:
            part, digit = part + (digit or 1) * power, 0
        else:
            total, part, digit = total + (part + digit or 1) * power, 0, 0
    return total + part + digit


def _mark_names(tokens: Sequence[Token], language: Language) -> Iterator[Token]:
    """Yield the tokens of a language whose nouns have capitals. A name has no article, number or adjective before it."""
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index and not token.first and not token.breaks else None
        is_name = token.first or (before is not None and before.capital and before.content and before.form not in language.scales)
        if before is not None and not is_name:
            is_name = not (before.number or before.content or before.form in language.articles | language.pronouns)
        yield token if is_name or not token.capital else replace(token, capital=False)


def references_in(texts: Iterable[str]) -> frozenset[str]:
    """Return the numbers of bracketed references such as "[3]"."""
    return frozenset(match[1].strip() for text in texts for match in BRACKETED_NUMBER.finditer(text))


def without_references(text: str, references: Collection[str]) -> str:
    """Return ``text`` with spaces instead of "(3)" for each of ``references``: prompts show "[3]" in a passage as "(3)"."""
    if not references:
        return text
    return _PARENTHESISED_NUMBER.sub(lambda match: " " * len(match[0]) if match[1].strip() in references else match[0], text)


def outside_parentheses(tokens: Sequence[Token]) -> list[Token]:
    """Return the words that are in no parentheses, as if the parentheses were not there."""
    outside: list[Token] = []
    depth = 0
    passed = False
    for token in tokens:
        depth = 0 if token.first else max(0, depth + token.gap.count("(") - token.gap.count(")"))
        if depth:
            passed = True
            continue
        gap = re.sub(r"[()]", "", token.gap) if passed else token.gap
        outside.append(replace(token, gap=gap) if gap != token.gap else token)
        passed = False
    return outside


def content_of(tokens: Iterable[Token]) -> frozenset[str]:
    """Return the forms of the words that carry meaning."""
    return frozenset(token.form for token in tokens if token.content)


def names_in(tokens: Iterable[Token], first_words: Collection[str] = ()) -> frozenset[str]:
    """Return the forms of capitalised words. The first word of a sentence counts only if it is among ``first_words``."""
    return frozenset(
        token.form for token in tokens if token.capital and token.content and (not token.first or token.form in first_words)
    )


@dataclass(frozen=True, slots=True)
class TokenMention:
    """Consecutive words that name one thing, or one number: tokens ``first`` to ``last`` of their text."""

    first: int
    last: int
    forms: frozenset[str]
    number: bool


_LINKS = language_of_code(ENGLISH).links


def mentions_in(tokens: Sequence[Token], names: Collection[str], *, linked: bool = True) -> list[TokenMention]:
    """Return the names and numbers in order.

    "Oslo and Bergen" are two. "University of Oslo" is one mention if ``linked``, otherwise two.
    """
    mentions: list[TokenMention] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.number:
            mentions.append(TokenMention(index, index, frozenset({token.form}), number=True))
        elif _may_name(token, names) or _begins_name(tokens, index, names):
            last = index
            while (following := _next_of_name(tokens, last, names, linked=linked)) is not None:
                last = following
            forms = frozenset(part.form for part in tokens[index : last + 1] if part.content)
            mentions.append(TokenMention(index, last, forms, number=False))
            index = last
        index += 1
    return mentions


def _may_name(token: Token, names: Collection[str]) -> bool:
    return token.capital and token.content and (not token.first or token.form in names)


def _begins_name(tokens: Sequence[Token], index: int, names: Collection[str]) -> bool:
    """Return whether the first word of a sentence begins a name of several words: "Mira Voss founded …"."""
    token = tokens[index]
    following = tokens[index + 1 : index + 2]
    return (
        token.first
        and token.capital
        and token.content
        and any(word.gap == " " and _may_name(word, names) and not word.first for word in following)
    )


def _next_of_name(tokens: Sequence[Token], last: int, names: Collection[str], *, linked: bool) -> int | None:
    # A possessive ends a name: "Oslo's Mira Voss" are two.
    if tokens[last].raw.endswith(("'s", "’s")):
        return None
    for step in (1, 2) if linked else (1,):
        at = last + step
        if at >= len(tokens) or tokens[at].first or tokens[at].gap.strip() not in ("", ".", "-"):
            return None
        if _may_name(tokens[at], names):
            return at
        if tokens[at].form not in _LINKS:
            return None
    return None
