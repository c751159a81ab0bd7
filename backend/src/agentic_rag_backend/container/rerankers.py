"""Opening of the models that rerankers ask, and the defaults of reranking."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from agentic_rag_backend.container.embedders import models_folder
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models.embedding.model_files import MODEL_FILE, TOKENIZER_FILE
from agentic_rag_backend.models.installation import Hub, has_files, install_model
from agentic_rag_backend.models.registry import reranker_of
from agentic_rag_backend.models.reranking.base import PassageScorer
from agentic_rag_backend.retrieval.requests.rerank_options import RerankDefaults
from agentic_rag_backend.retrieval.rerank.registry import RERANKERS
from agentic_rag_backend.settings import Settings

ENDPOINT_SHARE = 0.9
"""Share of RERANK_TIMEOUT_S that a call of the endpoint may take."""


def open_cross_encoder(settings: Settings) -> PassageScorer | None:
    """Return the cross-encoder. It is loaded, and downloaded if necessary, when it is first needed. None: there is none.

    Raises:
        ConfigurationError: CROSS_ENCODER_MODEL_PATH is not a folder with a model.
    """
    folder, models = settings.cross_encoder_model_path, models_folder(settings)
    model = reranker_of(settings.cross_encoder_model)
    if folder is None and not settings.cross_encoder_download and not has_files(model, models):
        return None
    # onnxruntime is loaded already, but the tokenizer of a second model is not.
    from agentic_rag_backend.models.reranking.cross_encoder import CrossEncoder

    threads = settings.embedding_threads or os.cpu_count() or 1
    if folder is None:
        hub = Hub(settings.model_hub_url)
        return CrossEncoder(settings.cross_encoder_model, partial(install_model, model, models, hub), threads=threads)
    missing_files = [name for name in (MODEL_FILE, TOKENIZER_FILE) if not (folder / name).is_file()]
    if missing_files:
        raise ConfigurationError(
            f"CROSS_ENCODER_MODEL_PATH must be a folder with {MODEL_FILE} and {TOKENIZER_FILE}; "
            f"{folder} lacks {' and '.join(missing_files)}"
        )
    model_folder: Path = folder
    return CrossEncoder(folder.name, lambda: model_folder, threads=threads)


def open_rerank_endpoint(settings: Settings) -> PassageScorer | None:
    """Return the rerank endpoint; None: none is configured.

    Raises:
        ConfigurationError: RERANK_URL is not an address.
    """
    if settings.rerank_url is None:
        return None
    # Shares its retries with the SDK of the language model, which is slow to import.
    from agentic_rag_backend.models.reranking.http import EndpointAddress, HttpScorer

    if not settings.rerank_url.startswith(("http://", "https://")):
        raise ConfigurationError(f"RERANK_URL must begin with http:// or https://; got {settings.rerank_url[:80]!r}")
    key = settings.rerank_api_key
    return HttpScorer(
        EndpointAddress(
            url=settings.rerank_url,
            api=settings.rerank_api,
            model=settings.rerank_model,
            api_key=key.get_secret_value() if key is not None else None,
            # Ends before the stage does, so that the circuit breaker sees a server that does not answer.
            timeout_s=ENDPOINT_SHARE * settings.rerank_timeout_s,
        )
    )


def rerank_defaults(settings: Settings) -> RerankDefaults:
    """Return the default reranker and time limit.

    Raises:
        ConfigurationError: RERANKER is unknown.
    """
    name = settings.reranker
    if name is not None and name not in RERANKERS:
        raise ConfigurationError(f"RERANKER must be one of {', '.join(RERANKERS)}; got {name[:80]!r}")
    chosen = name or RerankDefaults().reranker
    return RerankDefaults(reranker=chosen, hybrid=chosen if settings.hybrid_rerank else None, timeout_s=settings.rerank_timeout_s)
