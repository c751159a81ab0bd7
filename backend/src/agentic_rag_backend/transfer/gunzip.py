"""One gzip stream, unpacked within limits: of the unpacked bytes, and of their ratio to the bytes that were read.

`gzip` would read a header's name and comment byte by byte in Python, without a limit, and continue with any streams that
follow the first; zlib reads the header itself and checks length and checksum at the end.
"""

from __future__ import annotations

import zlib
from typing import BinaryIO

from agentic_rag_backend.errors import InvalidRequest, PayloadTooLarge

FREE_BYTES = 16 * 1024 * 1024
"""Unpacked bytes that every archive may have, independent of its own size."""
MAX_RATIO = 200
"""Beyond that, the limit of unpacked bytes for each packed byte. Texts and vectors have a ratio of 2 to 10; gzip allows 1,032."""
_READ_BYTES = 64 * 1024
_GZIP = 16 + zlib.MAX_WBITS


class Gunzip:
    """Reads the unpacked content of a gzip file.

    Args:
        limit: maximum unpacked bytes.
    """

    def __init__(self, file: BinaryIO, *, limit: int) -> None:
        self._file = file
        self._limit = limit
        self._stream = zlib.decompressobj(_GZIP)
        self._packed = 0
        self._unpacked = 0

    def read_bytes(self, size: int) -> bytes:
        """Return up to ``size`` bytes, none at the end.

        Raises:
            InvalidRequest: it is damaged or cut off, or continues after the end of the stream.
            PayloadTooLarge: the unpacked size is above its limit.
        """
        content = b""
        while not content and not self._stream.eof:
            compressed = self._stream.unconsumed_tail or self._read_packed_bytes()
            try:
                content = self._stream.decompress(compressed, size)
            except zlib.error as error:
                raise InvalidRequest(f"the archive is damaged: {str(error)[:100]}") from None
        self._unpacked += len(content)
        self._check_size()
        if self._stream.eof and not content:
            self._finish_stream()
        return content

    def _read_packed_bytes(self) -> bytes:
        content = self._file.read(_READ_BYTES)
        if not content:
            raise InvalidRequest("the archive is cut off")
        self._packed += len(content)
        return content

    def _check_size(self) -> None:
        if self._unpacked > self._limit:
            raise PayloadTooLarge(f"the archive unpacks to more than {self._limit} bytes (MAX_IMPORT_MB)")
        if self._unpacked > FREE_BYTES + MAX_RATIO * self._packed:
            raise PayloadTooLarge(
                f"the first {self._packed} bytes of the archive unpack to {self._unpacked}; "
                f"the limit is {FREE_BYTES} and {MAX_RATIO} for each byte"
            )

    def _finish_stream(self) -> None:
        if self._stream.unused_data.strip(b"\0") or self._file.read(_READ_BYTES).strip(b"\0"):
            raise InvalidRequest("the archive continues after its end: it must be one gzip stream")
