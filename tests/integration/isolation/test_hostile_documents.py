"""Documents that are made to harm are read, or refused with the reason, and nothing that they name is fetched."""

from __future__ import annotations

import asyncio
import re

from hostile_documents import HOSTILE, HostileDocument, Size

from agentic_rag_backend.domain.document import ProcessingOptions
from agentic_rag_backend.domain.media_types import media_type_of
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.ingestion.isolation.call_limits import CallLimits
from agentic_rag_backend.ingestion.isolation.calls import ReadingOptions
from agentic_rag_backend.ingestion.isolation.worker_pool import Isolation

OWNER = ("t_" + "1" * 32, "document-1", 1)
PATIENT = CallLimits(cpu_s=60.0, timeout_s=500.0)
"""The limits of time end none of these files, which are small, on a machine of any speed."""


async def test_each_is_read_or_refused_with_its_reason_and_nothing_is_fetched() -> None:
    fetched: list[bytes] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        fetched.append(await reader.readline())
        writer.close()

    isolation = Isolation(PATIENT)
    try:
        async with await asyncio.start_server(connected, "127.0.0.1", 0) as listening:
            host, port = listening.sockets[0].getsockname()[:2]
            size = Size(full=False, address=f"http://{host}:{port}")
            found = {each.name: await _outcome(isolation, each, each.content(size)) for each in HOSTILE}
    finally:
        await isolation.close()
    others = {each.name: found[each.name][:300] for each in HOSTILE if not re.search(each.expected, found[each.name])}
    assert others == {}
    assert fetched == []


async def _outcome(isolation: Isolation, document: HostileDocument, content: bytes) -> str:
    """Return the text of a document, or the reason why there is none."""
    try:
        media_type = media_type_of(None, document.file_name, content)
        await isolation.call_worker("check", content, media_type, None, document.file_name, True, size_bytes=len(content))
        parsed, _ = await isolation.call_worker(
            "read", content, media_type, OWNER, ReadingOptions(ProcessingOptions()), size_bytes=len(content)
        )
    except AgenticRagError as error:
        return error.message
    assert len(parsed.text) < 10_000_000, document.name
    return str(parsed.text)
