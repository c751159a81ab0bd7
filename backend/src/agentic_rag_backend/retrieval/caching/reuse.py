"""Whether the results of a search may be returned again.

Most failures are in the trace. A part that leaves something out without a failure in the trace calls `forbid_reuse`. So does a
search that ends by the clock, because the next one may find more.
"""

from __future__ import annotations

from contextvars import ContextVar

from agentic_rag_backend.domain.query import Retrieval


class Reuse:
    """The permission for one search, which its tasks share."""

    def __init__(self) -> None:
        self.forbidden = False

    def allows(self, retrieval: Retrieval) -> bool:
        """Return whether the search was complete: nothing failed, and nothing was left out."""
        return not (self.forbidden or retrieval.trace.failures or retrieval.trace.hidden)


_CURRENT: ContextVar[Reuse | None] = ContextVar("reuse", default=None)


def begin() -> Reuse:
    """Return the permission for the search that begins in the current task."""
    reuse = Reuse()
    _CURRENT.set(reuse)
    return reuse


def forbid_reuse() -> None:
    """Let the results of the current search be used only once."""
    reuse = _CURRENT.get()
    if reuse is not None:
        reuse.forbidden = True
