"""Sentences of passages, altered so that they are false or reworded so that they stay true, to measure claim checks.

No rule here is shared with the checks: names are runs of capitalised words, found by a regular expression.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from agentic_rag_backend.evaluation.datasets import CorpusPassage
from agentic_rag_backend.language.sentences import is_statement, split_sentences

_PROPER = r"[A-Z][a-zà-ÿ]+(?: [A-Z][a-zà-ÿ]+)*\b"
_NAME = re.compile(rf"(?<![.!?\"“] )(?<!^)\b{_PROPER}")
_DATES = re.compile(
    r"January|February|March|April|May|June|July|August|September|October|November|December|\w+day\b|English|American|British|The\b"
)
_YEAR = re.compile(r"\b(?:1[0-9]|20)\d\d\b")
_NUMBER = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})*(?:\.\d+)?(?![\d,]|\.\d|th\b|st\b|nd\b|rd\b)")
_AUXILIARY = re.compile(r"\b(is|was|were|are|had|has|can|will|would|did|could)\b(?! not\b|n't| never\b| no\b)")
_DENIAL = re.compile(r"\b(is|was|were|are|had|has|can|will|would|did|could|do|does) not\b|\bcannot\b")
_HEDGES: Sequence[tuple[re.Pattern[str], str]] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\b(?:may|might|could) have been\b", "was"),
        (r"\b(?:may|might|could) have\b", "had"),
        (r"\b(?:may|might|could) be\b", "is"),
        (r"\b(?:may|might|could) (?!not\b)(?=[a-z])", "did "),
        (r"\b(is|are|was|were) (?:believed|thought|expected|said|alleged|supposed|likely|planned|proposed) to be\b", r"\1"),
        (r"\b(?:is|are|was|were) (?:believed|thought|expected|said|alleged|supposed|planned|proposed) to have\b", "had"),
        (r"\b(?:planned|proposed|intended|attempted|tried|hoped|wanted) to (?=[a-z])", "did "),
        (r"\b(?:probably|possibly|perhaps|allegedly|reportedly|supposedly|likely) ", ""),
    )
)
_SYNONYMS: Mapping[str, str] = {
    "founded": "established", "established": "founded", "located": "situated", "film": "movie", "began": "started",
    "started": "began", "large": "big", "big": "large", "died": "passed away", "built": "constructed", "constructed": "built",
    "received": "got", "created": "made", "wrote": "authored", "written": "authored", "called": "named", "country": "nation",
    "area": "region", "region": "area", "however": "yet", "often": "frequently", "bought": "purchased", "won": "gained",
    "almost": "nearly", "town": "municipality", "company": "firm", "show": "programme", "famous": "well-known",
    "also": "additionally", "many": "numerous", "main": "principal", "major": "important",
}  # fmt: skip
_OTHER_UNITS: Mapping[str, str] = {
    "million": "billion", "billion": "million", "thousand": "million", "km": "m", "miles": "feet", "months": "years",
    "days": "weeks",
}  # fmt: skip
_NUMERALS: Mapping[str, str] = {
    "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10",
}  # fmt: skip
_EXCLUSIVE = (
    "accepted rejected; approved rejected; supported opposed; built demolished; opened closed; increased decreased; rose fell; "
    "included excluded; created destroyed; added removed; founded dissolved; appointed dismissed; joined left; won lost; "
    "bought sold; largest smallest; highest lowest; northern southern; eastern western; public private; always never; "
    "positive negative; early late; male female; internal external; domestic foreign; natural artificial"
)
_OPPOSITES: Mapping[str, str] = {
    one: other for pair in _EXCLUSIVE.split("; ") for one, other in (pair.split(), reversed(pair.split()))
}
_PARENTHESES = re.compile(r" \([^()]*\)")
_CLAUSE = re.compile(r", (?:which|who|where|whose|although|while) [^,;.]+(?=[.]$)")
_ADVERB = re.compile(
    r"(?<=[a-z] )(?!only|early|likely|family|nearly|hardly|possib|probab|alleged|reported|suppos|mostly)[a-z]{3,}ly (?=[a-z])"
)
_FRONTED = re.compile(r"^(?P<main>[^,;:()\"]+?) (?P<end>(?:in|on|during|from|after|since|until) [^,;:()\"]*\d{4})\.$")
_PASSIVE = re.compile(
    rf"^(?P<patient>[A-Z][^,;:()\"]{{2,50}}?) (?:was|were) (?P<verb>[a-z]+ed|written|built|won) by (?P<agent>{_PROPER})"
    r"(?P<rest> (?:in|on) [^,;:]*\d{4})?\.$"
)
_VERB = r"(?:was|is|were|are|has|had|became|won|began|made|went|[a-z]+ed)"
_HALVES = re.compile(
    rf"^(?P<subject>(?:The [a-z]+|{_PROPER}|He|She|It|They)) "
    rf"(?P<first>{_VERB} [^,;:()\"]+?),? and (?P<second>{_VERB} [^;:()\"]+)\.$"
)
_APPOSITION = re.compile(
    rf"^(?P<name>{_PROPER}), (?P<what>(?:a|an|the) [a-z][^,;:()\"]+), (?P<verb>is|was|were|are|has|had) [^;]+$"
)
_POSSESSED = re.compile(rf"\bthe (?P<thing>[a-z]+) of (?P<owner>{_PROPER})(?! of\b)")
_PRONOUN = re.compile(r"^(?:He|She|It) (?=was|is|had|has|also|became|won|served|played|began|received|stars?\b)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with its passage, and other passages of the same set."""

    text: str
    passage: CorpusPassage
    others: Sequence[CorpusPassage]


@dataclass(frozen=True, slots=True)
class Case:
    """A claim about a sentence; ``holds`` is whether the passage states it."""

    kind: str
    holds: bool
    claim: str
    source: Sentence


Change = Callable[[Sentence, random.Random], "str | Case | None"]
"""Returns a claim about the sentence, or a case with another passage; None if the change does not fit."""


def names(text: str) -> list[re.Match[str]]:
    """Return the runs of capitalised words inside a sentence, without dates and adjectives of nations."""
    return [match for match in _NAME.finditer(text) if not _DATES.search(match[0])]


def _replaced(text: str, match: re.Match[str], new: str) -> str:
    return text[: match.start()] + new + text[match.end() :]


def _negated(sentence: Sentence, chance: random.Random) -> str | None:
    denial = _DENIAL.search(sentence.text)
    if denial is not None:
        return _replaced(sentence.text, denial, denial[1] or "can")
    found = _AUXILIARY.search(sentence.text)
    if found is None or re.search(r"n't|\bno\b|\bnever\b", sentence.text):
        return None
    return _replaced(sentence.text, found, f"{found[1]} not")


def _opposite(sentence: Sentence, chance: random.Random) -> str | None:
    found = [match for match in re.finditer(r"[a-z]+", sentence.text) if match[0] in _OPPOSITES]
    if not found or _DENIAL.search(sentence.text):
        return None
    match = chance.choice(found)
    other = _OPPOSITES[match[0]]
    return None if re.search(rf"\b{other}\b", sentence.text) else _replaced(sentence.text, match, other)


def _swapped(sentence: Sentence, chance: random.Random) -> str | None:
    found = names(sentence.text)
    pairs = [
        (first, second)
        for index, first in enumerate(found)
        for second in found[index + 1 :]
        if not set(first[0].split()) & set(second[0].split()) and _asymmetric(sentence.text[first.end() : second.start()])
    ]
    if not pairs:
        return None
    first, second = chance.choice(pairs)
    text = sentence.text
    return text[: first.start()] + second[0] + text[first.end() : second.start()] + first[0] + text[second.end() :]


def _asymmetric(between: str) -> bool:
    """Return whether two names with this text between them have different roles: no list, no apposition, no equation."""
    if re.fullmatch(r"\W*(?:(?:and|or|with|the|de|of the|&|between|is|was|a\.k\.a\.|near|alongside|starring)\W*)*", between):
        return False
    return not re.search(r"\band\b|\bor\b|,", between) and bool(re.search(r"\b(?!the\b)[a-z]{2,}\b", between))


def _name_of_passage(sentence: Sentence, chance: random.Random) -> str | None:
    own = names(sentence.text)
    used = set(re.findall(r"\w+", sentence.text + " " + sentence.passage.title))
    others = sorted({each[0] for each in names(sentence.passage.text) if not set(each[0].split()) & used})
    return _replaced(sentence.text, chance.choice(own), chance.choice(others)) if own and others else None


def _name_of_others(sentence: Sentence, chance: random.Random) -> str | None:
    own = names(sentence.text)
    used = set(re.findall(r"\w+", sentence.passage.text + " " + sentence.passage.title))
    others = sorted({each[0] for other in sentence.others for each in names(other.text) if not set(each[0].split()) & used})
    return _replaced(sentence.text, chance.choice(own), chance.choice(others)) if own and others else None


def _year(sentence: Sentence, chance: random.Random) -> str | None:
    found = _YEAR.search(sentence.text)
    if found is None:
        return None
    new = str(int(found[0]) + chance.choice((-20, -9, -1, 1, 3, 10)))
    return None if new in sentence.text else _replaced(sentence.text, found, new)


def _year_of_passage(sentence: Sentence, chance: random.Random) -> str | None:
    found = _YEAR.search(sentence.text)
    others = sorted({year for year in _YEAR.findall(sentence.passage.text) if year not in sentence.text})
    return _replaced(sentence.text, found, chance.choice(others)) if found and others else None


def _number(sentence: Sentence, chance: random.Random) -> str | None:
    found = [match for match in _NUMBER.finditer(sentence.text) if match[0] not in ("1", "0")]
    if not found:
        return None
    match = chance.choice(found)
    digits = str(int(match[0][0]) % 9 + 1) + match[0][1:]
    return None if digits in sentence.text else _replaced(sentence.text, match, digits)


def _scale(sentence: Sentence, chance: random.Random) -> str | None:
    found = re.search(rf"(?<=\d )(?:{'|'.join(_OTHER_UNITS)})\b", sentence.text)
    return _replaced(sentence.text, found, _OTHER_UNITS[found[0]]) if found else None


def _certain(sentence: Sentence, chance: random.Random) -> str | None:
    for pattern, replacement in _HEDGES:
        found = pattern.search(sentence.text)
        if found is not None:
            return _replaced(sentence.text, found, found.expand(replacement))
    return None


def _addition(sentence: Sentence, chance: random.Random) -> str | None:
    other = chance.choice(sentence.others)
    extra = [each.text for each in split_sentences(other.text) if is_statement(each.text) and len(each.text) < 160]
    return f"{sentence.text[:-1]}, and {extra[0]}" if extra else None


def _copied(sentence: Sentence, chance: random.Random) -> str | None:
    return sentence.text


def _fronted(sentence: Sentence, chance: random.Random) -> str | None:
    found = _FRONTED.match(sentence.text)
    if found is None:
        return None
    main = found["main"] if names("x " + found["main"].split(" ")[0]) else found["main"][0].lower() + found["main"][1:]
    return f"{found['end'][0].upper()}{found['end'][1:]}, {main}."


def _shortened(sentence: Sentence, chance: random.Random) -> str | None:
    for pattern in (_PARENTHESES, _CLAUSE, _ADVERB):
        found = pattern.search(sentence.text)
        if found is not None:
            return _replaced(sentence.text, found, "")
    return None


def _active(sentence: Sentence, chance: random.Random) -> str | None:
    found = _PASSIVE.match(sentence.text)
    if found is None:
        return None
    verb = {"written": "wrote"}.get(found["verb"], found["verb"])
    patient = found["patient"]
    patient = patient[0].lower() + patient[1:] if re.match(r"The |It |A |An |This ", patient) else patient
    return f"{found['agent']} {verb} {patient}{found['rest'] or ''}."


def _resolved(sentence: Sentence, chance: random.Random) -> str | None:
    found = _PRONOUN.match(sentence.text)
    title = re.sub(r" \(.*", "", sentence.passage.title)
    return f"{title} {sentence.text[found.end() :]}" if found and title else None


def _synonyms(sentence: Sentence, chance: random.Random) -> str | None:
    text = re.sub(r"\b[a-z]+\b", lambda match: _SYNONYMS.get(match[0], match[0]), sentence.text)
    return text if text != sentence.text else None


def _numerals(sentence: Sentence, chance: random.Random) -> str | None:
    text = re.sub(r"\b[a-z]+\b", lambda match: _NUMERALS.get(match[0], match[0]), sentence.text)
    return text if text != sentence.text else None


def _first_half(sentence: Sentence, chance: random.Random) -> str | None:
    found = _HALVES.match(sentence.text)
    return f"{found['subject']} {found['first']}." if found else None


def _second_half(sentence: Sentence, chance: random.Random) -> str | None:
    found = _HALVES.match(sentence.text)
    # "Written and illustrated by": the second verb is a participle.
    return f"{found['subject']} {found['second']}." if found and " by " not in found["second"][:24] else None


def _stated_apposition(sentence: Sentence, chance: random.Random) -> str | None:
    found = _APPOSITION.match(sentence.text)
    if found is None:
        return None
    return f"{found['name']} {'is' if found['verb'] in ('is', 'has', 'are') else 'was'} {found['what']}."


def _possessive(sentence: Sentence, chance: random.Random) -> str | None:
    found = _POSSESSED.search(sentence.text)
    return _replaced(sentence.text, found, f"{found['owner']}'s {found['thing']}") if found else None


def _joined(sentence: Sentence, chance: random.Random) -> str | None:
    found = split_sentences(sentence.passage.text)
    following = [later.text for each, later in pairwise(found) if each.text == sentence.text]
    if not following or not is_statement(following[0]) or not re.match(r"(?:He|She|It|They|This|The) ", following[0]):
        return None
    return f"{sentence.text[:-1]}, and {following[0][0].lower()}{following[0][1:]}"


UNASSERTING: Sequence[str] = (
    "The mayor did not say that {}.", "It is not true that {}.", "There was no proof that {}.", "Nobody has shown that {}.",
    "The report never states that {}.", "The mayor denied that {}.", "Critics disputed that {}.", "It is unclear whether {}.",
    "The court asked if {}.", "The rumour that {} is old.", "A pamphlet falsely claimed that {}.", "Few believed that {}.",
    "The mayor hoped that {}.", "The council would have objected if {}.", "Anna wondered whether {}.",
    "The court found no sign that {}.", "Hardly anyone thinks that {}.", "The paper failed to establish that {}.",
    "Critics rejected the idea that {}.", "The film pretends that {}.",
)  # fmt: skip
"""Sentences that do not assert the clause in them."""
ASSERTING: Sequence[str] = (
    "The mayor did not know that {}.", "The report notes that {}.", "Nobody noticed that {}.", "The council regretted that {}.",
    "The mayor, who did not object, remembered that {}.", "It is true that {}.", "The council never forgot that {}.",
    "There is no doubt that {}.", "Anna discovered that {}.", "Although nobody objected, {}.",
)  # fmt: skip
"""Sentences that assert the clause in them."""


def _framed(frames: Sequence[str], sentence: Sentence, chance: random.Random) -> Case | None:
    """Return the sentence as a claim, where its passage has it as a clause of a longer sentence."""
    first = re.match(r"(?:The|A|An|It|He|She|They|In|This|His|Her|Its|There|On|During|After) ", sentence.text)
    if first is None and not names(f"x {sentence.text}"):
        return None
    clause = sentence.text[:-1] if first is None else sentence.text[0].lower() + sentence.text[1:-1]
    if ";" in clause or ":" in clause:
        return None
    text = sentence.passage.text.replace(sentence.text, chance.choice(frames).format(clause))
    return Case("", False, sentence.text, replace(sentence, passage=replace(sentence.passage, text=text)))


def _unasserted(sentence: Sentence, chance: random.Random) -> Case | None:
    return _framed(UNASSERTING, sentence, chance)


def _asserted(sentence: Sentence, chance: random.Random) -> Case | None:
    return _framed(ASSERTING, sentence, chance)


FALSE: Mapping[str, Change] = {
    "negated": _negated,
    "an opposite": _opposite,
    "two names swapped": _swapped,
    "a name of the same passage": _name_of_passage,
    "a name of another passage": _name_of_others,
    "another year": _year,
    "a year of the same passage": _year_of_passage,
    "another number": _number,
    "another unit": _scale,
    "a hedge dropped": _certain,
    "a clause added": _addition,
    "cut out of a sentence that does not assert it": _unasserted,
}
"""Changes that make a sentence false or unsupported."""
TRUE: Mapping[str, Change] = {
    "copied": _copied,
    "date in front": _fronted,
    "part left out": _shortened,
    "active instead of passive": _active,
    "pronoun resolved": _resolved,
    "first half": _first_half,
    "second half": _second_half,
    "apposition stated": _stated_apposition,
    "possessive": _possessive,
    "two sentences joined": _joined,
    "synonyms": _synonyms,
    "numerals": _numerals,
    "cut out of a sentence that asserts it": _asserted,
}
"""Changes after which a sentence is still stated."""


def sentences_of(passages: Sequence[CorpusPassage], *, others: int = 4) -> Iterator[Sentence]:
    """Yield the sentences that are statements, with the passages that follow theirs in the set."""
    for index, passage in enumerate(passages):
        following = [passages[(index + step) % len(passages)] for step in range(1, others + 1)]
        for sentence in split_sentences(passage.text):
            if sentence.complete and is_statement(sentence.text) and 40 <= len(sentence.text) <= 300 and '"' not in sentence.text:
                yield Sentence(sentence.text, passage, following)


def cases(passages: Sequence[CorpusPassage], *, most: int, seed: int) -> list[Case]:
    """Return at most ``most`` cases of each kind, the same for the same seed."""
    chance = random.Random(seed)
    found = list(sentences_of(passages))
    chance.shuffle(found)
    made: list[Case] = []
    for holds, changes in ((False, FALSE), (True, TRUE)):
        for kind, change in changes.items():
            own: list[Case] = []
            for sentence in found:
                made_of = change(sentence, chance)
                if isinstance(made_of, Case):
                    own.append(replace(made_of, kind=kind, holds=holds))
                elif made_of is not None and (holds or made_of != sentence.text):
                    own.append(Case(kind, holds, made_of, sentence))
                if len(own) == most:
                    break
            made += own
    return made
