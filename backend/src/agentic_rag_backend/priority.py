"""Priority on the processor's cores: threads that answer requests run before threads and processes that prepare documents.

The operating system's niceness decides, so a core that is free is always used. Next to programs with niceness 0 that keep both
cores of a machine busy, two threads with niceness 0 get half of the time, with 5 a fifth, with 10 an eleventh, and with 15 less
(measured on Linux 6.18). A process without privileges can only raise a niceness, so it cannot follow the load.

Linux with automatic process groups (``sched_autogroup``) compares niceness only within one session: child processes therefore
stay in the session of the process that serves, and get a process group of their own instead.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading

BACKGROUND = 10
"""Default niceness of threads and processes that prepare documents: an eleventh of a core that a request needs as well.

Measured with 141 hostile documents of one tenant: with 5, half of another tenant's searches take 47 ms instead of 39.
"""
LONG_RUNNING = 15
"""Niceness of one call that takes long, so that other documents are prepared before it; a higher `BACKGROUND` stays."""


def lower_process(niceness: int, pid: int = 0) -> None:
    """Give a process this niceness; 0: the calling process. A higher niceness is kept."""
    with contextlib.suppress(OSError):  # the process has ended
        if os.getpriority(os.PRIO_PROCESS, pid) < niceness:
            os.setpriority(os.PRIO_PROCESS, pid, niceness)


def lower_thread(niceness: int) -> None:
    """Give the calling thread this niceness. Only Linux has a niceness for each thread; elsewhere nothing changes."""
    if sys.platform == "linux":
        lower_process(niceness, threading.get_native_id())
