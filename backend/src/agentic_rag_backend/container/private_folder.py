"""Permissions of DATA_DIR: only its owner may read the tenants' data and the keys.

The folder and its sub-folders get mode 0700, their files 0600. New files inherit that from a default ACL on the folders,
whichever library or child process creates them. The umask is not used: it belongs to a whole process, with files of its own.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)
FOLDER_MODE, FILE_MODE = 0o700, 0o600
_OTHERS = 0o077
_NAMES = (
    "catalogue.db",
    "graph.db",
    "vectors",
    "blobs",
    "transfer",
    "models",
    "calibration.json",
    "server.json",
    "credentials.json",
)
"""Beginnings of the names that this program creates in DATA_DIR."""
_IGNORED = ("lost+found",)
_ACL = "system.posix_acl_default"
_NO_ID = 0xFFFFFFFF
_OWNER_ONLY = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, permissions, _NO_ID) for tag, permissions in ((0x01, 7), (0x04, 0), (0x20, 0))
)
"""A default ACL, version 2: the owner has all permissions, the group and others have none."""


def make_private(data_dir: Path) -> None:
    """Create DATA_DIR if it is missing, and remove the permissions of other accounts from it and from what it contains.

    Folders that have the default ACL are not read again. A folder with files of other programs keeps its mode and its ACL; only
    the files of this program are protected in it. Entries of other accounts cannot be changed and stay as they are.

    Raises:
        OSError: the folder cannot be created or read.
    """
    data_dir.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    entries = sorted(path for path in data_dir.iterdir() if path.name not in _IGNORED)
    ours = [path for path in entries if path.name.lstrip(".").startswith(_NAMES)]
    shared = len(ours) < len(entries)
    if not shared:
        _restrict(data_dir, FOLDER_MODE)
    for path in ours:
        _protect(path)
    if not shared:
        _inherit(data_dir)
    if (mode := others_may(data_dir)) is not None:
        reason = "it has files of other programs" if shared else "it belongs to another account"
        _log.warning("data_dir_open_to_others", path=str(data_dir), mode=f"{mode:04o}", reason=reason)


def others_may(path: Path) -> int | None:
    """Return the mode of a file or folder if accounts other than its owner may use it, otherwise None."""
    mode = stat.S_IMODE(path.stat().st_mode)
    return mode if mode & _OTHERS else None


def _protect(path: Path) -> None:
    """Restrict a file, or a folder with all its content."""
    if path.is_symlink():
        return
    if not path.is_dir():
        _restrict(path, FILE_MODE)
        return
    _restrict(path, FOLDER_MODE)
    if _inherits(path):
        return
    for folder, files in _folders(path):
        for file in files:
            _restrict(file, FILE_MODE)
        _restrict(folder, FOLDER_MODE)
        # The outermost folder is the last one, so that an interrupted walk is repeated.
        _inherit(folder)


def _folders(path: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Yield the folders of a tree and their files, sub-folders first. Symbolic links are left out."""
    for parent, _, names in os.walk(path, topdown=False):
        yield Path(parent), [file for name in names if not (file := Path(parent, name)).is_symlink()]


def _restrict(path: Path, mode: int) -> None:
    # Another account may own it, and a running process may just have removed it.
    with suppress(PermissionError, FileNotFoundError):
        if others_may(path) is not None:
            path.chmod(mode)


def _inherits(folder: Path) -> bool:
    try:
        return os.getxattr(folder, _ACL) == _OWNER_ONLY
    except (OSError, AttributeError):
        return False


def _inherit(folder: Path) -> None:
    """Let new files of a folder have no permissions for other accounts. Some file systems, such as NFS, cannot do that."""
    with suppress(OSError, AttributeError):
        os.setxattr(folder, _ACL, _OWNER_ONLY)
