"""What builds and reads trees over passages."""

from __future__ import annotations

from agentic_rag_backend.communities.writing import Summariser
from agentic_rag_backend.container.adapters import Adapters
from agentic_rag_backend.container.options import fast_model
from agentic_rag_backend.jobs.base import JobQueue, QueueName
from agentic_rag_backend.raptor.options import TreeOptions
from agentic_rag_backend.raptor.service import WORKFLOW, RaptorService, RaptorStores
from agentic_rag_backend.settings import Settings


def make_raptor(settings: Settings, adapters: Adapters, queue: JobQueue) -> RaptorService:
    """Return the service, its workflow registered."""
    stores = RaptorStores(catalogue=adapters.catalogue, vectors=adapters.vectors, embedder=adapters.embedder, queue=queue)
    service = RaptorService(
        stores,
        summariser=Summariser(adapters.model, model_name=fast_model(settings), prompt="tree_summary"),
        options=tree_options(settings),
        patience_s=settings.job_patience_s,
    )
    # Not among the commits: a model writing summaries must not hold up the tenant's documents.
    queue.register(WORKFLOW, QueueName.PREPARE, service.build)
    return service


def tree_options(settings: Settings) -> TreeOptions:
    """Return the shape of trees where a build says nothing else."""
    return TreeOptions(
        max_levels=settings.raptor_max_levels,
        cluster_size=settings.raptor_cluster_size,
        max_clusters_per_level=settings.raptor_max_clusters_per_level,
        method=settings.raptor_clustering,
    )
