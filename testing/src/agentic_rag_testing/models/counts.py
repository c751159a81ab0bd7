"""Counters of a scripted model server: calls and tokens in total, per model, per prompt and per text."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar

MAX_COUNTED = 200_000
"""Maximum number of prompts, and of texts, with separate counts (about 60 MB each). Beyond it, the least recent are dropped."""
MAX_MODELS = 10_000
V = TypeVar("V")


@dataclass(slots=True)
class Counts:
    """The calls of one model, or of all models. ``failures`` counts the scripted faults by kind."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    failures: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class PromptCounts:
    """The answered calls of one prompt, and their tokens."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(slots=True)
class Stats:
    """Counts since the start or the last reset.

    ``prompts`` is by prompt hash (`behaviour.prompt_hash`). ``texts`` and ``passages`` are by `text_hash`: how often each text
    was
    embedded, and how often each fenced passage was in a prompt. These three count answered calls only, without faults and calls
    whose sender disconnected. ``most_at_once`` is the highest concurrency.
    """

    total: Counts = field(default_factory=Counts)
    models: dict[str, Counts] = field(default_factory=dict)
    prompts: dict[str, PromptCounts] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    passages: dict[str, int] = field(default_factory=dict)
    embedded_texts: int = 0
    forgotten: int = 0
    """Prompts and texts whose separate counts were dropped because of `MAX_COUNTED`."""
    in_flight: int = 0
    most_at_once: int = 0
    cancelled: int = 0
    """Requests whose sender disconnected before the end."""

    def paid_again(self) -> dict[str, int]:
        """Return, by hash, the texts that were embedded more than once and the passages that were read more than once."""
        return {digest: count for counts in (self.texts, self.passages) for digest, count in counts.items() if count > 1}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Stats:
        """Return the counts from a response of ``GET /_stats``."""
        return cls(
            **{
                **value,
                "total": Counts(**value["total"]),
                "models": {name: Counts(**counts) for name, counts in value["models"].items()},
                "prompts": {digest: PromptCounts(**counts) for digest, counts in value["prompts"].items()},
            }
        )


def text_hash(text: str) -> str:
    """Return the SHA-256 (hex) under which a text is counted, without white space at its ends."""
    return hashlib.sha256(text.strip().encode(errors="surrogatepass")).hexdigest()


class _BoundedMapping(Generic[V]):
    """A mapping that drops the least recently used entry when it exceeds ``most``."""

    def __init__(self, make: Callable[[], V], most: int) -> None:
        self.held: OrderedDict[str, V] = OrderedDict()
        self.forgotten = 0
        self._make = make
        self._most = most

    def meet(self, key: str) -> V:
        if key not in self.held:
            self.held[key] = self._make()
            if len(self.held) > self._most:
                self.held.popitem(last=False)
                self.forgotten += 1
        self.held.move_to_end(key)
        return self.held[key]


class Ledger:
    """Keeps the counts. Thread-safe.

    Args:
        most: maximum number of prompts, texts and passages with separate counts.
    """

    def __init__(self, most: int = MAX_COUNTED) -> None:
        self._lock = threading.Lock()
        self._most = most
        self._begin(in_flight=0)

    def _begin(self, *, in_flight: int) -> None:
        self._plain = Stats(in_flight=in_flight)
        self._models = _BoundedMapping(Counts, MAX_MODELS)
        self._prompts = _BoundedMapping(PromptCounts, self._most)
        self._texts = _BoundedMapping(lambda: [0], self._most)
        self._passages = _BoundedMapping(lambda: [0], self._most)

    def reset(self) -> None:
        """Reset all counts except the requests in progress."""
        with self._lock:
            self._begin(in_flight=self._plain.in_flight)

    def begin(self, model: str) -> int:
        """Record a request. Return the number of earlier requests to this model."""
        with self._lock:
            plain = self._plain
            plain.in_flight += 1
            plain.most_at_once = max(plain.most_at_once, plain.in_flight)
            plain.total.calls += 1
            counts = self._models.meet(model)
            counts.calls += 1
            return counts.calls - 1

    def end(self) -> None:
        """Record the end of a request."""
        with self._lock:
            self._plain.in_flight -= 1

    def cancelled(self) -> None:
        """Record a disconnected sender."""
        with self._lock:
            self._plain.cancelled += 1

    def failed(self, model: str, kind: str) -> None:
        """Record a scripted fault."""
        with self._lock:
            for counts in (self._plain.total, self._models.meet(model)):
                counts.failures[kind] = counts.failures.get(kind, 0) + 1

    def chatted(self, model: str, prompt: str, tokens: tuple[int, int], passages: Iterable[str]) -> None:
        """Record an answered prompt (by hash), its input and output tokens, and its passages (texts)."""
        with self._lock:
            for counts in (self._plain.total, self._models.meet(model), self._answered(prompt)):
                counts.prompt_tokens += tokens[0]
                counts.completion_tokens += tokens[1]
            for passage in passages:
                self._passages.meet(text_hash(passage))[0] += 1

    def embedded(self, model: str, texts: Iterable[str], tokens: int) -> None:
        """Record embedded texts."""
        with self._lock:
            for counts in (self._plain.total, self._models.meet(model)):
                counts.prompt_tokens += tokens
            for text in texts:
                self._plain.embedded_texts += 1
                self._texts.meet(text_hash(text))[0] += 1

    def stats(self) -> Stats:
        """Return a copy of the counts."""
        with self._lock:
            bounded = (self._prompts, self._texts, self._passages)
            return Stats.from_json(
                {
                    **asdict(self._plain),
                    "models": {name: asdict(counts) for name, counts in self._models.held.items()},
                    "prompts": {digest: asdict(counts) for digest, counts in self._prompts.held.items()},
                    "texts": {digest: count for digest, (count,) in self._texts.held.items()},
                    "passages": {digest: count for digest, (count,) in self._passages.held.items()},
                    "forgotten": sum(each.forgotten for each in bounded),
                }
            )

    def model_names(self) -> list[str]:
        """Return the names of the called models."""
        with self._lock:
            return list(self._models.held)

    def _answered(self, prompt: str) -> PromptCounts:
        counts = self._prompts.meet(prompt)
        counts.calls += 1
        return counts
