"""Reads YAML front matter, with limits on its size and nesting. Values stay as they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from agentic_rag_backend.documents.metadata_checks import keep_valid_fields
from agentic_rag_backend.domain.size_limits import MAX_KEYS, MAX_METADATA_BYTES
from agentic_rag_backend.errors import UnreadableDocument

_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_KEY = re.compile(r"(?:[ \t]*#[^\n]*\n)*[\w\"'][^\n:]*:(?:\s|\Z)")
"""The first line of front matter. After an empty line, the dashes are a thematic break."""
_FIELD = re.compile(r"^[^\s#\-\]}].*(?:\n(?![^\s#\-\]}]).*)*", re.MULTILINE)
"""A key that is not indented, with the lines of its value."""
MAX_NESTING = 20
NAMED_LINES = 5
"""Wrong lines that a warning names."""


class _PlainLoader(yaml.SafeLoader):
    """Safe loader of numbers that are written like JSON's, ``true``, ``false`` and ``null``; other scalars are strings.

    Versions (1.10), numbers with zeros in front (007) and words (yes) would be falsified. It refuses aliases, since a few hundred
    bytes of them can expand to gigabytes, and deep nesting.
    """

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


_PlainLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _beginnings in (
    ("bool", r"(?:true|false)\Z", "tf"),
    ("null", r"(?:null|~|)\Z", ["n", "~", ""]),
    ("int", r"-?(?:0|[1-9]\d{0,17})\Z", "-0123456789"),
    ("float", r"-?(?:0|[1-9]\d{0,7})?\.\d{0,6}[1-9]\Z", "-.0123456789"),
):
    _PlainLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_beginnings))


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """Metadata above the text. ``title`` is separate because it is a field of every document."""

    title: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def split_front_matter(text: str) -> tuple[FrontMatter, str]:
    """Return the front matter and the text after it. Without front matter, return an empty one and ``text``.

    Nested keys are joined by dots, such as ``author.name``. Lines that are not YAML are left out with a warning, unless they are
    most of the lines: then they are text.

    Raises:
        UnreadableDocument: the front matter is too long.
    """
    opening = _OPENING.match(text)
    if opening is None or _KEY.match(text, opening.end()) is None:
        return FrontMatter(), text  # a line of dashes is also a thematic break
    closing = _CLOSING.search(text, opening.end(), opening.end() + MAX_METADATA_BYTES + 4)
    if closing is None:
        if _CLOSING.search(text, opening.end()) is None:
            return FrontMatter(), text
        raise UnreadableDocument(f"the front matter is longer than {MAX_METADATA_BYTES} characters")
    source = text[opening.end() : closing.start()]
    warnings: list[str] = []
    fields = _load_yaml(source)
    if fields is None:
        fields, wrong_lines = _load_fields(source)
        if 2 * len(wrong_lines) > source.count("\n") or not fields:
            return FrontMatter(warnings=("the lines between the first two rules are not YAML and are read as text",)), text
        numbers = ", ".join(map(str, wrong_lines[:NAMED_LINES])) + (", …" if len(wrong_lines) > NAMED_LINES else "")
        warnings.append(f"not in the metadata: lines of the front matter that are not YAML ({len(wrong_lines)}: {numbers})")
    if not any(str(key).split() == [str(key)] for key in fields):
        return FrontMatter(), text  # sentences with a colon between two rules
    flat = dict(_flatten_value("", fields))
    if len(flat) > MAX_KEYS:
        warnings.append(f"the front matter has {len(flat)} keys; the first {MAX_KEYS} are read")
    title = str(flat.get("title") or "").strip() if not isinstance(flat.get("title"), list) else ""
    valid_fields = keep_valid_fields(dict(list(flat.items())[:MAX_KEYS]))
    return FrontMatter(title or None, valid_fields, tuple(warnings)), text[closing.end() :]


def _load_yaml(source: str) -> Mapping[Any, Any] | None:
    """Return the keys and values of YAML; None if it is not valid, or no mapping."""
    try:
        fields = yaml.load(source, _PlainLoader)  # noqa: S506 - it is a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return fields if isinstance(fields, Mapping) else None


def _load_fields(source: str) -> tuple[dict[Any, Any], list[int]]:
    """Return the fields that are valid by themselves, and the numbers of the other lines. The opening rule is line 1."""
    fields: dict[Any, Any] = {}
    wrong_lines: list[int] = []
    for match in _FIELD.finditer(source):
        loaded = _load_yaml(match[0])
        if loaded is not None:
            fields.update(loaded)
        else:
            start_line = source.count("\n", 0, match.start()) + 2
            wrong_lines += range(start_line, start_line + match[0].rstrip("\n").count("\n") + 1)
    return fields, wrong_lines


def _flatten_value(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the scalars of a value, and the lists of them, with the keys that lead there. Mappings in a list become lists."""
    if isinstance(value, Mapping):
        for key, member in value.items():
            yield from _flatten_value(f"{name}.{key}" if name else str(key), member)
    elif isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        columns: dict[str, list[Any]] = {}
        for item in value:
            for key, member in _flatten_value(name, item):
                columns.setdefault(key, []).extend(member if isinstance(member, list) else [member])
        yield from columns.items()
    else:
        yield name, value
