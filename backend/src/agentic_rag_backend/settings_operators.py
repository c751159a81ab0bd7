"""Keys of several operators, from OPERATOR_KEYS or from a file. Messages name the position of an entry, never its text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from agentic_rag_backend.domain.tenant import ONLY_OPERATOR

MIN_KEY_CHARACTERS = 32
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}\Z")
_MAX_FILE_BYTES = 1024 * 1024


def parse_pairs(text: str, setting: str) -> dict[str, str]:
    """Return the keys by name in ``NAME=KEY`` pairs that commas separate.

    Raises:
        ValueError: an entry is not such a pair, or a name or a key occurs twice.
    """
    return _read_entries(filter(None, (part.strip() for part in text.split(","))), setting)


def read_pairs(path: Path, setting: str) -> dict[str, str]:
    """Return the keys by name in a file with one ``NAME=KEY`` pair a line. Lines that begin with ``#`` are comments.

    Raises:
        ValueError: the file cannot be read, or see `parse_pairs`.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{setting}: {path} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from None
    if len(content) > _MAX_FILE_BYTES:
        raise ValueError(f"{setting}: {path} must have at most {_MAX_FILE_BYTES} bytes")
    lines = (line.strip() for line in text.splitlines())
    return _read_entries((line for line in lines if line and not line.startswith("#")), setting)


def join_operators(*sources: Mapping[str, str]) -> dict[str, str]:
    """Return the keys by name of all sources.

    Raises:
        ValueError: two operators have one name or one key.
    """
    operators: dict[str, str] = {}
    for source in sources:
        for name, key in source.items():
            if name in operators:
                raise ValueError(
                    f"OPERATOR_KEY, OPERATOR_KEYS and OPERATOR_KEYS_FILE must name each operator once; got {name!r} twice"
                )
            namesake = next((other for other, other_key in operators.items() if other_key == key), None)
            if namesake is not None:
                raise ValueError(f"operators must have different keys; {namesake!r} and {name!r} have the same")
            operators[name] = key
    return operators


def _read_entries(entries: Iterable[str], setting: str) -> dict[str, str]:
    operators: dict[str, str] = {}
    for number, entry in enumerate(entries, 1):
        name, separator, key = (part.strip() for part in entry.partition("="))
        if not separator or not _NAME.match(name) or name == ONLY_OPERATOR:
            raise ValueError(
                f"{setting}: entry {number} must be NAME=KEY with a name of 1 to 64 lower-case letters, digits, '.', '_' and '-' "
                f"other than {ONLY_OPERATOR!r}, which is the name of OPERATOR_KEY"
            )
        if len(key) < MIN_KEY_CHARACTERS:
            raise ValueError(
                f"{setting}: the key of {name!r} must have at least {MIN_KEY_CHARACTERS} characters; it has {len(key)}"
            )
        operators = join_operators(operators, {name: key})
    return operators
