"""Last uses of keys: noted in memory while a request is admitted, and written at intervals."""

from __future__ import annotations

import asyncio
from datetime import datetime

from agentic_rag_backend.domain.tenant import Credential, TenantId
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.stores.catalogue.tenants.api_keys import USED_AGAIN_AFTER
from agentic_rag_backend.stores.catalogue.tenants.tenant_directory import TenantDirectory
from agentic_rag_backend.telemetry.logs import get_logger

WRITTEN_EVERY_S = 2.0
"""Seconds between two writes. A process that is killed loses at most the uses of that time."""

_log = get_logger(__name__)


class KeyUses:
    """Writes when keys were last used, at most once a minute for a key. A key that was not used costs nothing."""

    def __init__(self, directory: TenantDirectory) -> None:
        self._directory = directory
        self._used_at: dict[tuple[TenantId, str], datetime] = {}
        self._writing = asyncio.Lock()

    def note_use(self, credential: Credential, now: datetime) -> None:
        """Note a use, unless one was recorded less than `USED_AGAIN_AFTER` before ``now``."""
        recorded = credential.last_used_at
        if recorded is None or now - recorded >= USED_AGAIN_AFTER:
            self._used_at[credential.principal.tenant.id, credential.principal.key_id] = now

    async def run(self) -> None:
        """Write the uses at intervals, until the task is cancelled."""
        while True:
            await asyncio.sleep(WRITTEN_EVERY_S)
            await self.write_uses()

    async def write_uses(self) -> None:
        """Write the uses that were noted. If that fails, they are written later."""
        # If the caller is cancelled, the uses would otherwise be lost between the memory and the catalogue.
        await asyncio.shield(self._write_noted())

    async def _write_noted(self) -> None:
        async with self._writing:
            used_at, self._used_at = self._used_at, {}
            try:
                if used_at:
                    await self._directory.note_uses(used_at)
            except AgenticRagError as error:
                self._used_at = used_at | self._used_at  # newer uses win
                _log.warning("key_uses_not_written", code=error.code, reason=error.message, keys=len(used_at))
