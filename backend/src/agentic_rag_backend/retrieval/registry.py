"""Every strategy by name: what it is, how it is built, what else it is called."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.retrieval.auto import Auto
from agentic_rag_backend.retrieval.base import Retriever, Stores
from agentic_rag_backend.retrieval.community import CommunityRetriever
from agentic_rag_backend.retrieval.dual_level import DualLevel, DualLevelOptions
from agentic_rag_backend.retrieval.graph import GraphRetriever
from agentic_rag_backend.retrieval.graph_cache import TenantGraphs
from agentic_rag_backend.retrieval.hybrid import FUSIONS, Hybrid
from agentic_rag_backend.retrieval.single_leg import SingleLeg

DUAL_LEVEL = "dual_level"


@dataclass(frozen=True, slots=True)
class Parts:
    """What strategies are built from."""

    stores: Stores
    graphs: TenantGraphs
    dual_level: DualLevelOptions


@dataclass(frozen=True, slots=True)
class Strategy:
    """One row of ``GET /strategies``; ``options`` is the JSON Schema of the request's ``options``."""

    description: str
    build: Callable[[Parts], Retriever]
    aliases: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def _graph(parts: Parts) -> Retriever:
    return GraphRetriever(parts.stores, parts.graphs)


def _dual_level(parts: Parts) -> Retriever:
    return DualLevel(_graph(parts), CommunityRetriever(parts.stores), parts.dual_level)


_ENTITIES = {
    "type": "array",
    "items": {"type": "string", "maxLength": 512},
    "maxItems": 20,
    "description": "names or ids to start from",
}
_LEVEL = {"type": "integer", "minimum": 0, "maximum": 9, "description": "keep communities of one level; 0 is the coarsest"}

STRATEGIES: Mapping[str, Strategy] = {
    "auto": Strategy("dual_level where it is switched on, graph otherwise", lambda p: Auto(_graph(p), _dual_level(p))),
    "dense": Strategy(
        "nearest chunks by embedding", lambda p: SingleLeg(p.stores, p.graphs, dense=True), ("basic", "semantic", "vector")
    ),
    "sparse": Strategy("BM25 over chunks", lambda p: SingleLeg(p.stores, p.graphs, dense=False), ("bm25",)),
    "hybrid": Strategy(
        "dense and BM25 fused",
        lambda p: Hybrid(p.stores, p.graphs),
        options={"fusion": {"type": "string", "enum": list(FUSIONS), "default": "min_max"}},
    ),
    "graph": Strategy(
        "hybrid seeds, personalised PageRank over chunks and entities, a second hop, facts",
        _graph,
        ("graphrag", "local"),
        {"entities": _ENTITIES},
    ),
    "community": Strategy("themes: summaries of communities", lambda p: CommunityRetriever(p.stores), options={"level": _LEVEL}),
    DUAL_LEVEL: Strategy(
        "graph and community in parallel, blended by weight", _dual_level, options={"entities": _ENTITIES, "level": _LEVEL}
    ),
}


class RetrieverRegistry:
    """Builds each strategy once; what a tenant has switched on is read from the request."""

    def __init__(self, parts: Parts) -> None:
        self._retrievers = {name: strategy.build(parts) for name, strategy in STRATEGIES.items()}
        self._names = {alias: name for name, strategy in STRATEGIES.items() for alias in (name, *strategy.aliases)}

    def canonical(self, name: str) -> str:
        """Return the strategy's name for itself or an alias.

        Raises:
            InvalidRequest: there is none of that name.
        """
        if name not in self._names:
            raise InvalidRequest(f"unknown strategy {name[:80]!r}; known are {', '.join(sorted(self._names))}")
        return self._names[name]

    def get(self, name: str) -> Retriever:
        """Return the retriever of that name or alias.

        Raises:
            InvalidRequest: there is none of that name.
        """
        return self._retrievers[self.canonical(name)]

    def describe(self, *, dual_level: bool) -> list[dict[str, Any]]:
        """Return the rows of ``GET /strategies``."""
        return [
            {
                "name": name,
                "description": strategy.description,
                "aliases": list(strategy.aliases),
                "options": {"type": "object", "properties": dict(strategy.options), "additionalProperties": False},
                "available": name != DUAL_LEVEL or dual_level,
                "why_not": None
                if name != DUAL_LEVEL or dual_level
                else 'switched off for this tenant: PATCH /features {"DUAL_LEVEL_RETRIEVAL_ENABLED": true}',
            }
            for name, strategy in STRATEGIES.items()
        ]


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse options that the strategy does not have, or with values outside their schema.

    Raises:
        InvalidRequest: naming the option and what is allowed.
    """
    known = STRATEGIES[name].options
    for option, value in options.items():
        schema = known.get(option)
        if schema is None:
            raise InvalidRequest(f"strategy {name!r} has no option {option[:80]!r}; it has {', '.join(known) or 'none'}")
        if option == "fusion" and value not in schema["enum"]:
            raise InvalidRequest(f"options.fusion must be one of {', '.join(schema['enum'])}; got {_shown(value)}")
        if option == "level" and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= schema["maximum"]):
            raise InvalidRequest(f"options.level must be an integer from 0 to {schema['maximum']}; got {_shown(value)}")
        if option == "entities" and not (
            isinstance(value, list) and len(value) <= schema["maxItems"] and all(isinstance(item, str) for item in value)
        ):
            raise InvalidRequest(f"options.entities must be a list of at most {schema['maxItems']} names; got {_shown(value)}")
        if option == "entities" and any(len(item) > schema["items"]["maxLength"] for item in value):
            longest, limit = max(map(len, value)), schema["items"]["maxLength"]
            raise InvalidRequest(f"options.entities: a name has at most {limit} characters; got {longest}")


def _shown(value: Any) -> str:
    # Not repr: a value may be nested deeper than Python follows.
    return reprlib.repr(value)[:80]
