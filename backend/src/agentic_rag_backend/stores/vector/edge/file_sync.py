"""Forces files to the disk before the caller continues."""

from __future__ import annotations

import os
from pathlib import Path


def sync_tree(folder: Path) -> None:
    """Force all files and folders below ``folder`` to the disk.

    Raises:
        OSError: ``folder`` or a part of it does not exist or cannot be written.
    """

    def stop(error: OSError) -> None:
        raise error

    for root, _, files in os.walk(folder, onerror=stop):
        for path in [Path(root, name) for name in files] + [Path(root)]:
            sync(path)


def sync(path: Path) -> None:
    """Force a file, or a folder's directory entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
