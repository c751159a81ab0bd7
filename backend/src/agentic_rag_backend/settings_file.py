"""Settings from a YAML file, which ``AGENTIC_RAG_CONFIG`` names. The environment and ``.env`` override it."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from agentic_rag_backend.errors import ConfigurationError

CONFIG_VARIABLE = "AGENTIC_RAG_CONFIG"
_LARGEST_BYTES = 1024 * 1024
_NOTHING = frozenset({"", "~", "null", "Null", "NULL"})


def read_config_file(path: Path, known_names: Collection[str]) -> dict[str, str]:
    """Return the settings in the file at ``path``: field names in lower case, values as text like in the environment.

    Args:
        known_names: names of the fields of the settings.

    Raises:
        ConfigurationError: the file cannot be read, is not a YAML mapping, or contains an unknown setting.
    """
    import yaml

    where = f"{CONFIG_VARIABLE} {path}"
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise ConfigurationError(f"{where} is larger than {_LARGEST_BYTES} bytes, the limit of a settings file")
        # Every scalar stays text: `0123` and `on` mean the same as in the environment.
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # noqa: S506 - makes text, lists, mappings
    except OSError as error:
        raise ConfigurationError(f"{where} cannot be read: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        position = f" (line {mark.line + 1})" if mark is not None else ""
        raise ConfigurationError(f"{where} is not YAML{position}: write one setting per line, such as PORT: 8000") from error
    if content is None or content == "":
        return {}
    if not isinstance(content, dict):
        raise ConfigurationError(f"{where} must be a mapping of settings, such as PORT: 8000; got a {_name_kind(content)}")
    return _read_settings(content, known_names, where)


def _read_settings(entries: dict[Any, Any], known_names: Collection[str], where: str) -> dict[str, str]:
    settings: dict[str, str] = {}
    for key, value in entries.items():
        name = str(key).lower()
        if name not in known_names:
            likely = difflib.get_close_matches(name, known_names, n=1)
            hint = f"; did you mean {likely[0].upper()}?" if likely else "; 'agentic-rag config' lists the settings"
            raise ConfigurationError(f"{where}: {str(key)[:80]!r} is not a setting{hint}")
        if name in settings:
            raise ConfigurationError(f"{where} names {name.upper()} twice")
        if not isinstance(value, str):
            raise ConfigurationError(f"{where}: {name.upper()} must be one value; got a {_name_kind(value)}")
        settings[name] = value
    return {name: value for name, value in settings.items() if value not in _NOTHING}


def _name_kind(value: object) -> str:
    if isinstance(value, dict):
        return "mapping"
    return "list" if isinstance(value, list) else "single value"


class ConfigFile(PydanticBaseSettingsSource):
    """The file as a source of settings.

    Args:
        path: of the file; None if no file is named.
    """

    def __init__(self, settings: type[BaseSettings], path: str | None) -> None:
        super().__init__(settings)
        self._path = path

    def __call__(self) -> dict[str, Any]:
        """Return the settings in the file."""
        return dict(read_config_file(Path(self._path), self.settings_cls.model_fields)) if self._path else {}

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return one field's value. The base class requires this method, but nothing calls it."""
        return self().get(field_name), field_name, False
