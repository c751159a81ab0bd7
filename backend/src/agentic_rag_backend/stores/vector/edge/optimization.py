"""A separate process that builds the index of a copied shard: ``python -m … FOLDER PARENT_PID TIME_LIMIT_S``.

The engine keeps the interpreter's lock for the whole build, minutes, so no Python code runs meanwhile, signal
handlers included: only the kernel can end this process early. It dies with its parent and at the time limit.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

from qdrant_edge import EdgeShard, UpdateOperation

from agentic_rag_backend.stores.vector.edge.edge_engine import field_indexes, sync_tree
from agentic_rag_backend.stores.vector.edge.folder import collection_of

_PR_SET_PDEATHSIG = 1
_NICENESS = 19


def optimize(folder: Path) -> None:
    """Build the index of the shard in ``folder`` and leave it durable on disk."""
    shard = EdgeShard.load(str(folder))
    # A folder of an earlier release keeps its field indexes in memory until they are rebuilt; the engine skips equal ones.
    for field, schema in field_indexes(collection_of(folder)).items():
        shard.update(UpdateOperation.create_field_index(field, schema))
    shard.optimize()
    shard.flush()
    shard.close()
    sync_tree(folder)


def _die_with(parent: int, *, limit_s: int) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(limit_s)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have died before prctl took effect. On other systems an orphan ends at the time limit; nothing reads its
    # folder.
    if os.getppid() != parent:
        sys.exit("the parent is gone")


def main() -> None:
    """Run the build that the command line asks for."""
    folder, parent, limit_s = sys.argv[1:]
    _die_with(int(parent), limit_s=int(limit_s))
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    optimize(Path(folder))


if __name__ == "__main__":
    main()
