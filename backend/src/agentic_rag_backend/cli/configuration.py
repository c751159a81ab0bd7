"""Settings of commands: errors in one line, warnings about likely misspellings, and the source of each value."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentic_rag_backend.settings import Settings

_MASK = "********"
_SUGGESTED = "bge-small-en-v1.5"
_warned: set[str] = set()


@dataclass(frozen=True, slots=True)
class Effective:
    """A setting as `config` shows it. The values of secrets are masked."""

    name: str
    value: str
    source: str
    description: str


def load_settings(**options: Any) -> Settings:
    """Return the settings of this process. Options that are not None override the environment.

    Variables that look like misspelt settings cause a warning on stderr, once per process.

    Raises:
        ConfigurationError: a value is outside its limits. The message names setting, limit and value.
    """
    from agentic_rag_backend.settings_reading import misspelt_settings, read_settings

    for misspelt in misspelt_settings():
        if misspelt.name not in _warned:
            _warned.add(misspelt.name)
            sys.stderr.write(f"warning: {misspelt}\n")
    return read_settings(**{name: value for name, value in options.items() if value is not None})


def list_effective(settings: Settings, **options: Any) -> list[Effective]:
    """Return every setting with its value and source."""
    from agentic_rag_backend.settings_derived import source_of
    from agentic_rag_backend.settings_reading import DEFAULT, origins_of

    origins = {name: source_of(name, settings.model_fields_set) for name in settings.derived}
    origins |= origins_of({name: value for name, value in options.items() if value is not None})
    return [
        Effective(name.upper(), _show_value(getattr(settings, name)), origins.get(name, DEFAULT), field.description or "")
        for name, field in type(settings).model_fields.items()
    ]


def _show_value(value: object) -> str:
    from pydantic import SecretStr

    from agentic_rag_backend.settings_reading import without_password

    if isinstance(value, SecretStr):
        return _MASK
    return "" if value is None else without_password(str(value))


def models_of(settings: Settings) -> dict[str, str]:
    """Return descriptions of the language model and of the embedder, which ``serve`` and ``worker`` print at the start."""
    from agentic_rag_backend.settings import DEFAULT_EMBEDDING_MODEL

    defaults = {
        "llm": "extractive: answers quote the documents, no language model is called",
        "embedder": "bundled: all-MiniLM-L6-v2 in this process",
    }
    models = dict(defaults)
    endpoint = settings.openai_base_url or "api.openai.com"
    if settings.llm == "openai":
        models["llm"] = f"openai: {settings.llm_model} at {_show_value(endpoint)}"
    if settings.embedder == "openai":
        address = settings.embedding_base_url or endpoint
        models["embedder"] = f"openai: {settings.embedding_model or DEFAULT_EMBEDDING_MODEL} at {_show_value(address)}"
    elif settings.embedding_model is not None:
        models["embedder"] = f"bundled: {settings.embedding_model}, in this process"
    elif settings.embedding_model_path is not None:
        models["embedder"] = f"bundled: the model in {settings.embedding_model_path}, in this process"
    return {name: text + (" (the default)" if text == defaults[name] else "") for name, text in models.items()}


def models_line(settings: Settings) -> str:
    """Return the descriptions of `models_of` in one line."""
    return " · ".join(f"{name.upper()} {text}" for name, text in models_of(settings).items())


def suggest_encoder(settings: Settings) -> str | None:
    """Return a line about a better encoder. None if it is installed, or if another encoder than the bundled one is in use.

    Only the data folder is read: no request is sent.
    """
    from agentic_rag_backend.container.models import models_folder
    from agentic_rag_backend.models.installation import has_files
    from agentic_rag_backend.models.registry import BUNDLED, MODELS

    bundled = settings.embedder == "bundled" and settings.embedding_model in (None, BUNDLED)
    suggested = MODELS[_SUGGESTED]
    if not bundled or settings.embedding_model_path is not None or has_files(suggested, models_folder(settings)):
        return None
    # The figures are those of docs/guide/encoders.md; a test compares them.
    return (
        f"hint: 'agentic-rag models pull {_SUGGESTED}' ({(suggested.size_bytes or 0) / 1e6:.1f} MB) improves searches in English"
        " documents: the first five results of a hybrid search contain .737 of the passages that answer, instead of .693"
        " (MuSiQue). Ingestion takes longer: 11.5 ms of CPU time for a passage, instead of 9"
    )
