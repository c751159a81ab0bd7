"""Sends bytes to a program and returns its output, within limits of time and size."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO, cast

MAX_OUTPUT_BYTES = 16 * 1024 * 1024
_BLOCK_BYTES = 64 * 1024
_KEPT_ERROR_BYTES = 4096


class OutOfTime(Exception):
    """The program did not end in time, and was killed."""


class TooMuchOutput(Exception):
    """The program wrote more than `MAX_OUTPUT_BYTES`, and was killed."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: its exit code, or minus a signal's number; its output, and the beginning of its error messages."""

    code: int
    output: bytes
    errors: bytes


def exchange_bytes(
    command: Sequence[str], content: Sequence[bytes], environment: Mapping[str, str], *, timeout_s: float
) -> Ended:
    """Run ``command`` with the parts of ``content`` as its standard input. Return its output.

    The program inherits the limits and the process group of this process. It opens no file of this process.

    Raises:
        OutOfTime, TooMuchOutput: the program was killed.
        OSError: it cannot be started.
    """
    until = time.monotonic() + timeout_s
    process = subprocess.Popen(  # noqa: S603 - a program of the settings; no argument comes from a document
        list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(environment), cwd="/"
    )
    try:
        output, errors = _pump_streams(process, content, until)
        return Ended(process.wait(max(until - time.monotonic(), 0.0)), output, errors)
    except subprocess.TimeoutExpired:
        raise OutOfTime from None
    finally:
        process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        process.wait()


def _pump_streams(process: subprocess.Popen[bytes], content: Sequence[bytes], until: float) -> tuple[bytes, bytes]:
    """Write ``content`` and read the output at the same time, so that neither process waits for the other forever."""
    assert process.stdin is not None  # noqa: S101 - for the type checker, like the next two
    assert process.stdout is not None  # noqa: S101
    assert process.stderr is not None  # noqa: S101
    unsent = [memoryview(part) for part in reversed(content) if part]
    output, errors = bytearray(), bytearray()
    os.set_blocking(process.stdin.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdin, selectors.EVENT_WRITE, partial(_send_some, process.stdin, unsent))
        selector.register(process.stdout, selectors.EVENT_READ, partial(_receive_some, process.stdout, output))
        selector.register(process.stderr, selectors.EVENT_READ, partial(_receive_some, process.stderr, errors))
        while selector.get_map():
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise OutOfTime
            for key, _ in selector.select(left_s):
                if not key.data():
                    selector.unregister(key.fileobj)
                    cast(IO[bytes], key.fileobj).close()
    return bytes(output), bytes(errors[:_KEPT_ERROR_BYTES])


def _send_some(stream: IO[bytes], unsent: list[memoryview]) -> bool:
    """Write some of ``unsent``, whose parts come last first. Return whether more is to be written."""
    if unsent:
        try:
            count = os.write(stream.fileno(), unsent[-1][:_BLOCK_BYTES])
        except BrokenPipeError:  # the program reads no more
            return False
        unsent[-1] = unsent[-1][count:]
        if not unsent[-1]:
            unsent.pop()
    return bool(unsent)


def _receive_some(stream: IO[bytes], buffer: bytearray) -> bool:
    """Read some output. Return whether more may come."""
    block = os.read(stream.fileno(), _BLOCK_BYTES)
    buffer += block
    if len(buffer) > MAX_OUTPUT_BYTES:
        raise TooMuchOutput
    return bool(block)
