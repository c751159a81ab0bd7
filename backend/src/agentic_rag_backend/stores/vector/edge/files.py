"""Files that must be on the disk before the caller continues."""

from __future__ import annotations

import os
from pathlib import Path


def sync_tree(folder: Path) -> None:
    """Have every file and folder below ``folder`` written to the disk.

    Raises:
        OSError: one of them, or ``folder``, is not there or cannot be written.
    """

    def stop(error: OSError) -> None:
        raise error

    for root, _, files in os.walk(folder, onerror=stop):
        for path in [Path(root, name) for name in files] + [Path(root)]:
            sync(path)


def sync(path: Path) -> None:
    """Have a file, or a folder's list of names, written to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
