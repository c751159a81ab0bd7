"""The language of a text, from its function words and its script.

Function words are the most frequent words of a language, and few of them are words of another one. So their share tells
languages of the Latin script apart in texts of a few sentences.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ENGLISH = "en"
READ_CHARACTERS = 20_000
"""Characters at the beginning of a text that decide."""
PASSAGE_CHARACTERS = 800
"""Characters at the beginning of a passage that decide."""
MIN_WORDS = 20
"""Words, or letters of a script, from which the shares decide."""
_MIN_LETTERS = 8
"""Letters of a script that has one language, or that shows it, as Chinese characters do."""
_MIN_SHARE = 0.15
_CLEAR_WORDS = 3
_LEAD = 1.5
"""A language has this many times as many function words as any other one."""
_MIN_FOREIGN = 0.6
"""Share of letters of another script."""
_WORD = re.compile(r"\b[^\W\d_]+\b")  # "N1" and "S2" have no word: "n" and "s" are French
_SENTENCE_ENDS = ".!?\n"


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP_WORDS: Mapping[str, frozenset[str]] = {
    "en": _split_words(
        "the of and to in is was for on as with by at from that his her he she it an be are were which has had not but or "
        "this their its they after who also one when been first have during there than into other would"
    ),
    "de": _split_words(
        "der die das und ist von den mit im ein eine einer eines einem einen dem des zu auf für nicht auch als wurde war "
        "sich aus bei nach wie oder sie er es wir ihr werden hat haben sind durch am vom zur zum über unter vor dass kann "
        "noch nur aber in an um so bis seine ihre diese dieser dieses seit während zwischen gegen ohne man wenn doch ich "
        "mich mir dann hier da was wer wo warum alle beim sein seit einige mehr sehr schon wieder jedoch"
    ),
    "fr": _split_words(
        "le la les de des du et est un une dans en au aux que qui pour par sur avec il elle ils elles ce cette ces son sa "
        "ses ne pas plus été était sont mais ou où comme se leur leurs dont nous vous je lors après avant depuis entre "
        "sous sans chez aussi puis ainsi si selon contre tout tous toute toutes cet on y a ont fut être avoir l d qu c n "
        "s j"
    ),
    "es": _split_words(
        "el la los las de del y en es un una que por con para su sus se al lo como más fue era son pero o no este esta "
        "estos estas ese esa entre sobre desde hasta cuando también sin ser había ha han tras durante según donde muy ya "
        "le les me si todo todos toda todas otro otra otros ante bajo e u nos"
    ),
    "it": _split_words(
        "il lo la i gli le di del della dei delle degli dello dell e è un una uno che per con su sul sulla nel nella nei "
        "nelle da dal dalla al alla ai alle in non si come più fu era sono ma o anche suo sua suoi sue questo questa "
        "questi queste tra fra dopo prima durante quando dove ha hanno stato stata se ne ci lui lei loro secondo poi così "
        "l dell all d un"
    ),
    "pt": _split_words(
        "o a os as de do da dos das e em no na nos nas um uma que por para com não se mais foi era são mas ou como ao à "
        "aos às seu sua seus suas este esta isso ele ela eles elas pelo pela pelos pelas entre sobre desde até quando "
        "também sem ser tem após durante segundo onde já num numa muito"
    ),
    "nl": _split_words(
        "de het een en van in is op te dat die voor met aan zijn was er door niet ook als bij uit naar om tot over werd "
        "heeft had worden hij zij ze deze dit maar of nog wordt onder tussen tegen na haar hun wij we ik je kan zich "
        "sinds tijdens dan wel geen meer veel waar wanneer toen"
    ),
    "sv": _split_words(
        "och i att det som en på är av för den med till han var ett om men de har inte hade sig från vid så efter under "
        "sin sina också eller när där hon vi mellan över genom blev kan ut upp detta denna dessa hans hennes sedan mot "
        "utan mycket"
    ),
    "pl": _split_words(
        "i w na z się do nie to jest że o jak po od za przez dla oraz był była było są przy jego jej ich ale lub a we ze "
        "tym tego który która które jako także pod nad między został została roku przed już może tylko tak co gdy czy"
    ),
}
"""Function words of the languages that are told apart, by ISO 639-1 code. All of them are written in the Latin script."""
_LETTERS: Mapping[str, str] = {
    "de": "äöüß", "fr": "àâæçèéêëîïôùûüœ", "es": "áéíñóúü", "it": "àèéìòù", "pt": "àáâãçéêíóôõú", "nl": "éëïó", "sv": "äåö",
    "pl": "ąćęłńóśźż",
}  # fmt: skip
"""Letters of each language that English has in names and foreign words only."""
_QUESTION_WORDS = _split_words(
    "what why whom whose how many much did does do can could should must will there where these those you your my our us"
)
"""English words of questions, with which the language of a long text is not measured."""
_ALSO_ENGLISH = _split_words(
    "a al all also am an as at ale bin by come dan die do dot door era est far for from had has he her here his i in is it man "
    "me men met must no not of on or over para per pour se sin so son to via war was we ten un"
)
"""Words of the other languages that English sentences have, too."""
_PARTICLES = _split_words("van von der den de del della di da du la las le les los el ten ter zu zum do dos das e y")
"""Words that join the parts of names: "van der Rohe"."""
_ASKING = _split_words("do we")
"""English words that one or two other languages have."""
_LANGUAGE_OF_SCRIPT: Mapping[str, str] = {
    "Han": "zh",
    "Hiragana": "ja",
    "Katakana": "ja",
    "Hangul": "ko",
    "Thai": "th",
    "Greek": "el",
    "Hebrew": "he",
    "Armenian": "hy",
    "Georgian": "ka",
}
"""Scripts that mostly one language is written in, by ISO 639-1 code. Cyrillic and Arabic have many."""
_DENSE = frozenset({"Han", "Hiragana", "Katakana", "Hangul"})
"""Scripts with a syllable or a word in each character."""
_JAPANESE = re.compile("[\u3040-\u30ff]")
_LANGUAGES_OF: Mapping[str, frozenset[str]] = {
    word: frozenset(code for code, stop_words in STOP_WORDS.items() if word in stop_words)
    for stop_words in STOP_WORDS.values()
    for word in stop_words
}


_ENGLISH_ALONE = frozenset(
    word for word in STOP_WORDS[ENGLISH] | _QUESTION_WORDS if _LANGUAGES_OF.get(word, frozenset()) <= {ENGLISH}
)
"""Function words that no other language has."""
_CODES: Mapping[str, str] = {
    name: code
    for code, names in {
        "en": "eng english", "de": "deu ger german deutsch", "fr": "fra fre french", "es": "spa spanish", "it": "ita italian",
        "pt": "por portuguese", "nl": "nld dut dutch", "sv": "swe swedish", "pl": "pol polish", "zh": "zho chi chinese",
        "ja": "jpn japanese", "ko": "kor korean", "ru": "rus russian",
    }.items()
    for name in names.split()
}  # fmt: skip
"""ISO 639-1 codes by the codes of ISO 639-2 and by names."""


def language_of_words(words: Iterable[str]) -> str | None:
    """Return the ISO 639-1 code of the language of words in lower case. None: there are few of them, or it is unclear."""
    counts: Counter[str] = Counter()
    total = 0
    for word in words:
        total += 1
        counts.update(_LANGUAGES_OF.get(word, ()))
    if total < MIN_WORDS or not counts:
        return None
    (best, best_count), *other_counts = counts.most_common(2)
    if best_count < _MIN_SHARE * total or (other_counts and best_count < _LEAD * other_counts[0][1]):
        return None
    return best


def language_of(text: str) -> str | None:
    """Return the ISO 639-1 code of a text's language, if it is one of `STOP_WORDS` or the only one of its script.

    A short text must show its language as clearly as a query.
    """
    script = foreign_script_of(text, least=_MIN_LETTERS)
    if script is not None:
        # Japanese has more syllables than Chinese characters, but a short text may have few.
        return "ja" if script == "Han" and _JAPANESE.search(text[:READ_CHARACTERS]) else _LANGUAGE_OF_SCRIPT.get(script)
    words = [word.lower() for word in _WORD.findall(text[:READ_CHARACTERS])]
    if len(words) >= MIN_WORDS:
        return language_of_words(words)
    likely = likely_languages(text[:READ_CHARACTERS])
    return likely.codes[0] if likely.clear else None


@dataclass(frozen=True, slots=True)
class LikelyLanguages:
    """The languages with the most function words in a query, several if they have equally many.

    ``clear`` says that there is one, with three function words or more, and twice as many as any other.
    """

    codes: tuple[str, ...]
    clear: bool = False


def likely_languages(query: str) -> LikelyLanguages:
    """Return the languages that a query may be in. None, if it has no function word."""
    counts: Counter[str] = Counter()
    for word in _WORD.findall(query):
        counts.update(_LANGUAGES_OF.get(word.lower(), ()))
    best_count, second_count, *_ = *sorted(counts.values(), reverse=True), 0, 0
    codes = tuple(code for code in STOP_WORDS if best_count and counts[code] == best_count)
    return LikelyLanguages(codes, clear=best_count >= _CLEAR_WORDS and best_count >= 2 * second_count)


def language_in(metadata: Mapping[str, object]) -> str:
    """Return the ISO 639-1 code of a document's metadata: "de" for "de-AT", "deu" or "German". Empty if it is not one."""
    language_tag = metadata.get("language")
    primary_tag = re.split("[-_]", language_tag.strip().lower(), maxsplit=1)[0] if isinstance(language_tag, str) else ""
    code = _CODES.get(primary_tag, primary_tag)
    return code if len(code) == 2 and code.isascii() and code.isalpha() else ""


def language_near(text: str, expected: str | None, *, least: int = _CLEAR_WORDS) -> str | None:
    """Return the language of a short text about another text: a question or a sentence of an answer about a passage.

    A text that shows no language has that of the other one. Near an English text, or one that shows no language, a text is in
    another language only if it has no word of English alone, and at least ``least`` function words of the other language. Each of
    its letters with accents, within a word in lower case, counts as one. English must not have all these words and letters.

    Args:
        expected: ISO 639-1 code of the other text's language; None: it shows none.
        least: different function words that show another language near an English text.
    """
    script = _script_near(text)
    if script is not None:
        return language_of(text) or _LANGUAGE_OF_SCRIPT.get(script) or (None if expected in STOP_WORDS else expected)
    if expected is not None and expected not in STOP_WORDS:
        # The other text is in another script.
        return next(iter(likely_languages(text).codes), ENGLISH if any(map(str.isalpha, text)) else expected)
    evidence = _Shown.from_text(text)
    (best, best_count), (_, second_count) = evidence.counts.most_common(2)
    if expected is None or expected == ENGLISH:
        clear = best != ENGLISH and best_count >= max(least, _LEAD * second_count) and evidence.shows_language(best)
        return best if clear and not evidence.english else expected
    english = evidence.english or not evidence.words.isdisjoint(_ASKING - STOP_WORDS[expected])
    if english and (2 * evidence.counts[expected] <= best_count or not evidence.shows_language(expected)):
        return ENGLISH
    is_other = (
        best_count > evidence.counts[expected]
        and best_count >= _LEAD * evidence.counts[expected]
        and evidence.shows_language(best)
    )
    return best if is_other else expected


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the words of a text show.

    ``words`` are its words that are no part of a name. ``letters`` are those of its words that are not ASCII. ``counts`` are the
    function words and letters by language. ``english`` says that it has a word of English alone.
    """

    words: frozenset[str]
    letters: frozenset[str]
    counts: Counter[str]
    english: bool

    @classmethod
    def from_text(cls, text: str) -> _Shown:
        written_words = _WORD.findall(text[:READ_CHARACTERS])
        words = frozenset(word.lower() for word in written_words if len(word) > 1)
        accented = [word for word in written_words if not word.isascii()]
        common = {letter for word in accented if word[0].islower() for letter in word}
        counts = Counter(
            {
                code: len(words & stop_words) + len(common.intersection(_LETTERS.get(code, "")))
                for code, stop_words in STOP_WORDS.items()
            }
        )
        letters = frozenset("".join(accented).lower())
        return cls(_outside_names(text[:READ_CHARACTERS]), letters, counts, not words.isdisjoint(_ENGLISH_ALONE))

    def shows_language(self, code: str) -> bool:
        """Return whether a word or letter shows a language that no English text shows."""
        words = STOP_WORDS[code] - STOP_WORDS[ENGLISH] - _ALSO_ENGLISH
        return not self.words.isdisjoint(words) or not self.letters.isdisjoint(_LETTERS.get(code, ""))


def _outside_names(text: str) -> frozenset[str]:
    """Return the words in lower case, without those with a capital within a sentence, and without particles between these."""
    common_words: set[str] = set()
    end = 0
    after_name = False  # whether the word before is a name, or a particle after one
    places = list(_WORD.finditer(text))
    for number, position in enumerate(places):
        following = places[number + 1] if number + 1 < len(places) else None
        word = position[0]
        opening = end == 0 or any(mark in _SENTENCE_ENDS for mark in text[end : position.start()])
        end = position.end()
        capital = word[0].isupper()
        before_name = following is not None and (following[0][0].isupper() or following[0] in _PARTICLES)
        joins = (after_name or opening) and word.lower() in _PARTICLES and before_name
        if not joins and (opening or not capital):
            common_words.add(word.lower())
        after_name = joins or (capital and not (opening and word.lower() in _LANGUAGES_OF))
    return frozenset(common_words)


def _script_near(text: str) -> str | None:
    """Return the script of a short text if it is not the Latin one. A Latin name in Chinese does not make it Latin."""
    script = foreign_script_of(text, least=1)
    if script is not None or text.isascii():
        return script
    counts = Counter(_script_of(letter) for letter in text[:READ_CHARACTERS] if letter.isalpha())
    latin = counts.pop("Latin", 0)
    dense = [name for name in counts if name in _DENSE]
    # One character is a word or a part of one, for which the Latin script needs several letters.
    return max(dense, key=lambda name: (counts[name], name)) if 2 * sum(counts[name] for name in dense) >= max(latin, 1) else None


def language_of_passage(text: str) -> str | None:
    """Return the language of a passage, as `language_of`, also if it is short.

    None for a text with words of English alone that seems to be in another language.
    """
    beginning = text[:PASSAGE_CHARACTERS]
    language = language_of(beginning)
    if language is None:
        return language_near(beginning, None)
    if language == ENGLISH or language not in STOP_WORDS:
        return language
    words = [word.lower() for word in _WORD.findall(beginning) if len(word) > 1]
    own_count, english = (sum(word in stop_words for word in words) for stop_words in (STOP_WORDS[language], _ENGLISH_ALONE))
    # A short English text may be mostly a title or names in another language.
    if len(words) < MIN_WORDS and (english or not _Shown.from_text(beginning).shows_language(language)):
        return None
    return language if own_count > 2 * english else None


def is_mostly_latin(text: str) -> bool:
    """Return whether at least half of the letters are Latin, or there are none."""
    letters = [letter for letter in text[:READ_CHARACTERS] if letter.isalpha()]
    return 2 * sum(_script_of(letter) == "Latin" for letter in letters) >= len(letters)


def foreign_script_of(text: str, *, least: int = MIN_WORDS) -> str | None:
    """Return the script of most letters, such as "Cyrillic", if it is not the Latin one.

    None: Latin, mixed, or fewer than ``least`` letters.
    """
    beginning = text[:READ_CHARACTERS]
    if beginning.isascii():  # most texts: their letters need not be counted
        return None
    scripts = Counter[str]()
    for letter, count in Counter(beginning).items():
        if letter.isalpha():
            scripts[_script_of(letter)] += count
    total = sum(scripts.values())
    if total < least:
        return None
    latin = scripts.pop("Latin", 0)
    if not scripts or total - latin < _MIN_FOREIGN * total:
        return None
    return min(scripts, key=lambda name: (-scripts[name], name))


def _script_of(letter: str) -> str:
    if letter.isascii():
        return "Latin"
    script_name = unicodedata.name(letter, "Other").split(" ", 1)[0].split("-", 1)[0]
    return "Han" if script_name == "CJK" else script_name.title()
