"""Export of tenants, and their import as a durable job."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from agentic_rag_backend.domain.job import Job, JobKind, JobState
from agentic_rag_backend.domain.size_limits import printable_name
from agentic_rag_backend.domain.tenant import Tenant, TenantId, TenantState
from agentic_rag_backend.errors import AgenticRagError, Conflict, InvalidRequest, NotFound, PayloadTooLarge
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.jobs.runner import JobStopped, Run, Runner
from agentic_rag_backend.stores.blob.base import blob_key
from agentic_rag_backend.stores.local_files import LEAST_FREE_BYTES, full, full_os_error, require_room
from agentic_rag_backend.tenancy.features import Features
from agentic_rag_backend.transfer.archive import ArchiveLimits, open_archive
from agentic_rag_backend.transfer.exporting import Exporter
from agentic_rag_backend.transfer.importing import EVALUATION, Destination, TenantImport
from agentic_rag_backend.transfer.inspection import (
    Communities,
    EditRecords,
    Entities,
    Evaluation,
    Part,
    Summaries,
    Theme,
    TreeNodes,
    TreeSummaries,
    read_parts,
)
from agentic_rag_backend.transfer.record_lines import ArchivedDocument
from agentic_rag_backend.transfer.records import End, Manifest, TenantName
from agentic_rag_backend.transfer.verification import verify_archive

WORKFLOW = "import_v1"
_PART_BYTES = 8 * 1024 * 1024
_ARCHIVES = "the folder of archives"
_OPENING = "open"
"""Stage that is recorded in the job's row before the tenant becomes visible."""
T = TypeVar("T")

Erase = Callable[[TenantId], Awaitable[Mapping[str, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferOptions:
    """The folder of archives during export and import, and their size limits in bytes.

    ``max_archive`` limits an archive as it arrives. The limit of its unpacked content is ten times larger. ``max_original``
    limits one original.
    """

    folder: Path
    max_archive: int
    max_original: int

    @property
    def limits(self) -> ArchiveLimits:
        """Return the limits for a reader."""
        return ArchiveLimits(archive=10 * self.max_archive, original=self.max_original)


@dataclass(frozen=True, slots=True)
class Begun:
    """A running import."""

    tenant: Tenant
    job: Job


class TransferService:
    """Exports tenants, and imports them as the workflow ``import_v1``.

    Args:
        erase: removes a tenant's data from every store except the catalogue.
        on_opened: called when cached data of a tenant is out of date.
        features: the flags that a tenant can have.
    """

    def __init__(
        self,
        exporter: Exporter,
        destination: Destination,
        *,
        runner: Runner,
        queue: JobQueue,
        options: TransferOptions,
        erase: Erase,
        on_opened: Callable[[TenantId], None],
        features: Features,
    ) -> None:
        self._exporter = exporter
        self._destination = destination
        self._runner = runner
        self._queue = queue
        self._options = options
        self._erase = erase
        self._on_opened = on_opened
        self._features = features

    @asynccontextmanager
    async def export_archive(self, tenant: TenantId) -> AsyncIterator[Path]:
        """Yield the path of the tenant's archive, which is removed afterwards.

        Raises:
            NotFound: the tenant does not exist.
            Conflict: the tenant is not active, or changes faster than it can be read.
        """
        async with self._make_folder() as folder:
            yield await self._exporter.export(tenant, folder)

    @asynccontextmanager
    async def receive_archive(self, content: AsyncIterator[bytes]) -> AsyncIterator[Path]:
        """Yield the path of a file with ``content``, which is removed afterwards.

        Raises:
            PayloadTooLarge: it is above the limit of an archive.
            StorageFull: the disk of the folder has no room.
        """
        async with self._make_folder() as folder:
            path, size = folder / "archive", 0
            with path.open("wb") as file:
                async for content_part in content:
                    size += len(content_part)
                    if size > self._options.max_archive:
                        limit = self._options.max_archive
                        raise PayloadTooLarge(f"an archive may have at most {limit} bytes (MAX_IMPORT_MB); more arrived")
                    await asyncio.to_thread(_write_file, file, content_part, path)
            yield path

    async def begin_import(
        self, archive: Path, *, target: TenantId | None = None, name: str | None = None, copy: bool = False
    ) -> Begun:
        """Queue an import and return immediately. The data becomes visible when the import is complete.

        Args:
            target: an empty tenant to import into, with new ids unless it has the archive's id. None: creates the archive's
                tenant again under its own id or, if there is one of another name, a copy with new ids.
            name: the name of a created tenant; None: the archive's name.
            copy: whether a created tenant always has a new id.

        Raises:
            InvalidRequest: the file is not an archive, has a newer format, or the name is outside its limits.
            NotFound: the tenant does not exist.
            Conflict: the tenant is not empty, or the name is taken.
        """
        manifest = await asyncio.to_thread(self._read_manifest, archive)
        if manifest.flags:
            self._features.check_changes(manifest.flags)
        manifest.tenant_ontology  # noqa: B018 - raises if it is none
        name = None if name is None else printable_name(name)
        tenant = await self._reserve_tenant(target or await self._prepare_tenant(manifest.tenant, name, copy=copy))
        try:
            async with self._destination.disk_space.reserve((await asyncio.to_thread(archive.stat)).st_size):
                arguments = await self._store_archive(tenant.id, archive)
            arguments["archive_of"] = manifest.tenant.id
            arguments[EVALUATION] = await self._destination.catalogue.evaluation_transfer.is_empty(tenant.id)
            enqueue = self._queue.enqueuer(WORKFLOW)
            job = await self._destination.catalogue.jobs.create(tenant.id, JobKind.IMPORT, arguments, enqueue)
        except BaseException:
            await asyncio.shield(self._give_back(tenant.id))
            raise
        return Begun(await self._destination.catalogue.tenants.tenant(tenant.id), job)

    async def import_v1(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Workflow that fills the tenant and makes it visible, or leaves it empty. It can be repeated."""
        await self._runner.run_job(tenant, job_id, attempt, self._fill_target, self._fail_import)

    async def empty_tenant(self, tenant: TenantId, job_id: str) -> None:
        """Empty a tenant whose import job was given up. Other kinds of jobs are ignored."""
        try:
            job = await self._destination.catalogue.jobs.job(tenant, job_id)
        except NotFound:
            return
        if job.kind is JobKind.IMPORT and job.state.ended:
            await self._give_back(tenant, job)

    # --- internals

    @asynccontextmanager
    async def _make_folder(self) -> AsyncIterator[Path]:
        def make_path() -> Path:
            self._options.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return Path(tempfile.mkdtemp(dir=self._options.folder))

        try:
            folder = await asyncio.to_thread(make_path)
        except OSError as error:
            raise _translate_errors(error) from error
        try:
            yield folder
        except OSError as error:
            raise _translate_errors(error) from error
        finally:
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))

    def _read_manifest(self, archive: Path) -> Manifest:
        with open_archive(archive, self._options.limits) as reader:
            manifest = next(read_parts(reader, self._options.limits))
        if not isinstance(manifest, Manifest):  # pragma: no cover - `read_parts` begins with it
            raise InvalidRequest("this is not an archive of a tenant")
        return manifest

    async def _prepare_tenant(self, archived: TenantName, name: str | None, *, copy: bool) -> TenantId:
        """Return the archive's tenant or, if it exists under another name than ``name``, a new one. Create it if necessary."""
        directory, archived_id = self._destination.catalogue.tenants, TenantId(archived.id)
        if not copy:
            try:
                existing = await directory.tenant(archived_id)
            except NotFound:
                return (await directory.create(name or archived.name, tenant_id=archived_id)).id
            if name is None or name == existing.name:
                return archived_id
        return (await directory.create(name or archived.name)).id

    async def _reserve_tenant(self, tenant: TenantId) -> Tenant:
        await self._destination.transfer.reserve(tenant)
        return await self._destination.catalogue.tenants.tenant(tenant)

    async def _store_archive(self, tenant: TenantId, archive: Path) -> dict[str, Any]:
        """Store the archive in parts where every worker can read it."""
        key, number = str(uuid.uuid4()), 0
        with archive.open("rb") as file:
            while content := await asyncio.to_thread(file.read, _PART_BYTES):
                number += 1
                await self._destination.blobs.put(tenant, blob_key(key, number), content)
        return {"archive": key, "parts": number}

    async def _fill_target(self, run: Run) -> None:
        transfer = self._destination.transfer
        state = (await transfer.snapshot(run.tenant)).tenant.state
        if state is TenantState.ACTIVE:
            if run.job.stage != _OPENING:
                raise Conflict("the archive of this import was removed; import it again")
            await self._finish_import(run, {})
            return
        await run.report_progress("archive", 0, int(run.job.arguments["parts"]), at_once=True)
        async with self._make_folder() as folder:
            path = folder / "archive"
            await self._fetch_archive(run, path)
            await run.report_progress("check", 0, 1, at_once=True)
            # The whole archive is checked before anything is written.
            await run.run_until_cancellation(verify_archive(path, self._options.limits))
            result = await self._fill_tenant(run, path)
        await self._finish_import(run, result)

    async def _fetch_archive(self, run: Run, path: Path) -> None:
        with path.open("wb") as file:
            for number in range(1, int(run.job.arguments["parts"]) + 1):
                key = blob_key(str(run.job.arguments["archive"]), number)
                try:
                    content = await self._destination.blobs.get(run.tenant, key)
                except NotFound:
                    raise Conflict("the archive of this import was removed; import it again") from None
                await asyncio.to_thread(file.write, content)

    async def _fill_tenant(self, run: Run, path: Path) -> dict[str, Any]:
        with open_archive(path, self._options.limits) as reader:
            archive_parts = read_parts(reader, self._options.limits)
            manifest = await asyncio.to_thread(_next_part, archive_parts)
            if not isinstance(manifest, Manifest):  # pragma: no cover - `read_parts` begins with it
                raise InvalidRequest("this is not an archive of a tenant")
            tenant_import = TenantImport(run, self._destination, manifest)
            await tenant_import.load_staged_state()
            end = await self._take_in(tenant_import, archive_parts)
        await tenant_import.finish_import()
        return {
            **end.model_dump(),
            "archive_of": manifest.tenant.id,
            "embedded": tenant_import.embedded,
            "evaluation": tenant_import.evaluated,
        }

    async def _take_in(self, tenant_import: TenantImport, archive_parts: Any) -> End:
        hierarchy = False
        while True:
            part: Part | None = await asyncio.to_thread(_next_part, archive_parts)
            if isinstance(part, (Summaries, End)) and not hierarchy:
                hierarchy = True
                await tenant_import.write_communities()
            if isinstance(part, End):
                return part
            if isinstance(part, Entities):
                await tenant_import.write_entities(part.records)
            elif isinstance(part, EditRecords):
                tenant_import.read_edits(part.records)
            elif isinstance(part, ArchivedDocument):
                await tenant_import.write_document(part)
            elif isinstance(part, Evaluation):
                await tenant_import.write_evaluation(part.lines)
            elif isinstance(part, Theme):
                await self._take_theme(tenant_import, part)
            else:
                raise InvalidRequest("the archive is cut off")

    async def _take_theme(self, tenant_import: TenantImport, part: Theme) -> None:
        if isinstance(part, Communities):
            await tenant_import.read_communities(part.records)
        elif isinstance(part, TreeNodes):
            await asyncio.to_thread(tenant_import.tree.read_records, part.records)
        elif isinstance(part, TreeSummaries):
            await tenant_import.tree.write_summaries(self._destination.catalogue.trees, part.records)
        else:
            await tenant_import.write_summaries(part.records)

    async def _finish_import(self, run: Run, result: Mapping[str, Any]) -> None:
        self._on_opened(run.tenant)
        await run.jobs.finish(run.tenant, run.job.id, JobState.SUCCEEDED, result=result)
        for number in range(1, int(run.job.arguments["parts"]) + 1):
            await self._destination.blobs.delete(run.tenant, blob_key(str(run.job.arguments["archive"]), number))

    async def _fail_import(self, run: Run, error: AgenticRagError | JobStopped) -> None:
        await self._give_back(run.tenant, run.job)

    async def _give_back(self, tenant: TenantId, job: Job | None = None) -> None:
        """Leave the tenant as it was before ``job``, empty and active, unless its data is already visible."""
        try:
            state = (await self._destination.transfer.snapshot(tenant)).tenant.state
        except NotFound:
            return  # deleted meanwhile
        if state is TenantState.IMPORTING:
            await self._erase(tenant)
            if job is not None and job.arguments.get(EVALUATION):
                await self._destination.catalogue.evaluation_transfer.abandon(tenant)
            await self._destination.transfer.abandon(tenant)


def _write_file(file: BinaryIO, content: bytes, path: Path) -> None:
    """Write a part of an archive if the disk has room for it."""
    require_room(path, _ARCHIVES, LEAST_FREE_BYTES + len(content))
    file.write(content)


def _translate_errors(error: OSError) -> Exception:
    """Return the error for a system error in the folder of archives."""
    return full(_ARCHIVES) if full_os_error(error) else error


def _next_part(archive_parts: Any) -> Part | None:
    """Return the next part; None at the end, because no StopIteration may leave the thread."""
    return next(archive_parts, None)
