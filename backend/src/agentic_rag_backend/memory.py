"""Memory of this process: what the allocator keeps, and when garbage is looked for."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Iterator


def give_back() -> None:
    """Return freed memory to the system. glibc keeps small pieces for the process unless asked; elsewhere this does nothing."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


@contextlib.contextmanager
def collection_paused() -> Iterator[None]:
    """Collect no garbage meanwhile: for a start, which makes half a million objects and drops hardly any.

    Looking through them again and again took a seventh of the start's CPU time.
    """
    if not gc.isenabled():  # paused already, for longer
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def settle() -> None:
    """End a pause: collect garbage again, but never look through what is there now, which stays as long as the process.

    Memory that the start needed and has freed goes back to the system.
    """
    gc.enable()
    gc.freeze()
    give_back()
