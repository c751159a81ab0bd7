"""Opening of the reader that checks claims."""

from __future__ import annotations

import os

from agentic_rag_backend.container.embedders import models_folder
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models.entailment.base import EntailmentReader
from agentic_rag_backend.models.entailment.reader_facts import read_reader_facts
from agentic_rag_backend.models.installation import require_files
from agentic_rag_backend.models.registry import READER, known_model
from agentic_rag_backend.settings import Settings


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
