"""Graphiti's client classes, implemented with our language model and embedder. Graphiti creates no clients itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from pydantic import BaseModel

from agentic_rag_backend.errors import InvalidRequest, ModelUnavailable
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.models.llm.base import LanguageModel, ModelRequest
from agentic_rag_backend.models.llm.base import Message as Turn
from agentic_rag_backend.plugins.graphiti.sdk import (
    VERSION,
    CrossEncoderClient,
    EmbedderClient,
    LLMClient,
    LLMConfig,
    Message,
    ModelSize,
)

_ROLES = ("system", "user", "assistant")
_MAX_TOKENS = 16_384
_ANY_OBJECT = {"type": "object"}


class GraphitiLanguageModel(LLMClient):
    """`LanguageModel` as Graphiti's ``LLMClient``. Limits, retries and validation are those of our port.

    Args:
        fast_model: model name for prompts that Graphiti calls small; None: the port's default.
    """

    def __init__(self, model: LanguageModel, *, fast_model: str | None = None) -> None:
        super().__init__(LLMConfig(model=model.name, small_model=fast_model, temperature=0.0, max_tokens=_MAX_TOKENS))
        self._model = model

    async def _generate_response(
        self,
        messages: list[Message],
        response_model: type[BaseModel] | None = None,
        max_tokens: int = _MAX_TOKENS,
        model_size: ModelSize = ModelSize.medium,
        *,
        model: str | None = None,
    ) -> dict[str, Any]:
        """Return the reply as an object that matches the schema of ``response_model``.

        Raises:
            ModelUnavailable: the configured model writes no text, or does not answer.
        """
        if not self._model.generative:
            raise ModelUnavailable("Graphiti's extraction needs a language model that writes: LLM=openai")
        small = self.small_model if model_size is ModelSize.small else None
        reply = await self._model.complete(
            ModelRequest(
                prompt=f"graphiti@{VERSION}",
                messages=tuple(_take_turn(message) for message in messages),
                schema=strict(response_model.model_json_schema()) if response_model is not None else _ANY_OBJECT,
                model=model or small,
                temperature=0.0,
                max_tokens=max_tokens,
            )
        )
        return dict(reply.parsed or {})


class EpisodeLanguageModel(GraphitiLanguageModel):
    """`GraphitiLanguageModel` of one episode. It answers requests itself if their results would not be used.

    Args:
        dated: whether the episode contains a year. Without one, no time of a fact would be accepted (ADR 32).
        reply_tokens: the maximum length of a reply in tokens. Graphiti asks for 16,384, which would count against the budget.
    """

    def __init__(self, model: LanguageModel, *, dated: bool, reply_tokens: int) -> None:
        super().__init__(model)
        self._dated = dated
        self._reply_tokens = reply_tokens

    async def generate_response(
        self,
        messages: list[Message],
        response_model: type[BaseModel] | None = None,
        max_tokens: int | None = None,
        model_size: ModelSize = ModelSize.medium,
        group_id: str | None = None,
        prompt_name: str | None = None,
        *,
        attribute_extraction: bool = False,
        model: str | None = None,
    ) -> dict[str, Any]:
        """Return the reply to a prompt."""
        if prompt_name == "extract_nodes.extract_summaries_batch":
            return {"summaries": []}  # descriptions of entities are not kept: they cannot be compared with the text
        if prompt_name == "extract_edges.extract_timestamps" and not self._dated:
            return {"valid_at": None, "invalid_at": None}
        reply: dict[str, Any] = await super().generate_response(
            messages,
            response_model,
            min(max_tokens or self._reply_tokens, self._reply_tokens),
            model_size,
            group_id,
            prompt_name,
            attribute_extraction=attribute_extraction,
            model=model,
        )
        return reply


def strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON Schema in the form of structured outputs: every property is required, no other is allowed.

    Graphiti's schemas leave out properties that have a default, and OpenAI refuses such a schema.
    """

    def made(value: Any) -> Any:
        if isinstance(value, list):
            return [made(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        plain = {name: made(member) for name, member in value.items() if name != "default"}
        if isinstance(properties := plain.get("properties"), dict):
            return {**plain, "required": list(properties), "additionalProperties": False}
        return plain

    result: dict[str, Any] = made(schema)
    return result


def _take_turn(message: Message) -> Turn:
    if message.role not in _ROLES:
        raise InvalidRequest(f"a message's role must be one of {', '.join(_ROLES)}; got {message.role!r}")
    return Turn(message.role, message.content)  # type: ignore[arg-type]


class GraphitiEmbedder(EmbedderClient):
    """`Embedder` as Graphiti's ``EmbedderClient``."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    async def create(self, input_data: str | list[str] | Iterable[int] | Iterable[Iterable[int]]) -> list[float]:
        """Return the vector of a text, or of the first text of a list.

        Raises:
            InvalidRequest: the input is neither. Token ids depend on a particular model and are not accepted.
        """
        texts = [input_data] if isinstance(input_data, str) else list(input_data)
        if not texts or not isinstance(texts[0], str):
            raise InvalidRequest("the embedder reads text, not token ids, and at least one")
        (vector,) = await self._embedder.embed([texts[0]])
        return [float(value) for value in vector]

    async def create_batch(self, input_data_list: list[str]) -> list[list[float]]:
        """Return the vectors of all texts, in order."""
        vectors = await self._embedder.embed(input_data_list) if input_data_list else np.zeros((0, 0), np.float32)
        return [[float(value) for value in vector] for vector in vectors]


class NoEmbedder(EmbedderClient):
    """`EmbedderClient` for episodes. Graphiti stores and compares vectors of names and facts; neither is done here."""

    async def create(self, input_data: str | list[str] | Iterable[int] | Iterable[Iterable[int]]) -> list[float]:
        """Return the same vector for every text."""
        return [0.0]

    async def create_batch(self, input_data_list: list[str]) -> list[list[float]]:
        """Return the same vector for every text."""
        return [[0.0] for _ in input_data_list]


class NoReranker(CrossEncoderClient):
    """`CrossEncoderClient` for episodes, which rank nothing."""

    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
        """Return the passages in their order."""
        return [(passage, 0.0) for passage in passages]


class GraphitiReranker(CrossEncoderClient):
    """`CrossEncoderClient` that ranks by the cosine of query and passage, because there is no reranking model yet."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
        """Return each passage with its cosine in [-1, 1], nearest first. Equal passages keep their order."""
        if not passages:
            return []
        cosines = await self._embedder.embed(passages) @ await self._embedder.embed_query(query)
        order = np.argsort(-cosines, kind="stable")
        return [(passages[number], float(cosines[number])) for number in order.tolist()]
