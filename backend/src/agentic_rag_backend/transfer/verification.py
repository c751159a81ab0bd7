"""Inspects an archive in a separate process, with limits of memory and time.

The author of an archive controls the cost of parsing its JSON. In a separate process that delays no request, and the process
ends by itself: ``python -m agentic_rag_backend.transfer.verification`` reads one archive and prints its errors.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from pathlib import Path

from agentic_rag_backend.errors import AgenticRagError, InvalidRequest, PayloadTooLarge
from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.transfer.archive import ArchiveLimits
from agentic_rag_backend.transfer.inspection import inspect_archive

MEMORY_BYTES = 4 * 1024**3
"""Address space of the process; the interpreter and its libraries take about half a gigabyte of it."""
LEAST_CPU_S = 60
CPU_S_PER_MIB = 10
"""Seconds of processor time per MiB of the archive, above the minimum. A MiB of texts and vectors takes about 0.5 s."""
_REFUSED, _TOO_MUCH = 3, 4
_KINDS: dict[str, type[AgenticRagError]] = {error_class.code: error_class for error_class in (InvalidRequest, PayloadTooLarge)}

_log = get_logger(__name__)


async def verify_archive(path: Path, limits: ArchiveLimits) -> None:
    """Return if the archive at ``path`` can be imported.

    Raises:
        InvalidRequest: it cannot be imported; the message gives the reason.
        PayloadTooLarge: the archive or a part of it is above its limit.
    """
    size = (await asyncio.to_thread(path.stat)).st_size
    cpu_s = LEAST_CPU_S + CPU_S_PER_MIB * size // (1024 * 1024)
    arguments = (str(path), str(limits.archive), str(limits.original), str(cpu_s))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", __name__, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        output, failed = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await asyncio.shield(process.wait())
    if process.returncode == _REFUSED:
        problem = json.loads(output)
        raise _KINDS[problem["code"]](problem["message"])
    if process.returncode == _TOO_MUCH or (process.returncode or 0) < 0:
        raise InvalidRequest(
            f"the archive cannot be read with {MEMORY_BYTES // 1024**2} MiB of memory and {cpu_s} s of processor time"
        )
    if process.returncode != 0:
        _log.error("archive_inspection_failed", status=process.returncode, stderr=failed.decode(errors="replace")[-2_000:])
        raise AgenticRagError("the process that inspects archives failed; the log has the details")


def main(path: str, archive: str, original: str, cpu_s: str) -> int:
    """Inspect one archive; print its error as JSON. Return the exit status."""
    _restrict_process(int(cpu_s))
    try:
        inspect_archive(Path(path), ArchiveLimits(archive=int(archive), original=int(original)))
    except (InvalidRequest, PayloadTooLarge) as error:
        sys.stdout.write(json.dumps({"code": error.code, "message": error.message}))
        return _REFUSED
    except MemoryError:
        return _TOO_MUCH
    return 0


def _restrict_process(cpu_s: int) -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
