"""The choice of no language model: answers quote the documents, and no call leaves the process."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from agentic_rag_backend.errors import ModelReplyInvalid
from agentic_rag_backend.models.llm.base import ModelDelta, ModelReply, ModelRequest

_REFUSAL = "LLM=extractive writes no replies; set LLM=openai and a model"


class ExtractiveModel:
    """A `LanguageModel` that refuses every request. Callers look at ``generative`` first."""

    generative = False
    name = "extractive"

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Raise ModelReplyInvalid."""
        raise ModelReplyInvalid(_REFUSAL)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelDelta, None]:
        """Raise ModelReplyInvalid at the first piece."""
        yield ModelDelta((await self.complete(request)).text)

    async def close(self) -> None:
        """Do nothing: it holds no resources."""
