"""Replays recorded replies of a real model: the extractions from each passage of a corpus.

A folder of recordings holds ``corpus.jsonl`` (id, title, text) and ``llm_triples.jsonl`` (id, entities, triples). The
passage is found in the prompt by its words, for every form of fence and every chunking.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from agentic_rag_testing.models.behaviour import instance, without_references

_WORD = re.compile(r"\w+")
_RUN_WORDS = 6
"""Number of words in a run. One common run is unlikely by chance, and two identify the passage."""
_ENTITY_LIST = re.compile(r"entit|node|mention", re.IGNORECASE)
_TRIPLE_LIST = re.compile(r"tripl|relation|edge|fact", re.IGNORECASE)
_SUBJECT = re.compile(r"subject|source|head|from|\bs\b", re.IGNORECASE)
_OBJECT = re.compile(r"object|target|tail|\bto\b|\bo\b", re.IGNORECASE)
_PREDICATE = re.compile(r"predicate|relation|type|label|verb|\bp\b", re.IGNORECASE)
_STATEMENT = re.compile(r"fact|statement|description|sentence|evidence|quote", re.IGNORECASE)
_NAME = re.compile(r"name|text|entity\Z|title|label", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Extracted:
    """The extraction from one passage, or from the part of it that a prompt contains."""

    passage_id: str
    entities: tuple[str, ...]
    triples: tuple[tuple[str, str, str], ...]


class Recordings:
    """The passages of one corpus with the extraction from each."""

    def __init__(self, passages: Mapping[str, str], extracted: Mapping[str, Extracted]) -> None:
        self._extracted = dict(extracted)
        self._words = {id: _words(text) for id, text in passages.items() if id in extracted}
        self._runs: dict[tuple[str, ...], list[str]] = {}
        for id, words in self._words.items():
            for start in range(0, max(1, len(words) - _RUN_WORDS + 1), _RUN_WORDS):
                self._runs.setdefault(tuple(words[start : start + _RUN_WORDS]), []).append(id)

    def find(self, prompt: str) -> list[Extracted]:
        """Return the extractions from the passages in ``prompt``, in the order of the prompt.

        For a partial passage, only entities and triples with names that occur in the prompt.
        """
        words = _words(prompt)
        starts: dict[str, set[int]] = {}
        for start in range(len(words)):
            for id in self._runs.get(tuple(words[start : start + _RUN_WORDS]), ()):
                starts.setdefault(id, set()).add(start)
        whole: set[str] = set()
        accounted: set[int] = set()
        for id, found_at in starts.items():
            for start in found_at:
                end = start + len(self._words[id])
                if words[start:end] == self._words[id]:
                    whole.add(id)
                    accounted.update(range(start, end))
        padded = f" {' '.join(words)} "
        found = []
        for id, found_at in starts.items():
            if id in whole:
                found.append(self._extracted[id])
            elif len(found_at - accounted) > 1:  # not only words that occur in a passage there
                found.append(_within(self._extracted[id], padded))
        return found

    def reply(self, prompt: str, schema: Mapping[str, Any] | None) -> str | None:
        """Return the extraction as JSON text for ``schema``. None if ``prompt`` contains no passage.

        Without a schema: ``{"entities": [name, …], "triples": [[subject, predicate, object], …]}``.
        """
        found = self.find(prompt)
        if not found:
            return None
        entities = list(dict.fromkeys(name for each in found for name in each.entities))
        triples = list(dict.fromkeys(triple for each in found for triple in each.triples))
        if schema is None:
            return json.dumps({"entities": entities, "triples": triples}, ensure_ascii=False)
        return json.dumps(_filled(schema, entities, triples), ensure_ascii=False)


@lru_cache(maxsize=4)
def load_recordings(folder: Path) -> Recordings:
    """Read the recordings in ``folder``.

    Raises:
        FileNotFoundError: the folder has no recordings.
    """
    passages = {str(row["id"]): str(row["text"]) for row in _rows(folder / "corpus.jsonl")}
    extracted = {
        str(row["id"]): Extracted(
            str(row["id"]),
            tuple(row["entities"]),
            tuple((str(triple[0]), str(triple[1]), str(triple[2])) for triple in row["triples"] if len(triple) == 3),
        )
        for row in _rows(folder / "llm_triples.jsonl")
    }
    return Recordings(passages, extracted)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()]


def _words(text: str) -> list[str]:
    return [match[0].casefold() for match in _WORD.finditer(text)]


def _within(whole: Extracted, padded: str) -> Extracted:
    def occurs(name: str) -> bool:
        return f" {' '.join(_words(name))} " in padded

    return Extracted(
        whole.passage_id,
        tuple(name for name in whole.entities if occurs(name)),
        tuple(triple for triple in whole.triples if occurs(triple[0]) and occurs(triple[2])),
    )


def _filled(schema: Mapping[str, Any], entities: Sequence[str], triples: Sequence[tuple[str, str, str]]) -> Any:
    """Return a value that matches ``schema``, with its lists of entities and triples filled, under any field names."""
    schema = without_references(schema)
    value = instance(schema)
    for name, described in schema.get("properties", {}).items():
        if described.get("type") != "array":
            continue
        items, most = described.get("items", {"type": "string"}), int(described.get("maxItems", 1_000))
        if _TRIPLE_LIST.search(name):
            value[name] = [_triple(items, triple) for triple in triples[:most]]
        elif _ENTITY_LIST.search(name):
            value[name] = [_entity(items, entity) for entity in entities[:most]]
    return value


def _triple(items: Mapping[str, Any], triple: tuple[str, str, str]) -> Any:
    subject, predicate, target = triple
    if items.get("type") == "array":
        return list(triple)
    if items.get("type") != "object":
        return " ".join(triple)
    value = instance(items)
    for name, described in items.get("properties", {}).items():
        if described.get("type", "string") != "string" or described.get("enum"):
            continue
        if _STATEMENT.search(name):
            value[name] = " ".join(triple)
        elif _SUBJECT.search(name):
            value[name] = subject
        elif _OBJECT.search(name):
            value[name] = target
        elif _PREDICATE.search(name):
            value[name] = predicate
    return value


def _entity(items: Mapping[str, Any], entity: str) -> Any:
    if items.get("type") != "object":
        return entity
    value = instance(items)
    for name, described in items.get("properties", {}).items():
        if described.get("type", "string") == "string" and not described.get("enum") and _NAME.search(name):
            value[name] = entity
    return value
