"""Reads YAML front matter, with limits on its size and nesting."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import yaml

from agentic_rag_backend.domain.size_limits import MAX_KEYS, MAX_METADATA_BYTES
from agentic_rag_backend.errors import UnreadableDocument
from agentic_rag_backend.ingestion.accept.metadata_checks import keep_valid_fields

_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_KEY = re.compile(r"\s*(?:#[^\n]*\n\s*)*[\w\"'][^\n:]*:(?:\s|\Z)")


MAX_NESTING = 20


class _PlainLoader(yaml.SafeLoader):
    """Safe loader that refuses aliases and deep nesting. A few hundred bytes of aliases can expand to gigabytes."""

    nesting = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not allowed")
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise yaml.YAMLError(f"values are nested more than {MAX_NESTING} deep")
        node = super().compose_node(parent, index)
        self.nesting -= 1
        return node


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """Metadata above the text. ``title`` is separate because it is a field of every document."""

    title: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


def split_front_matter(text: str) -> tuple[FrontMatter, str]:
    """Return the front matter and the text after it. Without front matter, return an empty one and ``text``.

    Only JSON scalars and lists of them are kept. Dates become ISO 8601 strings.

    Raises:
        UnreadableDocument: the front matter is too long, has too many keys, or is not YAML.
    """
    opening = _OPENING.match(text)
    if opening is None or _KEY.match(text, opening.end()) is None:
        return FrontMatter(), text  # a line of dashes is also a thematic break
    closing = _CLOSING.search(text, opening.end(), opening.end() + MAX_METADATA_BYTES + 4)
    if closing is None:
        if _CLOSING.search(text, opening.end()) is None:
            return FrontMatter(), text
        raise UnreadableDocument(f"the front matter is longer than {MAX_METADATA_BYTES} characters")
    fields = _load_yaml(text[opening.end() : closing.start()])
    if len(fields) > MAX_KEYS:
        raise UnreadableDocument(f"the front matter has {len(fields)} keys; the limit is {MAX_KEYS}")
    title = fields.get("title")
    has_title = isinstance(title, (str, int, float, date)) and str(title).strip()
    return FrontMatter(str(title).strip() if has_title else None, keep_valid_fields(fields)), text[closing.end() :]


def _load_yaml(source: str) -> Mapping[Any, Any]:
    try:
        fields = yaml.load(source, _PlainLoader)  # noqa: S506 - it is a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f" in line {mark.line + 2}" if mark else ""
        raise UnreadableDocument(f"the front matter is not valid YAML{line}: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UnreadableDocument(f"the front matter is not valid YAML: {error}") from None
    if not isinstance(fields, Mapping):
        raise UnreadableDocument("the front matter is not a mapping of keys to values")
    return fields
