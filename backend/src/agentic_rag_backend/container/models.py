"""Opening of the configured embedder, the reader that checks claims, and the models that rerankers ask."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.models.embedding.model_files import MODEL_FILE, TOKENIZER_FILE
from agentic_rag_backend.models.entailment.base import EntailmentReader
from agentic_rag_backend.models.facts_files import read_reader_facts
from agentic_rag_backend.models.installation import Hub, has_files, install_model, require_files
from agentic_rag_backend.models.registry import READER, KnownModel, known_model, reranker_of
from agentic_rag_backend.models.reranking.base import PassageScorer
from agentic_rag_backend.retrieval.requests.builder import RerankDefaults
from agentic_rag_backend.retrieval.rerank.registry import RERANKERS
from agentic_rag_backend.settings import DEFAULT_EMBEDDING_MODEL, Settings


def models_folder(settings: Settings) -> Path:
    """Return the folder of the installed models."""
    return settings.data_dir / "models"


def open_embedder(settings: Settings) -> Embedder:
    """Return the configured embedder.

    Raises:
        ConfigurationError: EMBEDDING_MODEL is unknown or not installed, or a setting is missing.
    """
    if settings.embedder == "bundled":
        return open_encoder(settings, _named_encoder(settings))
    # The SDK would be a fifth of all imports of a process without an endpoint.
    from agentic_rag_backend.models.embedding.openai_embedder import OpenAIEmbedder, RequestTexts

    return OpenAIEmbedder(
        api_key=_embedding_key(settings),
        base_url=settings.embedding_base_url or settings.openai_base_url,
        model=settings.embedding_model or DEFAULT_EMBEDDING_MODEL,
        dimensions=settings.embedding_dimensions,
        timeout_s=settings.llm_timeout_s,
        max_concurrency=settings.llm_max_concurrency,
        texts=RequestTexts(
            question_prefix=settings.embedding_question_prefix,
            passage_prefix=settings.embedding_passage_prefix,
            batch_size=settings.embedding_batch_size,
        ),
    )


def open_encoder(settings: Settings, model: KnownModel | None) -> BundledEmbedder:
    """Return an encoder in this process. None: that of EMBEDDING_MODEL_PATH, or the bundled one.

    Raises:
        ConfigurationError: the model is not installed, or cannot be loaded.
    """
    if model is not None:
        require_files(model, models_folder(settings))
    return BundledEmbedder(
        model_path=_folder(settings, model),
        facts=model.facts if model else None,
        threads=settings.embedding_threads,
        arithmetic=settings.embedding_arithmetic,
        niceness=settings.background_niceness,
    )


def tokenizer_file(settings: Settings) -> Path | None:
    """Return the tokenizer that measures chunks; None for the bundled one."""
    folder = _folder(settings, _named_encoder(settings))
    return folder / TOKENIZER_FILE if folder is not None else None


def model_key(settings: Settings, purpose: str) -> str:
    """Return the key of the language model's endpoint. A local endpoint often requires no key and accepts any text.

    Raises:
        ConfigurationError: there is no key for ``purpose``, and the endpoint is OpenAI's, which requires one.
    """
    if settings.openai_api_key is not None:
        return settings.openai_api_key.get_secret_value()
    if settings.openai_base_url is None:
        raise ConfigurationError(f"{purpose} requires OPENAI_API_KEY, or OPENAI_BASE_URL of an endpoint without keys")
    return "none"


def _embedding_key(settings: Settings) -> str:
    if settings.embedding_api_key is not None:
        return settings.embedding_api_key.get_secret_value()
    # The key of the language model is for its own address. Another server must not receive it.
    return "none" if settings.embedding_base_url is not None else model_key(settings, "EMBEDDER=openai")


def _named_encoder(settings: Settings) -> KnownModel | None:
    """Return the known encoder that EMBEDDING_MODEL names; None for another one."""
    if settings.embedder != "bundled" or settings.embedding_model is None:
        return None
    if settings.embedding_model_path is not None:
        raise ConfigurationError(
            "EMBEDDING_MODEL and EMBEDDING_MODEL_PATH name two encoders for EMBEDDER=bundled; set one of them"
        )
    try:
        return known_model(settings.embedding_model, "encoder")
    except ConfigurationError as error:
        raise ConfigurationError(f"EMBEDDING_MODEL: {error.message}; models of an endpoint need EMBEDDER=openai") from None


def _folder(settings: Settings, model: KnownModel | None) -> Path | None:
    if model is None:
        return settings.embedding_model_path
    return models_folder(settings) / model.name if model.files else None


def open_reader(settings: Settings) -> EntailmentReader | None:
    """Return the reader of CLAIM_VERIFIER=nli, loaded and tried. None for another verifier.

    Raises:
        ConfigurationError: the model is not installed, or cannot be loaded.
    """
    if settings.claim_verifier != "nli":
        return None
    from agentic_rag_backend.models.entailment.reader import OnnxReader

    folder, threads = settings.claim_verifier_model_path, settings.embedding_threads or os.cpu_count() or 1
    try:
        if folder is None:
            folder = require_files(known_model(READER, "reader"), models_folder(settings))
        return OnnxReader(folder.name, folder, read_reader_facts(folder), threads=threads)
    except ConfigurationError as error:
        raise ConfigurationError(f"CLAIM_VERIFIER=nli: {error.message}") from error


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
