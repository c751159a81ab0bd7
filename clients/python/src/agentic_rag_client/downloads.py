"""Files that the server sends."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agentic_rag_client.blocking import iterate_to_end, run_to_end
from agentic_rag_client.requests import Call

if TYPE_CHECKING:
    from agentic_rag_client.session import Session


class AsyncDownload:
    """A file. ``async for`` yields its blocks. Every use requests the file once more; nothing is requested before."""

    def __init__(self, session: Session, call: Call) -> None:
        self._session = session
        self._call = call

    def blocks(self) -> AsyncGenerator[bytes, None]:
        """Yield the content in blocks."""
        return self._session.blocks(self._call)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.blocks()

    async def read(self) -> bytes:
        """Return the content."""
        return (await self._session.send(self._call)).content

    async def save(self, path: str | os.PathLike[str]) -> int:
        """Write the content to a file, and return its size in bytes. A file that was not received completely is removed."""
        target, size = Path(path), 0
        part = target.with_name(f"{target.name}.part")
        try:
            with part.open("wb") as file:
                async for block in self.blocks():
                    size += file.write(block)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        return size


class Download:
    """A file. ``for`` yields its blocks. Every use requests the file once more; nothing is requested before."""

    def __init__(self, download: AsyncDownload) -> None:
        self._download = download

    def __iter__(self) -> Iterator[bytes]:
        return iterate_to_end(self._download.blocks())

    def read(self) -> bytes:
        """Return the content."""
        return run_to_end(self._download.read())

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the content to a file, and return its size in bytes. A file that was not received completely is removed."""
        return run_to_end(self._download.save(path))
