"""Turns the reply of a model into text or an object. Every reply passes here.

Models behave differently: they write their reasoning, they write text around an object, and they forget brackets. What can be
mended without doubt is mended here, without a second call, and named in `ReadReply.mended`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentic_rag_backend.language.prompt_marks import StreamRestorer
from agentic_rag_backend.models.llm.base import ModelDelta
from agentic_rag_backend.models.llm.replies.lenient_json import AROUND, NotJson, ReadValue, read_values
from agentic_rag_backend.models.llm.replies.reasoning import (
    LoopDetector,
    ReasoningFilter,
    VisibleText,
    without_loop,
    without_reasoning,
)
from agentic_rag_backend.models.llm.replies.structured import fit_schema, unwrap_object

REASONING = "removed reasoning"
LOOP = "stopped a repetition"
WRAPPER = "removed a wrapper"
ANOTHER_FIELD = "read another field of the reply"


@dataclass(frozen=True, slots=True)
class RawReply:
    """The fields of a reply that may have text.

    Args:
        reasoning: what the server separated as reasoning.
        other: text of a tool call or of a refusal.
        ending: why the reply ended, such as "stop" or "length".
    """

    content: str
    reasoning: str = ""
    other: str = ""
    ending: str | None = None

    @property
    def cut(self) -> bool:
        """Whether the reply reached its limit of tokens."""
        return self.ending in ("length", "max_tokens")


@dataclass(frozen=True, slots=True)
class ReadReply:
    """The text of a reply without reasoning.

    Args:
        cut: whether the reply ends before its end: at the limit of tokens, or where it began to repeat itself.
        reasoned: whether the model wrote reasoning.
        unopened: whether the reasoning had a closing mark only.
        mended: what was changed.
    """

    text: str
    cut: bool = False
    reasoned: bool = False
    unopened: bool = False
    mended: tuple[str, ...] = ()

    @property
    def spent_on_reasoning(self) -> bool:
        """Whether the model wrote reasoning only, or reached the limit of tokens before the reply itself began."""
        return (self.cut or self.reasoned) and not self.text.strip() and LOOP not in self.mended


@dataclass(frozen=True, slots=True)
class ReadObject:
    """The object of a structured reply. ``cut``: whether only whole items of a list that was cut off are left."""

    value: dict[str, Any]
    cut: bool = False
    mended: tuple[str, ...] = ()


def read_text(raw: RawReply) -> ReadReply:
    """Return the text of a reply."""
    text, filtered = without_reasoning(raw.content)
    text, looped = without_loop(text)
    mended = ((REASONING,) if filtered.reasoned else ()) + ((LOOP,) if looped else ())
    if not text.strip() and raw.other.strip():
        text, mended = raw.other, (*mended, ANOTHER_FIELD)
    return ReadReply(
        text,
        cut=raw.cut or looped,
        reasoned=filtered.reasoned or bool(raw.reasoning.strip()),
        unopened=filtered.unopened,
        mended=mended,
    )


def read_structured_reply(
    raw: RawReply, schema: Mapping[str, Any], *, partial: bool = False
) -> tuple[ReadReply, ReadObject | str]:
    """Return the text of a reply and the object in it, or the error in it. The error is for the model."""
    reading = read_text(raw)
    if LOOP in reading.mended and not raw.cut:
        # Equal items of an object that is whole are no loop.
        text, _ = without_reasoning(raw.content)
        parsed = _object_or_error(text, schema)
        if isinstance(parsed, ReadObject) and not _has_loop(parsed.value):
            mended = tuple(kind for kind in reading.mended if kind != LOOP)
            return replace(reading, text=text, cut=False, mended=mended), parsed
    if not reading.text.strip() and raw.reasoning.strip() and not raw.cut:
        # Some servers put an object that a grammar enforces into the field for reasoning.
        parsed = _object_or_error(raw.reasoning, schema)
        if isinstance(parsed, ReadObject):
            return reading, ReadObject(parsed.value, mended=(*parsed.mended, ANOTHER_FIELD))
    return reading, _object_or_error(reading.text, schema, partial=partial, cut=reading.cut)


def _has_loop(value: Any) -> bool:
    """Return whether a text of a JSON value repeats itself."""
    if isinstance(value, dict | list):
        return any(map(_has_loop, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) and without_loop(value)[1]


def _object_or_error(text: str, schema: Mapping[str, Any], *, partial: bool = False, cut: bool = False) -> ReadObject | str:
    try:
        return read_object(text, schema, partial=partial, cut=cut)
    except ValueError as error:
        return str(error)


def read_object(text: str, schema: Mapping[str, Any], *, partial: bool = False, cut: bool = False) -> ReadObject:
    """Return the first object in ``text`` that fits ``schema``.

    Args:
        partial: whether an object that ends in the middle of a list is used up to the last whole item of the list.
        cut: whether the text was cut off, so that its last value may be incomplete.

    Raises:
        ValueError: there is no such object. The message has place and error, for the model.
    """
    try:
        return _fit_object(json.loads(text, parse_constant=_reject_constant_name), schema)
    except (ValueError, RecursionError):
        pass
    errors: list[ValueError] = []
    for candidate in read_values(text, cut=cut or partial):
        try:
            return _read_candidate(candidate, schema, text, partial=partial)
        except ValueError as error:
            errors.append(error)
    if not errors:
        raise ValueError("not JSON: the reply has no object")
    # An error in an object that could be read helps the model more than an error in a word in brackets.
    raise next((error for error in errors if not isinstance(error, NotJson)), errors[0])


def _read_candidate(candidate: ReadValue | NotJson, schema: Mapping[str, Any], text: str, *, partial: bool) -> ReadObject:
    if isinstance(candidate, NotJson):
        raise candidate
    if candidate.cut and not partial:
        raise NotJson("the object has no end", candidate.end)
    if candidate.cut and candidate.value is not None and not _has_items(candidate.value):
        raise NotJson("the object has no whole item", candidate.end)
    around = text[: candidate.start].strip() or text[candidate.end :].strip()
    if around and isinstance(candidate.value, list) and not all(isinstance(item, dict) for item in candidate.value or [0]):
        raise NotJson("a list is not the object", candidate.start)  # "[1]" in prose is a citation
    mended = (*((AROUND,) if around else ()), *candidate.mended)
    candidate_object = _fit_object(candidate.value, schema, lists=candidate.cut)
    return ReadObject(candidate_object.value, candidate.cut, (*mended, *candidate_object.mended))


def _has_items(value: Any) -> bool:
    return isinstance(value, dict) and any(isinstance(item, list) and item for item in value.values())


def _fit_object(value: Any, schema: Mapping[str, Any], *, lists: bool = False) -> ReadObject:
    """Return a value that fits the schema. ``lists``: whether missing lists are empty."""
    inner = unwrap_object(value, schema)
    if not isinstance(inner, dict):
        raise ValueError(f"the reply must be a JSON object, not {type(inner).__name__}")
    if lists:
        properties = schema.get("properties", {})
        inner = {**{name: [] for name, kind in properties.items() if kind.get("type") == "array"}, **inner}
    fitted, mended = fit_schema(inner, schema)
    return ReadObject(fitted, mended=(*((WRAPPER,) if inner is not value and not lists else ()), *mended))


def _reject_constant_name(constant: str) -> Any:
    raise ValueError(f"not JSON: {constant}")


class ReplyStream:
    """Reads a reply that arrives in pieces, and yields what users may see.

    Args:
        hold: whether the reply waits until it is certain that it is not reasoning: see `ReasoningFilter`.
    """

    def __init__(self, *, hold: bool) -> None:
        self._filter = ReasoningFilter(hold=hold)
        self._loops, self._restorer = LoopDetector(), StreamRestorer()
        self._thought = False
        self._shown: list[str] = []
        self.size = 0
        """Characters of the whole reply, reasoning included."""

    @property
    def over(self) -> bool:
        """Whether the rest of the stream has no use: the reply ended, or it repeats itself."""
        return self._filter.ended or self._loops.start is not None

    def feed_piece(self, piece: RawReply) -> Iterator[ModelDelta]:
        """Yield the visible text of a piece."""
        self.size += len(piece.content) + len(piece.reasoning)
        self._thought = self._thought or bool(piece.reasoning)
        yield from self._make_deltas(self._filter.feed_piece(piece.content or piece.other))
        if self._filter.hold and (self._thought or self._filter.opened):
            yield from self._make_deltas(self._filter.release_text())  # the reasoning is known, so that no other mark will follow

    def finish_reply(self) -> Iterator[ModelDelta]:
        """Yield the rest."""
        yield from self._make_deltas(self._filter.finish_reply())
        if remainder := self._restorer.finish_text():
            self._shown.append(remainder)
            yield ModelDelta(remainder)

    def read_reply(self, ending: str | None) -> ReadReply:
        """Return the whole reply after its end."""
        looped = self._loops.start is not None
        return ReadReply(
            "".join(self._shown),
            cut=looped or RawReply("", ending=ending).cut,
            reasoned=self._thought or self._filter.reasoned,
            unopened=self._filter.unopened,
            mended=(*((REASONING,) if self._filter.reasoned else ()), *((LOOP,) if looped else ())),
        )

    def _make_deltas(self, pieces: Iterator[VisibleText]) -> Iterator[ModelDelta]:
        for piece in pieces:
            if piece.restart:
                self._loops, self._restorer = LoopDetector(), StreamRestorer()
                if self._shown:
                    self._shown.clear()
                    yield ModelDelta("", restart=True)
            elif self._loops.start is None:
                self._loops.feed_piece(piece.text)
                if restored := self._restorer.feed_piece(piece.text):
                    self._shown.append(restored)
                    yield ModelDelta(restored)
