"""Priority on the processor's cores: threads that answer requests run before threads and processes that prepare documents.

The operating system's niceness decides, so a core that is free is always used. Linux with automatic process groups
(``sched_autogroup``) compares niceness only within one session: child processes therefore stay in the session of the
process that serves, and get a process group of their own instead.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading

BACKGROUND = 10
"""Niceness of threads and processes that prepare documents: about a tenth of a core that a request needs as well."""
LONG_RUNNING = 15
"""Niceness of one call that takes long, so that other documents are prepared before it."""


def lower_process(niceness: int, pid: int = 0) -> None:
    """Give a process this niceness; 0: the calling process. A higher niceness is kept."""
    with contextlib.suppress(OSError):  # the process has ended
        if os.getpriority(os.PRIO_PROCESS, pid) < niceness:
            os.setpriority(os.PRIO_PROCESS, pid, niceness)


def lower_thread(niceness: int = BACKGROUND) -> None:
    """Give the calling thread this niceness. Only Linux has a niceness for each thread; elsewhere nothing changes."""
    if sys.platform == "linux":
        lower_process(niceness, threading.get_native_id())
