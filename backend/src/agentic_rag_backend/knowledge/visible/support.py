"""The rule of visibility: knowledge is shown while a visible document version supports it.

Code that reads many documents asks by ``versions``, the visible version of each document. Code that reads a few passages asks by
``passages``, the chunks that the catalogue returned for their ids. Both give the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import Support


def is_visible(versions: Mapping[str, int], document_id: str, version: int) -> bool:
    """Return whether this version of the document is the visible one."""
    return versions.get(document_id) == version


def supports_now(versions: Mapping[str, int], support: Support) -> bool:
    """Return whether the support belongs to a visible version."""
    return is_visible(versions, support.document_id, support.version)


def states_now(passages: Mapping[str, VisibleChunk], support: Support) -> bool:
    """Return whether the support's chunk is visible in the support's version."""
    passage = passages.get(support.chunk_id)
    return passage is not None and passage.chunk.version == support.version


def all_there(passages: Mapping[str, VisibleChunk], supports: Iterable[Support]) -> bool:
    """Return whether every support's chunk is visible in any version.

    A chunk keeps its id only if its text is unchanged, so a text written from an older version is still supported.
    """
    return all(support.chunk_id in passages for support in supports)
