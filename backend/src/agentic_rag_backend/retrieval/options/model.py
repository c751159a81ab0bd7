"""Options that a request may set: the base of the options of strategies and rerankers, and the correction of a request."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from types import GenericAlias
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from agentic_rag_backend.domain.query import Correction
from agentic_rag_backend.errors import InvalidRequest, in_field
from agentic_rag_backend.wording import format_value

Schema = Mapping[str, Any]
NAME_CHARACTERS, MAX_NAMES = 512, 20
Name = Annotated[str, Field(max_length=NAME_CHARACTERS)]


def optional_field(**limits: Any) -> Any:
    """Return a field that has no default in requests: the strategy decides without it."""
    return Field(None, **limits)


class RequestOptions(BaseModel):
    """Options of a request. Every field has a default. Values of another kind are refused, not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @classmethod
    @cache
    def schemas(cls) -> Mapping[str, Schema]:
        """Return the JSON Schema of each option by its name in requests, this class's first, without nulls and titles."""
        inherited = {name for base in cls.__bases__ if issubclass(base, RequestOptions) for name in base.schemas()}
        properties = cls.model_json_schema().get("properties", {})
        return {
            name: {key: value for key, value in properties[name].items() if key != "title" and value is not None}
            for name in sorted(properties, key=lambda name: name in inherited)
        }

    @classmethod
    def check_option(cls, option: str, value: Any, *, of: str = "options") -> None:
        """Validate one option. ``of`` is the object of the request that holds it.

        Raises:
            InvalidRequest: the value is not valid. The message names the option and the allowed values.
        """
        try:
            cls.model_validate({option: value})
        except ValidationError as error:
            problem = error.errors(include_url=False, include_context=False)[0]
            with in_field(option):
                _refuse(f"{of}.{option}", value, cls.schemas()[option], problem)


def _refuse(option: str, value: Any, schema: Schema, problem: Mapping[str, Any]) -> None:
    """Raise the error of a value that pydantic refuses."""
    kind, item, path = problem["type"], problem["input"], problem["loc"][1:]
    if path and schema["type"] == "array" and not schema.get("minItems", 0) <= len(value) <= schema["maxItems"]:
        path = kind = ""  # its size is refused before its items
    if path and kind == "literal_error":
        names = schema["properties"] if "properties" in schema else schema["items"]["enum"]
        raise InvalidRequest(f"{option} must have names among {', '.join(names)}; got {format_value(item)}")
    if path and "properties" in schema:
        with in_field(path[0]):
            _refuse(f"{option}.{path[0]}", item, schema["properties"][path[0]], {**problem, "loc": path})
    if kind == "string_too_long" and path:
        raise InvalidRequest(f"{option}: a name has at most {schema['items']['maxLength']} characters; got {len(item)}")
    if kind == "string_pattern_mismatch":
        raise InvalidRequest(f"{option} must match the pattern {schema['pattern'].strip('^$')}; got {format_value(value)}")
    got = f"{len(value)} characters" if kind in ("string_too_long", "string_too_short") else format_value(value)
    raise InvalidRequest(f"{option} must be {_describe_schema(schema)}; got {got}")


def _describe_schema(schema: Schema) -> str:
    """Return what a value must be."""
    match schema:
        case {"enum": names}:
            return f"one of {', '.join(names)}"
        case {"type": "boolean"}:
            return "true or false"
        case {"type": "integer", "minimum": low, "maximum": high}:
            return f"an integer from {low} to {high}"
        case {"type": "number", "minimum": low, "maximum": high}:
            return f"a number from {low} to {high}"
        case {"type": "string", "minLength": least, "maxLength": most}:
            return f"a text of {least} to {most} characters"
        case {"type": "array", "maxItems": most, "items": items}:
            size = f"{schema['minItems']} to {most}" if "minItems" in schema else f"at most {most}"
            bounds = f"integers from {items['minimum']} to {items['maximum']}" if items["type"] == "integer" else "names"
            return f"a list of {size} {bounds}"
        case _:
            return "an object of names and numbers"


def unknown_levels(option: str, levels_asked: Iterable[int], levels_known: Collection[int]) -> tuple[str, ...]:
    """Return a warning about the levels of an option that do not exist. If none is known, nothing can be said."""
    unknown = sorted(set(levels_asked).difference(levels_known))
    if not unknown or not levels_known:
        return ()
    none, known_levels = (", ".join(map(str, levels)) for levels in (unknown, sorted(levels_known)))
    return (f"options.{option}: there is no level {none}; levels are {known_levels}",)


def shares_of(names: Collection[str]) -> Any:
    """Return the type of an object from names to numbers in [0, 1]."""
    share = {"type": "number", "minimum": 0, "maximum": 1}
    schema = {"type": "object", "properties": dict.fromkeys(names, share), "additionalProperties": False}
    shares = GenericAlias(dict, (one_of(names), Annotated[float, Field(ge=0, le=1)]))
    return Annotated[shares, Field(min_length=1), WithJsonSchema(schema)]


def one_of(names: Collection[str]) -> Any:
    """Return the type of one of some names."""
    return Literal[tuple(names)]


class SyntheticQuestionsOption(RequestOptions):
    synthetic_questions: bool = optional_field(
        description="whether to search the synthetic questions of chunks, too; default: whether SYNTHETIC_QUESTIONS is on"
    )


class EntitiesOption(RequestOptions):
    entities: list[Name] = optional_field(max_length=MAX_NAMES, description="names or ids to start from")


class LowStrategyOption(RequestOptions):
    low_strategy: Literal["auto", "graph", "hybrid", "agentic"] = optional_field(
        description="strategy that finds the passages; auto: hybrid for questions that ask for an account, otherwise graph, or "
        "in `auto` agentic; agentic: rounds of graph searches without a language model",
    )


class MaxCallsOption(RequestOptions):
    max_calls: int = optional_field(ge=1, le=32, description="maximum number of requests to the language model")


class ThemesOptions(MaxCallsOption):
    """Options of every strategy that reads communities."""

    level: int = optional_field(ge=0, le=9, description="keep communities of one level; 0 is the coarsest")
    budget_tokens: int = optional_field(
        ge=200, le=100_000, description="tokens of all themes together, estimated at four characters each"
    )
    rate: Literal["score", "model"] = Field("score", description="how the relevance of themes is decided")


class ContradictionsOption(RequestOptions):
    """Options of every strategy."""

    contradictions: bool = Field(False, description="whether to return statements that contradict a result")


class CorrectionOptions(MaxCallsOption):
    """Options of a correction, in ``corrective`` and of the strategy `corrective`."""

    relevance_threshold: float = Field(0.7, ge=0, le=1, description="least grade of a relevant result")
    max_refinement_attempts: int = Field(2, ge=0, le=5, description="maximum number of searches with other wordings")
    min_relevant: int = Field(1, ge=1, le=10, description="relevant results that are sufficient")


_FIELDS = {
    "relevance_threshold": "threshold",
    "max_refinement_attempts": "attempts",
    "min_relevant": "min_relevant",
    "max_calls": "max_calls",
}
CorrectionValue = bool | Mapping[str, Any] | None


def correction_of(options: Mapping[str, Any]) -> Correction:
    """Return the correction that valid options describe."""
    return Correction(**{field: options[option] for option, field in _FIELDS.items() if option in options})


def resolve_correction(value: CorrectionValue, strategy: str, correctable: Collection[str]) -> Correction | None:
    """Return the correction of a request; None: none.

    Args:
        value: as the caller wrote it.
        strategy: canonical name.
        correctable: the strategies that can be corrected.

    Raises:
        InvalidRequest: the value is neither a boolean nor an object, an option is unknown or invalid, or the strategy cannot be
            corrected.
    """
    if value is None or value is False:
        return None
    options = {} if value is True else value
    if not isinstance(options, Mapping):
        raise InvalidRequest(f"corrective must be true, false or an object; got {format_value(value)}")
    if strategy not in correctable:
        raise InvalidRequest(f"corrective applies to {', '.join(sorted(correctable))}; got the strategy {strategy!r}")
    schemas = CorrectionOptions.schemas()
    for option, chosen in options.items():
        if option not in schemas:
            raise InvalidRequest(f"corrective has no option {option[:80]!r}; it has {', '.join(schemas)}", field=option)
        CorrectionOptions.check_option(option, chosen, of="corrective")
    return correction_of(options)
