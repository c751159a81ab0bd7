"""The passages that are kept for a name or a keyword."""

from __future__ import annotations

from collections.abc import Iterable

from agentic_rag_backend.domain.graph import Support

MAX_PASSAGES = 8
"""Passages kept for one label, so that it survives the deletion of seven documents. Readers usually need only the first."""


def spread(supports: Iterable[Support], *, most: int = MAX_PASSAGES) -> tuple[Support, ...]:
    """Return up to ``most`` passages, the first of each document before the second of any."""
    distinct = list(dict.fromkeys(supports))
    first_of_document = {support.document_id: support for support in reversed(distinct)}
    leading = [support for support in distinct if first_of_document[support.document_id] is support]
    return tuple(dict.fromkeys([*leading, *distinct]))[:most]
