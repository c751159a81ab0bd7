"""JSON files with facts about a model, beside its weights."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from agentic_rag_backend.errors import ConfigurationError

T = TypeVar("T")


def read_facts_file(path: Path, adapter: TypeAdapter[T]) -> T | None:
    """Return the facts in a file; None if there is no file.

    Raises:
        ConfigurationError: the file cannot be read, or a fact is outside its limits.
    """
    try:
        return adapter.validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in problem["loc"]) or "the file"
        raise ConfigurationError(f"{path}: {name}: {problem['msg']}") from error
