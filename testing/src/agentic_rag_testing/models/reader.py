"""Extracts names and facts from plain sentences, as a language model would: the behaviour ``reader`` of a scripted model.

It answers our own prompt of extraction and those of Graphiti. A name is a run of capitalised words. A fact is a sentence with two
names; the words between them are the relation. "since 2019", "in 2021" and "until 2020" are its times. A fact contradicts another
one with the same first name and relation, and another second name.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from agentic_rag_backend.language.sentences import split_sentences

_NAME = re.compile(r"[A-Z][\w’'-]*+(?: [A-Z][\w’'-]*+)*+")
_NO_NAMES = frozenset(
    {"a", "an", "and", "at", "by", "for", "from", "he", "her", "his", "in", "it", "its", "of", "on", "she", "since", "the"}
    | {"their", "they", "this", "until", "we", "with"}
)
_TEXTS = ("passage", "TEXT", "CURRENT_MESSAGE", "CURRENT MESSAGE")
_BEGIN = re.compile(r"\b(?:[Ss]ince|[Ii]n|[Ff]rom) (\d{4}(?:-\d\d(?:-\d\d)?)?)")
_END = re.compile(r"\b[Uu]ntil (\d{4}(?:-\d\d(?:-\d\d)?)?)")
_WORD = re.compile(r"[a-z]+")
_TYPE = re.compile(r"'entity_type_id': (\d+), 'entity_type_name': '(\w+)'")
_ORGANISATION = re.compile(r"\b(?:Ltd|Inc|Labs|Works|Institute|University|Group)\b")
_RELATION_WORDS = 4


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence that joins two names."""

    source: str
    relation: str
    target: str
    text: str

    @property
    def triple(self) -> tuple[str, str, str]:
        """Both names and the relation."""
        return self.source, self.relation, self.target

    @property
    def begin(self) -> str | None:
        """Its first day."""
        return _day(_BEGIN.search(self.text))

    @property
    def end(self) -> str | None:
        """The day on which it no longer holds."""
        return _day(_END.search(self.text))

    def contradicts(self, other: Fact) -> bool:
        """Return whether only the target differs."""
        return (self.source, self.relation) == (other.source, other.relation) and self.target != other.target


def reads(schema: Mapping[str, Any]) -> bool:
    """Return whether there is an answer for the schema."""
    return _answer(schema) is not None


def reply(prompt: str, schema: Mapping[str, Any]) -> str:
    """Return the answer to a prompt as JSON."""
    answer = _answer(schema)
    return json.dumps(answer(prompt) if answer is not None else {}, ensure_ascii=False)


def _answer(schema: Mapping[str, Any]) -> Callable[[str], Mapping[str, Any]] | None:
    fields = frozenset(schema.get("properties", ()))
    return next((answer for name, answer in _ANSWERS.items() if name in fields), None)


# --- texts


def _block(prompt: str, *names: str) -> str:
    """Return the content of the last block with one of these tags that the prompt has."""
    for name in names:
        start = max(prompt.rfind(f"<{name}>"), prompt.rfind(f"<{name} "))
        end = prompt.find(f"</{name}>", start)
        if 0 <= start < end:
            return prompt[prompt.index(">", start) + 1 : end].strip()
    return ""


def _names(text: str) -> list[str]:
    found = []
    for match in _NAME.finditer(text):
        words = match[0].split()
        while words and words[0].lower() in _NO_NAMES:
            del words[0]
        if words:
            found.append(" ".join(words).removesuffix("'s").removesuffix("’s"))
    return list(dict.fromkeys(found))


def _facts(text: str) -> list[Fact]:
    """Return the facts of a text, one between each name of a sentence and the next."""
    found = []
    for sentence in split_sentences(text):
        names = _names(sentence.text)
        for source, target in pairwise(names):
            between = sentence.text.partition(source)[2].partition(target)[0]
            words = [word for word in _WORD.findall(between.lower()) if word not in ("since", "until")]
            found.append(Fact(source, "_".join(words[:_RELATION_WORDS]) or "related", target, " ".join(sentence.text.split())))
    return found


def _day(match: re.Match[str] | None) -> str | None:
    return None if match is None else f"{match[1]}{'-01-01'[len(match[1]) - 4 :]}T00:00:00Z"


# --- answers


def _own(prompt: str) -> Mapping[str, Any]:
    text = _block(prompt, *_TEXTS)
    return {
        "entities": [{"name": name, "type": _type(name).lower(), "aliases": []} for name in _names(text)],
        "relationships": [
            {
                "source": fact.source,
                "relation": fact.relation,
                "target": fact.target,
                "negated": False,
                "valid_at": (fact.begin or "")[:10],
                "invalid_at": (fact.end or "")[:10],
            }
            for fact in _facts(text)
        ],
    }


def _type(name: str) -> str:
    return "Organisation" if _ORGANISATION.search(name) else "Person" if " " in name else "Other"


def _nodes(prompt: str) -> Mapping[str, Any]:
    types = {name: int(number) for number, name in _TYPE.findall(prompt)}
    names = _names(_block(prompt, *_TEXTS))
    return {
        "extracted_entities": [
            {"name": name, "entity_type_id": types.get(_type(name), 0), "episode_indices": [0]} for name in names
        ]
    }


def _edges(prompt: str) -> Mapping[str, Any]:
    return {
        "edges": [
            {
                "source_entity_name": fact.source,
                "target_entity_name": fact.target,
                "relation_type": fact.relation.upper(),
                "fact": fact.text,
                "valid_at": fact.begin,
                "invalid_at": fact.end,
                "episode_indices": [0],
            }
            for fact in _facts(_block(prompt, *_TEXTS))
        ]
    }


def _resolutions(prompt: str) -> Mapping[str, Any]:
    candidates = json.loads(_block(prompt, "EXISTING ENTITIES") or "[]")
    known = {str(each["name"]).lower(): each["candidate_id"] for each in reversed(candidates)}
    return {
        "entity_resolutions": [
            {"id": each["id"], "name": each["name"], "duplicate_candidate_id": known.get(str(each["name"]).lower(), -1)}
            for each in json.loads(_block(prompt, "ENTITIES") or "[]")
        ]
    }


def _resolved_fact(prompt: str) -> Mapping[str, Any]:
    new = _facts(_block(prompt, "NEW FACT"))
    known, others = (_listed(_block(prompt, name)) for name in ("EXISTING FACTS", "FACT INVALIDATION CANDIDATES"))

    def matching(facts: Mapping[int, str], same: Callable[[Fact, Fact], bool]) -> list[int]:
        return [number for number, text in facts.items() if any(same(one, other) for one in new for other in _facts(text))]

    return {
        "duplicate_facts": matching(known, lambda one, other: one.triple == other.triple),
        "contradicted_facts": matching({**known, **others}, Fact.contradicts),
    }


def _listed(block: str) -> dict[int, str]:
    rows: Sequence[Mapping[str, Any]] = ast.literal_eval(block or "[]")
    return {int(row["idx"]): str(row["fact"]) for row in rows}


def _times(prompt: str) -> Mapping[str, Any]:
    facts = _facts(_block(prompt, "FACT"))
    return {"valid_at": facts[0].begin if facts else None, "invalid_at": facts[0].end if facts else None}


_ANSWERS: Mapping[str, Callable[[str], Mapping[str, Any]]] = {
    "relationships": _own,
    "extracted_entities": _nodes,
    "edges": _edges,
    "entity_resolutions": _resolutions,
    "contradicted_facts": _resolved_fact,
    "valid_at": _times,
    "summaries": lambda prompt: {"summaries": []},
}
