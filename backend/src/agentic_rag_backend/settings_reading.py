"""Reading of settings: readable errors, likely misspellings, and the source of each value."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from dotenv import dotenv_values
from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.settings_file import CONFIG_VARIABLE, read_config_file
from agentic_rag_backend.wording import describe_value, message_of

ENVIRONMENT, DOTENV, CONFIG_FILE, OPTION, DEFAULT = "environment", ".env", "config file", "option", "default"
OTHER_VARIABLES = frozenset({CONFIG_VARIABLE, "AGENTIC_RAG_URL", "AGENTIC_RAG_API_KEY", "POSTGRES_PASSWORD"})
"""Variables of the command line and of docker-compose.yml that are not fields of `Settings`."""
_NEAR = 0.83
"""Minimum similarity of a misspelt name: NEO4J_USERNAME has .83 with NEO4J_USER, TEST_DATABASE_URL has less."""
_SHORT = 5
"""Names up to this length are similar to ordinary words (LLM and LLVM, PORT and SPORT)."""
_PLACES = {ENVIRONMENT: "the environment", DOTENV: ".env", CONFIG_FILE: "the config file", OPTION: "an option"}
_REPEATED = re.compile(r"(.)\1+")
_PASSWORD = re.compile(r"(://[^:/@\s]*):[^@\s]{1,512}@")


@dataclass(frozen=True, slots=True)
class Misspelt:
    """A variable that is not a setting, and the setting that was probably meant."""

    name: str
    likely: str
    source: str

    def __str__(self) -> str:
        return f"{self.name} ({self.source}) is not a setting and has no effect; did you mean {self.likely}?"


def read_settings(**options: Any) -> Settings:
    """Return the settings of this process. ``options`` override the environment.

    Raises:
        ConfigurationError: a value is outside its limits. The message names setting, limit, value, source and default,
            but no values of secrets.
    """
    try:
        return Settings(**options)
    except ValidationError as error:
        origins = origins_of(options)
        raise ConfigurationError(
            "; ".join(_describe_problem(problem, origins) for problem in error.errors(include_url=False))
        ) from None


def origins_of(options: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return the source of each field that is set. The first source with the field counts."""
    environment = {name.lower(): value for name, value in os.environ.items() if value}
    dotenv = {name.lower(): value for name, value in _read_dotenv().items() if value}
    path = environment.get(CONFIG_VARIABLE.lower()) or dotenv.get(CONFIG_VARIABLE.lower())
    file = read_config_file(Path(path), Settings.model_fields) if path else {}
    sources: tuple[tuple[str, Collection[str]], ...] = (
        (OPTION, options or {}),
        (ENVIRONMENT, environment),
        (DOTENV, dotenv),
        (CONFIG_FILE, file),
    )
    return {
        name: next(source for source, names in sources if name in names)
        for name in Settings.model_fields
        if any(name in names for _, names in sources)
    }


def misspelt_settings() -> list[Misspelt]:
    """Return the variables of the environment and of ``.env`` that look like misspelt settings."""
    misspelt = {setting.name: setting for setting in _find_near(os.environ, ENVIRONMENT)}
    return list({**{setting.name: setting for setting in _find_near(_read_dotenv(), DOTENV)}, **misspelt}.values())


def _find_near(names: Iterable[str], source: str) -> Iterator[Misspelt]:
    for name in sorted(names):
        likely = likely_setting(name.upper())
        if likely is not None:
            yield Misspelt(name, likely, source)


@cache
def likely_setting(name: str) -> str | None:
    """Return the setting that a variable's name in capitals probably means. None if it is a setting, or similar to none."""
    known_names = {field.upper() for field in Settings.model_fields}
    if name in known_names or name in OTHER_VARIABLES:
        return None
    close_matches = (match for match in difflib.get_close_matches(name, known_names, n=5, cutoff=0.7) if _is_slip(name, match))
    return next(close_matches, None)


def _is_slip(name: str, setting: str) -> bool:
    """Return whether ``name`` is ``setting`` with a typing error, rather than another name."""
    if name.startswith(f"{setting}_") or name.endswith(f"_{setting}"):
        return False  # another program's, such as OPENAI_API_KEY_TEST or MY_DATABASE_URL
    if len(setting) <= _SHORT:
        # A repeated letter, or exchanged letters: LLMM, PROT. Other short names may be words of their own.
        exchanged = name[:1] == setting[:1] and sorted(name) == sorted(setting)
        return exchanged or _REPEATED.sub(r"\1", name) == _REPEATED.sub(r"\1", setting)
    return difflib.SequenceMatcher(None, name, setting).ratio() >= _NEAR


def _read_dotenv() -> Mapping[str, str | None]:
    return dotenv_values(str(Settings.model_config.get("env_file") or ""))


def without_password(value: str) -> str:
    """Return a value with the password of an address masked."""
    return _PASSWORD.sub(r"\1:********@", value)


def _describe_problem(problem: Any, origins: Mapping[str, str]) -> str:
    """Return the message for a refused value."""
    name = str(problem["loc"][0]) if problem["loc"] else ""
    field = Settings.model_fields.get(name)
    if field is None:
        return f"{name.upper()}: {message_of(problem)}"
    source = [f"set in {_PLACES[origins[name]]}"] if name in origins else []
    if problem["type"] == "value_error":
        return " ".join([message_of(problem), *(f"({part})" for part in source)])
    default = [f"the default is {str(field.default).lower()}"] if field.default is not None else []
    added_text = "; ".join([*source, *default])
    got = "" if is_secret(field) else f"; got {describe_value(without_password(str(problem['input'])))}"
    return f"{name.upper()} must be {describe_allowed_values(field)}{got}" + (f" ({added_text})" if added_text else "")


def is_secret(field: FieldInfo) -> bool:
    """Return whether a field's value must not be shown."""
    return SecretStr in (field.annotation, *get_args(field.annotation))


def describe_allowed_values(field: FieldInfo) -> str:
    """Return the allowed values of a field, as the end of "must be"."""
    optional = type(None) in get_args(field.annotation)
    kind = next(part for part in get_args(field.annotation) if part is not type(None)) if optional else field.annotation
    if get_origin(kind) is Literal:
        *other_values, last_value = get_args(kind)
        return f"{', '.join(other_values)} or {last_value}" if other_values else str(last_value)
    if kind in (int, float):
        return f"a {'whole ' if kind is int else ''}number {_describe_limits(field)}".rstrip()
    return {bool: "true or false", Path: "a path"}.get(kind, "text")  # type: ignore[arg-type]


def _describe_limits(field: FieldInfo) -> str:
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    limits = {name: getattr(limit, name) for limit in field.metadata for name in words if getattr(limit, name, None) is not None}
    if limits.keys() >= {"ge", "le"}:
        return f"from {_format_number(limits['ge'])} to {_format_number(limits['le'])}"
    return " and ".join(f"{words[name]} {_format_number(value)}" for name, value in limits.items())


def _format_number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)
