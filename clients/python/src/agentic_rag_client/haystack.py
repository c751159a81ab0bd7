"""Component for Haystack. Install ``agentic-rag-client[haystack]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.utils import Secret, deserialize_secrets_inplace

from agentic_rag_client import Client
from agentic_rag_client.passages import describe_passages

_OPERATORS: Mapping[str, str] = {"==": "eq", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte", "in": "in"}
_NEGATED: Mapping[str, str] = {"!=": "==", "not in": "in"}


@component
class AgenticRagRetriever:
    """Retrieves passages of a tenant. An asynchronous pipeline runs it in a thread.

    Args:
        base_url: address of the server.
        api_key: key of the tenant; default: the environment variable AGENTIC_RAG_API_KEY.
        top_k: number of passages, 1 to 100.
        filters: of Haystack, or of the server.
        search: further arguments of `Client.search`, such as ``{"strategy": "graph"}``.
    """

    def __init__(
        self,
        base_url: str,
        api_key: Secret = Secret.from_env_var("AGENTIC_RAG_API_KEY"),  # noqa: B008 - an immutable name, as Haystack writes it
        *,
        top_k: int = 5,
        filters: dict[str, Any] | None = None,
        search: dict[str, Any] | None = None,
    ) -> None:
        self.base_url = base_url
        self.api_key = api_key
        self.top_k = top_k
        self.filters = filters
        self.search = search or {}
        self._client: Client | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the component as a dictionary, without the key itself."""
        serialized: dict[str, Any] = default_to_dict(
            self,
            base_url=self.base_url,
            api_key=self.api_key.to_dict(),
            top_k=self.top_k,
            filters=self.filters,
            search=self.search,
        )
        return serialized

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> AgenticRagRetriever:
        """Return the component of a dictionary."""
        deserialize_secrets_inplace(data["init_parameters"], keys=["api_key"])
        restored: AgenticRagRetriever = default_from_dict(cls, data)
        return restored

    def warm_up(self) -> None:
        """Open the connections."""
        if self._client is None:
            self._client = Client(self.base_url, self.api_key.resolve_value())

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    @component.output_types(documents=list[Document])
    def run(self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None) -> dict[str, list[Document]]:
        """Return the passages for a query. ``filters`` replaces that of the component.

        Raises:
            AgenticRagError: the server refused the search.
            ValueError: a filter has an operator that Haystack does not define.
        """
        self.warm_up()
        assert self._client is not None  # noqa: S101 - made by warm_up
        chosen = filters or self.filters
        options = {**self.search, "limit": top_k or self.top_k, "filters": convert_filter(chosen) if chosen else None}
        passages = describe_passages(self._client.search(query, **options))
        return {
            "documents": [
                Document(id=result.id, content=result.content, meta=metadata, score=result.score) for result, metadata in passages
            ]
        }


def convert_filter(filter: Mapping[str, Any]) -> dict[str, Any]:
    """Return a filter of Haystack in the grammar of the server. A filter without ``operator`` is one already.

    Raises:
        ValueError: the operator is unknown.
    """
    if "operator" not in filter:
        return dict(filter)
    operator = str(filter["operator"])
    if "conditions" in filter:
        conditions = [convert_filter(condition) for condition in filter["conditions"]]
        match operator:
            case "AND" | "OR":
                return {operator.lower(): conditions}
            case "NOT":
                return {"not": {"and": conditions}}
        raise ValueError(f"the operator of conditions must be AND, OR or NOT; got {operator[:40]!r}")
    if operator in _NEGATED:  # also holds for documents without the field
        return {"not": convert_filter({**filter, "operator": _NEGATED[operator]})}
    field = str(filter["field"]).removeprefix("meta.")
    if operator not in _OPERATORS:
        raise ValueError(
            f"the operator of a comparison must be one of {', '.join([*_OPERATORS, *_NEGATED])}; got {operator[:40]!r}"
        )
    if filter["value"] is None and operator == "==":
        return {field: {"missing": True}}
    return {field: {_OPERATORS[operator]: filter["value"]}}
