"""Settings as a command reads them: errors in one line, and where each value comes from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from agentic_rag_backend.errors import ConfigurationError

if TYPE_CHECKING:
    from pydantic import ValidationError

    from agentic_rag_backend.settings import Settings

Source = Literal["default", "environment", ".env", "option"]
_MASK = "********"


@dataclass(frozen=True, slots=True)
class Effective:
    """One setting as `config` shows it; a secret's value is masked."""

    name: str
    value: str
    source: Source
    description: str


def load_settings(**options: Any) -> Settings:
    """Return the settings of this process; options that are not None come before the environment.

    Raises:
        ConfigurationError: a value is outside its limits; names setting, limit and value.
    """
    from pydantic import ValidationError

    from agentic_rag_backend.settings import Settings

    try:
        return Settings(**{name: value for name, value in options.items() if value is not None})
    except ValidationError as error:
        raise ConfigurationError(_told(error)) from None


def effective(settings: Settings, **options: Any) -> list[Effective]:
    """Return every setting with its value and where that comes from."""
    environment = {name.lower(): value for name, value in os.environ.items() if value}
    dotenv = _dotenv(settings)
    rows = []
    for name, field in type(settings).model_fields.items():
        source: Source = "default"
        if options.get(name) is not None:
            source = "option"
        elif name in environment:
            source = "environment"
        elif name in dotenv:
            source = ".env"
        rows.append(Effective(name.upper(), _shown(getattr(settings, name)), source, field.description or ""))
    return rows


def _dotenv(settings: Settings) -> Mapping[str, str]:
    from dotenv import dotenv_values

    path = str(type(settings).model_config.get("env_file") or "")
    return {name.lower(): value for name, value in dotenv_values(path).items() if value}


def _shown(value: object) -> str:
    from pydantic import SecretStr

    if isinstance(value, SecretStr):
        return _MASK
    return "" if value is None else str(value)


def _told(error: ValidationError) -> str:
    """Return the problems in one line; the value of a secret is not among what is told."""
    from agentic_rag_backend.settings import Settings

    told = []
    for problem in error.errors(include_url=False):
        name = str(problem["loc"][0]) if problem["loc"] else ""
        field = Settings.model_fields.get(name)
        secret = field is None or "SecretStr" in str(field.annotation)
        message = str(problem["msg"]).removeprefix("Value error, ")
        told.append(f"{name.upper()}: {message}" + ("" if secret else f"; got {str(problem['input'])[:80]!r}"))
    return "; ".join(told)
