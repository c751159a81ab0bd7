"""Download of a file that continues where an earlier attempt ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import httpx2

from agentic_rag_backend.errors import ModelUnavailable

ATTEMPTS = 5
"""Attempts without a new byte, after which a download fails."""
PAUSE_S = 0.5
"""Seconds before the next attempt, doubled after each attempt without a new byte."""
_TIMEOUT_S = 30.0
"""Limit for a connection, and for a pause between two pieces."""
_GIVE_UP = (400, 401, 403, 404, 405, 407, 410, 451)
"""Statuses that another attempt does not change."""
_REMEDY = "set HTTPS_PROXY or MODEL_HUB_URL, or take the files from a folder: 'agentic-rag models pull NAME --from FOLDER'"

OnBytes = Callable[[int, int | None], None]
"""Receives the bytes that are there, and the bytes of the whole file; None if unknown."""


def download_file(url: str, part: Path, *, size_bytes: int | None, on_bytes: OnBytes) -> None:
    """Append the missing bytes of a file to ``part``. The environment's HTTP_PROXY, HTTPS_PROXY and NO_PROXY apply.

    Args:
        size_bytes: size of the file. A server that sends more is not read further.

    Raises:
        ModelUnavailable: the server cannot be reached, refuses, or sends nothing for `ATTEMPTS` attempts.
    """
    failures = 0
    with httpx2.Client(follow_redirects=True, timeout=_TIMEOUT_S, headers={"accept-encoding": "identity"}) as client:
        while True:
            before = part.stat().st_size
            try:
                return _append_bytes(client, url, part, size_bytes, on_bytes)
            except httpx2.HTTPStatusError as error:
                reason = f"HTTP {error.response.status_code}"
                if error.response.status_code in _GIVE_UP:
                    raise ModelUnavailable(f"{url} cannot be downloaded: {reason}; {_REMEDY}") from error
            except httpx2.HTTPError as error:
                reason = f"{type(error).__name__}: {error}"
            failures = 0 if part.stat().st_size > before else failures + 1
            if failures >= ATTEMPTS:
                raise ModelUnavailable(f"{url} cannot be downloaded: {reason}; {_REMEDY}")
            time.sleep(PAUSE_S * 2**failures)


def _append_bytes(client: httpx2.Client, url: str, part: Path, size_bytes: int | None, on_bytes: OnBytes) -> None:
    offset = part.stat().st_size
    if size_bytes is not None and offset >= size_bytes:
        return
    with client.stream("GET", url, headers={"range": f"bytes={offset}-"} if offset else {}) as response:
        if response.status_code == 416:  # the file is shorter than its part: begin again
            part.write_bytes(b"")
        response.raise_for_status()
        if response.status_code != 206 or not response.headers.get("content-range", "").startswith(f"bytes {offset}-"):
            offset = 0
        length = response.headers.get("content-length", "")
        total = size_bytes if size_bytes is not None else offset + int(length) if length.isdigit() else None
        with part.open("r+b") as file:
            file.truncate(offset)
            file.seek(offset)
            for piece in response.iter_raw():
                file.write(piece)
                offset += len(piece)
                on_bytes(offset, total)
                if size_bytes is not None and offset > size_bytes:
                    return
