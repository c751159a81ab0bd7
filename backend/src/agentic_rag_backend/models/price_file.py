"""Reads the prices of models from the file MODEL_PRICES."""

from __future__ import annotations

from collections.abc import Hashable
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentic_rag_backend.domain.prices import ModelPrice, PriceTable
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.wording import message_of

MAX_BYTES = 1024 * 1024
MAX_PRICE = 1_000_000
"""Maximum price of a million tokens."""
_EXAMPLE = "models: {gpt-4o-mini: {input: 0.15, output: 0.60}}"


class _Price(BaseModel):
    model_config = ConfigDict(extra="forbid")

    input: Annotated[Decimal, Field(ge=0, le=MAX_PRICE, allow_inf_nan=False)]
    output: Annotated[Decimal, Field(ge=0, le=MAX_PRICE, allow_inf_nan=False)] = Decimal(0)


class _PriceFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    models: dict[Annotated[str, Field(min_length=1, max_length=128)], _Price]


class _TextLoader(yaml.BaseLoader):
    """Makes text, lists and mappings. It refuses a key that a mapping has twice: one of the two prices would be lost."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """See `yaml.BaseLoader`. Raises `ConfigurationError`."""
        names = [str(key.value) for key, _ in node.value]
        repeated = next((name for number, name in enumerate(names) if name in names[:number]), None)
        if repeated is not None:
            raise ConfigurationError(f"it names {repeated[:80]!r} twice")
        return super().construct_mapping(node, deep)


def read_prices(path: Path) -> PriceTable:
    """Return the prices in a YAML or JSON file.

    Raises:
        ConfigurationError: the file cannot be read, or a value is outside its limits. The message names the value.
    """
    where = f"MODEL_PRICES {path}"
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigurationError(f"it is larger than {MAX_BYTES} bytes")
        # Prices stay text until they are decimals, so that 0.15 has no rounding error.
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_TextLoader)  # noqa: S506 - makes text, lists, mappings
        entries = _PriceFile.model_validate(content)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error.message}") from None
    except OSError as error:
        raise ConfigurationError(f"{where} cannot be read: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{where} is not YAML or JSON; write for example {_EXAMPLE}") from error
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = ".".join(map(str, problem["loc"])) or "the file"
        raise ConfigurationError(f"{where}: {place[:200]} {message_of(problem)}; write for example {_EXAMPLE}") from None
    return PriceTable(entries.currency, {name: ModelPrice(price.input, price.output) for name, price in entries.models.items()})
