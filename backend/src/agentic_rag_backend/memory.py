"""Memory of this process: returning freed memory to the system, and garbage collection."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Iterator

MIB = 1024 * 1024
"""Bytes of a mebibyte."""
_COLLECTED_AFTER = (5_000, 10, 400)
"""Thresholds of the garbage collector: a full collection per 20 million new objects instead of per 70,000.

A collection of the second generation stops every thread: mostly for 10 to 16 ms with 50,000 objects, and for up to 52 ms with
200,000 (measured on a busy machine).
"""


def give_back() -> None:
    """Return freed memory to the system. glibc keeps small blocks otherwise. On other systems this does nothing."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


@contextlib.contextmanager
def pause_collection() -> Iterator[None]:
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


def settle_collection() -> None:
    """End a pause. Later collections do not scan the objects of the start, which live as long as the process.

    Memory that the start has freed is returned to the system.
    """
    gc.enable()
    gc.freeze()
    give_back()


def serve_from_now() -> None:
    """End the start of a process that answers requests: `settle_collection`, and collect garbage less often.

    A full garbage collection stops every thread, for 0.2 s of CPU as measured. Most of it scans objects that live as long as the
    process.
    """
    settle_collection()
    gc.set_threshold(*_COLLECTED_AFTER)
