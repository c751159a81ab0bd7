"""Settings, ``.env.example`` and ``docs/reference/settings.md`` agree.

The two texts are generated: ``python tests/meta/test_settings.py`` regenerates them from ``settings.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from agentic_rag_backend import settings as module
from agentic_rag_backend.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
ENV_EXAMPLE = ROOT / ".env.example"
PAGE = ROOT / "docs" / "reference" / "settings.md"
BEGIN, END = "<!-- generated: settings -->", "<!-- end -->"
UNITS = {"_s": "seconds", "_mb": "MiB"}
_SECTION = re.compile(r"^    # --- (.+)$|^    (\w+):", re.MULTILINE)
_HEAD = """# Every setting with its default. Copy to .env and uncomment the settings to change. The environment overrides .env.
# Each comment: description (unit or values; default). An empty value counts as unset.
"""
_COMPOSE = """
# --- docker-compose.yml only

# password for the PostgreSQL container: letters and digits (secret; unset)
# POSTGRES_PASSWORD=
"""


@dataclass(frozen=True)
class Row:
    """One setting in the form of the texts."""

    name: str
    description: str
    values: str
    default: str


def sections() -> dict[str, list[Row]]:
    """Return the settings by their headings in ``settings.py``."""
    found: dict[str, list[Row]] = {}
    heading = ""
    for match in _SECTION.finditer(Path(module.__file__).read_text(encoding="utf-8")):
        if match[1]:
            heading = match[1]
        elif match[2] in Settings.model_fields:
            found.setdefault(heading, []).append(row_of(match[2], Settings.model_fields[match[2]]))
    return found


def row_of(name: str, field: FieldInfo) -> Row:
    """Return a setting's row."""
    default = "" if field.default is None else str(field.default)
    if isinstance(field.default, bool):
        default = default.lower()
    elif isinstance(field.default, Path):
        default = f"./{field.default}"
    return Row(name.upper(), field.description or "", _values(name, field), default)


def _values(name: str, field: FieldInfo) -> str:
    optional = type(None) in get_args(field.annotation)
    kind = next(part for part in get_args(field.annotation) if part is not type(None)) if optional else field.annotation
    if get_origin(kind) is Literal:
        return " or ".join(get_args(kind))
    if kind is bool:
        return "true or false"
    if kind in (int, float):
        unit = next((unit for suffix, unit in UNITS.items() if name.endswith(suffix)), "")
        limits = " ".join(_limits(field))
        return f"{unit}, {limits}" if unit else limits
    return {Path: "path", SecretStr: "secret"}.get(kind, "text")  # type: ignore[arg-type]


def _limits(field: FieldInfo) -> Iterator[str]:
    words = {"ge": "at least {}", "gt": "above {}", "le": "at most {}", "lt": "below {}"}
    held: dict[str, Any] = {
        name: getattr(limit, name) for limit in field.metadata for name in words if getattr(limit, name, None) is not None
    }
    if "ge" in held and "le" in held:
        yield f"{held['ge']:g} to {held['le']:g}"
        return
    yield ", ".join(words[name].format(f"{value:g}") for name, value in held.items())


def env_example() -> str:
    """Return the content of ``.env.example``."""
    parts = [_HEAD]
    for heading, rows in sections().items():
        parts.append(f"\n# --- {heading}\n")
        for row in rows:
            parts.append(f"\n# {row.description} ({row.values}; {'default ' + row.default if row.default else 'unset'})\n")
            parts.append(f"# {row.name}={row.default}\n")
    return "".join([*parts, _COMPOSE])


def page_part() -> str:
    """Return the generated part of the settings page."""
    parts = []
    for heading, rows in sections().items():
        parts.append(
            f"\n## {heading[0].upper()}{heading[1:]}\n\n| Setting | Default | Unit or values | Description |\n|---|---|---|---|\n"
        )
        for row in rows:
            default = f"`{row.default}`" if row.default else "unset"
            parts.append(f"| `{row.name}` | {default} | {row.values} | {row.description} |\n")
    return "".join(parts)


def replaced(text: str, part: str) -> str:
    """Return a page with its generated part replaced."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{part}\n{END}{rest.partition(END)[2]}"


def test_every_setting_has_a_description_and_a_section() -> None:
    rows = [row for rows in sections().values() for row in rows]

    assert {row.name.lower() for row in rows} == set(Settings.model_fields)
    assert all(row.description and row.values for row in rows)


def test_the_example_file_is_what_the_settings_are() -> None:
    assert ENV_EXAMPLE.read_text(encoding="utf-8") == env_example(), "run: python tests/meta/test_settings.py"


def test_the_example_file_is_accepted_with_every_line_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    file = tmp_path / "all.env"
    file.write_text(re.sub(r"^# (?=[A-Z_]+=)", "", ENV_EXAMPLE.read_text(encoding="utf-8"), flags=re.MULTILINE))

    read = Settings(_env_file=file)  # type: ignore[call-arg]

    for name, field in Settings.model_fields.items():
        assert getattr(read, name) == field.default, name


def test_the_page_is_what_the_settings_are() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert text == replaced(text, page_part()), "run: python tests/meta/test_settings.py"


if __name__ == "__main__":
    ENV_EXAMPLE.write_text(env_example(), encoding="utf-8")
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), page_part()), encoding="utf-8")
