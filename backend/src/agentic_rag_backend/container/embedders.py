"""Opening of the configured embedder."""

from __future__ import annotations

from pathlib import Path

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.models.embedding.model_files import TOKENIZER_FILE
from agentic_rag_backend.models.installation import require_files
from agentic_rag_backend.models.registry import KnownModel, known_model
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
