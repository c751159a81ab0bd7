"""Behaviour of a scripted model, read from its name: the pure half of `models.server`.

A name is parts joined by ``+``; unknown parts are ignored, so that ``gpt-4o-mini`` is a model that echoes.

============================ ==========================================================================================
part                         effect
============================ ==========================================================================================
``echo`` (default)           repeats the last user message
``cite``                     sentences copied from the numbered passages, the ones nearest to the question, with ``[n]``
``cite-wrong``               a copied sentence under ``[99]``, and an invented one under ``[1]``
``refuse``                   the refusal sentence
``empty``                    a reply without text
``recorded``                 only recorded replies; a prompt without one is a 404 that names the prompt's hash
``recorded-musique``         a model's recorded extractions from the passages of the evaluation set of that name, found in the
                             prompt by their words; a prompt without any is a 404, too
``broken-json``              half of a JSON object
``wrong-schema``             a JSON object that matches no schema
``json-object-only``         400 for ``response_format: json_schema``, as servers that lack it answer
``reader``                   the names and facts of plain sentences, for our prompt of extraction and for Graphiti's
``numbers-3``                with a schema: every third number of the numbered sentences in the prompt
``no-usage``                 no token counts
``latency-500ms``            waits before it answers (``ms`` or ``s``)
``slow-stream-50ms``         waits between the pieces of a stream
``no-stream``                ignores the request to stream a reply
``window-2000``              reads only the last 2,000 tokens of a prompt, without an error
``length-200``               a reply of that many words: its text, repeated or cut
``status-500``               that status, any from 400 to 599
``rate-limited-1s``          429 with ``Retry-After: 1``
``drop``                     closes the connection without an answer
``cut-stream``               closes the connection in the middle of a stream
``short-stream``             ends a stream in the middle as if it were whole, but for its finish reason
``poison-zebra``             400 for a request with that word (letters and digits) in a prompt or in a text to embed
``quirk-think``              a habit of real models and servers; `models.quirks` lists them
``hashed``                   embeddings from a text's hash instead of its words: fast, and similar to no other text
``nan``                      embeddings with a value that is not a number
``dimensions-384``           length of embeddings, if a request names none (64)
``floor-70``                 cosines of embeddings from .7 on, in the same order: the scale of another encoder
============================ ==========================================================================================

A request's ``max_tokens`` cuts the reply, with ``finish_reason: length``. Embeddings heed latency, statuses, limits,
``drop``, ``broken-json``, ``wrong-schema`` (half of the vectors) and ``empty``.

A fault may end: ``status-500x2`` fails twice, then the model answers (also ``rate-limited-1sx2``, ``dropx1``,
``broken-jsonx1`` …). If a request has a JSON schema, ``echo`` and ``cite`` answer with an object that matches it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.language.words import content_forms
from agentic_rag_backend.models.llm.base import NOT_ANSWERED
from agentic_rag_testing.models import quirks, reader

_PASSAGE = re.compile(r"<passage id=\"(\d+)\"[^>]*>\n(.*?)\n</passage>", re.DOTALL)
_NUMBERED_LINE = re.compile(r"^\[(\d+)\] (.+)$", re.MULTILINE)
_SENTENCE_NUMBER = re.compile(r"^(\d+)\. ", re.MULTILINE)
_QUESTION = re.compile(r"<question>\n(.*?)\n</question>", re.DOTALL)
_TOKEN = re.compile(r"\w+|[^\w\s]")
_COUNTED = re.compile(r"(?P<part>.+?)x(?P<times>\d+)\Z")
_NUMBER = re.compile(r"(?P<kind>length|dimensions|floor|numbers|window)-(?P<number>\d+)\Z")
_NAMED = re.compile(r"(?P<kind>recorded|poison)-(?P<name>[A-Za-z0-9_.-]+)\Z")
_DURATION = re.compile(r"(?P<kind>latency|slow-stream|rate-limited)-(?P<number>\d+)(?P<unit>ms|s)\Z")
_STATUS = re.compile(r"status-([45]\d\d)\Z")
_CONTENT = frozenset(
    {"echo", "cite", "cite-wrong", "refuse", "empty", "recorded", "broken-json", "wrong-schema", "numbers", "reader"}
)
_SWITCHES = frozenset({"json-object-only", "no-usage", "drop", "cut-stream", "short-stream", "no-stream", "hashed", "nan"})


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a name: ``kind`` with its ``value``, for the first ``times`` calls (None: all).

    The value is seconds, a status, a number, or a word.
    """

    kind: str
    value: float | str = 0.0
    times: int | None = None


class Kinds(Mapping[str, float | str]):
    """The behaviour of one call: kind → value."""

    def __init__(self, held: Mapping[str, float | str]) -> None:
        self._held = dict(held)

    def __getitem__(self, kind: str) -> float | str:
        return self._held[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def number(self, kind: str) -> float:
        """Return a value that is a number; 0 if the kind does not apply."""
        return float(self._held.get(kind, 0.0))

    @property
    def quirks(self) -> frozenset[str]:
        """The habits of the model and its server, as `models.quirks` names them."""
        return frozenset(kind.removeprefix(quirks.PREFIX) for kind in self._held if kind.startswith(quirks.PREFIX))

    def word(self, kind: str) -> str:
        """Return a value that is a word; empty if the kind does not apply."""
        return str(self._held.get(kind, "") or "")


def parse_name(model: str) -> tuple[Part, ...]:
    """Return the parts of a model's name that mean something, in order."""
    parts = (_parse_part(text) for text in model.split("+"))
    return tuple(part for part in parts if part is not None)


def _parse_part(text: str) -> Part | None:
    times: int | None = None
    counted = _COUNTED.match(text)
    if counted:
        text, times = counted["part"], int(counted["times"])
    if text in _CONTENT or text in _SWITCHES or text.removeprefix(quirks.PREFIX) in quirks.NAMES:
        return Part(text, times=times)
    number, named, duration = _NUMBER.match(text), _NAMED.match(text), _DURATION.match(text)
    if number:
        return Part(number["kind"], int(number["number"]), times)
    if named:
        return Part(named["kind"], named["name"], times)
    if duration:
        return Part(duration["kind"], int(duration["number"]) / (1000 if duration["unit"] == "ms" else 1), times)
    status = _STATUS.match(text)
    return Part("status", float(status[1]), times) if status else None


def active(parts: Sequence[Part], call: int) -> Kinds:
    """Return the behaviour of a model's ``call``-th call (from 0): kind → value, with at most one kind of content."""
    kinds = {part.kind: part.value for part in parts if part.times is None or call < part.times}
    content = [kind for kind in kinds if kind in _CONTENT]
    # When a fault has ended, the other parts of the name apply: "broken-jsonx1+cite".
    for shadowed in content[1:]:
        kinds.pop(shadowed)
    return Kinds(kinds)


def prompt_hash(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the SHA-256 (hex) of the messages, under which a reply is recorded."""
    text = json.dumps([[message.get("role"), message.get("content")] for message in messages], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def count_tokens(text: str) -> int:
    """Return the number of words and punctuation marks: a predictable substitute for tokens."""
    return sum(1 for _ in _TOKEN.finditer(text))


def write(kinds: Kinds, messages: Sequence[Mapping[str, Any]], schema: Mapping[str, Any] | None) -> str:
    """Return the text of a reply to ``messages`` under the behaviours ``kinds``."""
    text = _written(kinds, messages, schema)
    return _of_length(text, int(kinds.number("length"))) if "length" in kinds else text


def cut(text: str, tokens: int) -> tuple[str, bool]:
    """Return the first ``tokens`` tokens of ``text``, and whether that is less than the whole."""
    ends = [match.end() for match in _TOKEN.finditer(text)]
    return (text, False) if len(ends) <= tokens else (text[: ends[tokens - 1]] if tokens > 0 else "", True)


def in_window(messages: Sequence[Mapping[str, Any]], tokens: int) -> list[Mapping[str, Any]]:
    """Return the last ``tokens`` tokens of the messages, as a server reads them that cuts long prompts silently."""
    kept: list[Mapping[str, Any]] = []
    for message in reversed(messages):
        text = str(message.get("content") or "")
        starts = [match.start() for match in _TOKEN.finditer(text)]
        if tokens <= 0:
            break
        kept.append(message if len(starts) <= tokens else {**message, "content": text[starts[-tokens] :]})
        tokens -= len(starts)
    return kept[::-1]


def fenced_passages(prompt: str) -> list[str]:
    """Return the texts of the fenced passages in a prompt."""
    return [text for _, text in _PASSAGE.findall(prompt)]


def _of_length(text: str, words: int) -> str:
    given = text.split() or ["word"]
    return " ".join((given * (words // len(given) + 1))[:words])


def _written(kinds: Kinds, messages: Sequence[Mapping[str, Any]], schema: Mapping[str, Any] | None) -> str:
    users = [str(message.get("content") or "") for message in messages if message.get("role") == "user"]
    prompt = users[-1] if users else ""
    if "empty" in kinds:
        return ""
    if "broken-json" in kinds:
        return '{"text": "this object never en'
    if "wrong-schema" in kinds:
        return '{"unexpected": [1, 2, 3]}'
    if schema is not None and "reader" in kinds and reader.reads(schema):
        return reader.reply(prompt, schema)
    if schema is not None and "numbers" in kinds:
        return json.dumps(_every(schema, prompt, int(kinds.number("numbers"))))
    if schema is not None:
        return json.dumps(instance(schema, text=_first_sentence(prompt)), ensure_ascii=False)
    if "refuse" in kinds:
        return NOT_ANSWERED
    if "cite" in kinds:
        return _cited(prompt)
    if "cite-wrong" in kinds:
        copied = _cited(prompt).partition("[")[0].strip()
        return f"{copied} [99] The moon landing of 1969 was filmed by Zebulon Quark in Atlantis. [1]"
    return prompt


def instance(schema: Mapping[str, Any], *, text: str = "text") -> Any:
    """Return a value that matches a JSON Schema (the subset of structured outputs). Strings are ``text``."""
    if "$ref" in schema or "$defs" in schema:
        schema = without_references(schema)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for choice in ("anyOf", "oneOf", "allOf"):
        if schema.get(choice):
            return instance(schema[choice][0], text=text)
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {name: instance(value, text=text) for name, value in schema.get("properties", {}).items()}
    if kind == "array":
        items = schema.get("items", {"type": "string"})
        return [instance(items, text=text) for _ in range(max(1, int(schema.get("minItems", 1))))]
    if kind in ("integer", "number"):
        return schema.get("minimum", 1)
    if kind == "boolean":
        return True
    return None if kind == "null" else text[: int(schema.get("maxLength", 200))]


def without_references(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a JSON Schema with each ``$ref`` resolved."""
    definitions = schema.get("$defs", {})

    def inline(value: Any) -> Any:
        if isinstance(value, Mapping):
            if "$ref" in value:
                return inline(definitions[str(value["$ref"]).rpartition("/")[2]])
            return {key: inline(held) for key, held in value.items() if key != "$defs"}
        return [inline(held) for held in value] if isinstance(value, list) else value

    resolved: Mapping[str, Any] = inline(schema)
    return resolved


def _passages(prompt: str) -> list[tuple[int, str]]:
    found = _PASSAGE.findall(prompt) or _NUMBERED_LINE.findall(prompt)
    return [(int(number), text) for number, text in found]


def _cited(prompt: str, *, most: int = 3) -> str:
    question = _QUESTION.search(prompt)
    asked = content_forms(question[1] if question else prompt)
    best: list[tuple[int, int, int, str]] = []
    for number, text in _passages(prompt):
        scored = [(len(asked & content_forms(sentence.text)), sentence) for sentence in split_sentences(text)]
        if scored:
            overlap, sentence = max(scored, key=lambda item: (item[0], -item[1].start))
            best.append((-overlap, number, sentence.start, " ".join(sentence.text.split())))
    return " ".join(f"{text} [{number}]" for _, number, _, text in sorted(best)[:most]) or NOT_ANSWERED


def _every(schema: Mapping[str, Any], prompt: str, step: int) -> dict[str, list[int]]:
    """Return an object whose lists have every ``step``-th number of the numbered sentences, from 1."""
    numbers = [int(number) for number in _SENTENCE_NUMBER.findall(prompt)]
    return dict.fromkeys(schema.get("properties", {}), numbers[::step])


def _first_sentence(prompt: str) -> str:
    passages = _passages(prompt)
    sentences = split_sentences(passages[0][1] if passages else prompt)
    return sentences[0].text if sentences else "text"
