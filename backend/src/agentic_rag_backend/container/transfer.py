"""What exports and imports tenants."""

from __future__ import annotations

from agentic_rag_backend import __version__
from agentic_rag_backend.container.adapters import Adapters
from agentic_rag_backend.container.housekeeping import Served
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.computation import Computation
from agentic_rag_backend.jobs.runner import Runner
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.tenancy.features import Features
from agentic_rag_backend.transfer.exporting import Exporter, Source
from agentic_rag_backend.transfer.importing import Destination
from agentic_rag_backend.transfer.service import TransferOptions, TransferService

_MIB = 1024 * 1024


def make_transfer(settings: Settings, adapters: Adapters, served: Served, features: Features) -> TransferService:
    """Return the service over the same stores as the others."""
    catalogue, extractor = adapters.catalogue, adapters.extractor
    exporter = Exporter(
        Source(
            catalogue=catalogue,
            transfer=catalogue.transfer,
            graph=adapters.graph,
            vectors=adapters.vectors,
            blobs=adapters.blobs,
            embedder=adapters.embedder,
            extractor=extractor,
            queue=served.queue,
            release=__version__,
        )
    )
    destination = Destination(
        catalogue=catalogue,
        transfer=catalogue.transfer,
        graph=adapters.graph,
        vectors=adapters.vectors,
        blobs=adapters.blobs,
        computation=Computation(embedder=adapters.embedder, extractor=extractor),
        keep_originals=settings.keep_originals,
    )

    def on_opened(tenant: TenantId) -> None:
        served.graphs.read_anew(tenant)

    return TransferService(
        exporter,
        destination,
        runner=Runner(catalogue.jobs, settings.job_patience_s),
        queue=served.queue,
        options=TransferOptions(
            folder=settings.data_dir / "transfer",
            max_archive=settings.max_import_mb * _MIB,
            max_original=settings.max_upload_mb * _MIB,
        ),
        erase=served.erase,
        on_opened=on_opened,
        features=features,
    )
