"""Memory of this process: returning freed memory to the system, and garbage collection."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Iterator

MIB = 1024 * 1024
"""Bytes of a mebibyte."""


def give_back() -> None:
    """Return freed memory to the system. glibc keeps small blocks otherwise. On other systems this does nothing."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


@contextlib.contextmanager
def collection_paused() -> Iterator[None]:
    """Pause garbage collection, for the start of a process.

    The start creates half a million objects and drops few of them. Scanning them repeatedly took a seventh of its CPU time.
    """
    if not gc.isenabled():  # an outer pause is active
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def settle() -> None:
    """End a pause. Later collections do not scan the objects of the start, which live as long as the process.

    Memory that the start has freed is returned to the system.
    """
    gc.enable()
    gc.freeze()
    give_back()
