"""Files of a multipart body."""

from __future__ import annotations

import io
import mimetypes
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

File: TypeAlias = str | os.PathLike[str] | bytes | BinaryIO
"""A path, the content of a file, or a file that is open for reading and can be sought."""
Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of bytes sent and the total number of bytes."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """One file of a request."""

    field: str
    file: File
    name: str
    progress: Progress | None = None

    @classmethod
    def of(cls, file: File, name: str | None, progress: Progress | None = None, *, field: str = "file") -> FilePart:
        """Return the part for a file. The name of an open file is that of its path.

        Raises:
            ValueError: the file has no name, which decides its format.
        """
        path = file if isinstance(file, (str, os.PathLike)) else getattr(file, "name", None)
        chosen = name or (Path(path).name if isinstance(path, (str, os.PathLike)) else "")
        if not chosen:
            raise ValueError("name is missing: the end of a file's name decides its format, such as 'report.pdf'")
        return cls(field, file, chosen, progress)

    def open(self, stack: ExitStack) -> tuple[str, tuple[str, BinaryIO, str]]:
        """Open the file until ``stack`` is closed. Return it as httpx2 expects it."""
        if isinstance(self.file, bytes):
            content: BinaryIO = io.BytesIO(self.file)
        elif isinstance(self.file, (str, os.PathLike)):
            content = stack.enter_context(Path(self.file).open("rb"))  # noqa: SIM115 - the stack closes it
        else:
            content = self.file
        if self.progress is not None:
            content = ProgressReader(content, self.progress)
        media_type = mimetypes.guess_type(self.name)[0] or "application/octet-stream"
        return self.field, (self.name, content, media_type)


class ProgressReader(io.RawIOBase, BinaryIO):
    """File that reports how much of it was read."""

    def __init__(self, content: BinaryIO, progress: Progress) -> None:
        self._content = content
        self._progress = progress
        self._total = content.seek(0, os.SEEK_END)

    def read(self, size: int = -1, /) -> bytes:
        block = self._content.read(size)
        if block:
            self._progress(self._content.tell(), self._total)
        return block

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        return self._content.seek(offset, whence)

    def tell(self) -> int:
        return self._content.tell()


def open_parts(files: Sequence[FilePart], stack: ExitStack) -> list[tuple[str, tuple[str, BinaryIO, str]]]:
    """Open the files of a request until ``stack`` is closed."""
    return [part.open(stack) for part in files]
