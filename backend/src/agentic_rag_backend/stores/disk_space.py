"""Free space of the disks of local stores, as requests see it that create something."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from agentic_rag_backend.errors import StorageFull
from agentic_rag_backend.stores.local_files import LEAST_FREE_BYTES, existing_path, full


class DiskSpace:
    """Checks for room before a request is accepted. What concurrent uploads are about to write counts as used.

    Args:
        folders: the folder of each local store, by the name that messages have for the store.
    """

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = folders
        self._reserved_bytes = 0

    async def require(self) -> None:
        """Raise `StorageFull` if the disk of a store is full, or will be after the uploads that are being written."""
        await asyncio.to_thread(self._require, self._reserved_bytes)

    @asynccontextmanager
    async def reserve(self, size_bytes: int) -> AsyncIterator[None]:
        """Reserve room for content on the disk of each store while the context is open.

        Raises:
            StorageFull: a disk has less free space than `LEAST_FREE_BYTES` besides all reserved bytes.
        """
        self._reserved_bytes += size_bytes
        try:
            await self.require()
            yield
        finally:
            self._reserved_bytes -= size_bytes

    def _require(self, reserved_bytes: int) -> None:
        needed = Counter[int]()
        for store, folder in self._folders.items():
            path = existing_path(folder)
            device = path.stat().st_dev
            needed[device] += reserved_bytes  # stores on one disk each write the content, such as original and text
            free = shutil.disk_usage(path).free
            if free < LEAST_FREE_BYTES:
                raise full(store)
            if free - needed[device] < LEAST_FREE_BYTES:
                raise StorageFull(
                    f"the disk of {store} has {free} bytes free: {needed[device]} bytes for uploads under way and "
                    f"{LEAST_FREE_BYTES} that must stay free do not fit; free some space"
                )
