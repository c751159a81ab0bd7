"""DSPy's language model on our port: retries, limits, counting and settings are those of the port."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dspy
from dspy.lm15 import Message as DspyMessage
from dspy.lm15 import Request, Response, Usage

from agentic_rag_backend.models.llm.base import LanguageModel, Message, ModelReply, ModelRequest
from agentic_rag_backend.plugins.planner_optimizer.dspy_adapter.bridge import Bridge

PROPOSAL = "planner_proposal"
"""Purpose of the calls, for usage and metrics."""
MAX_TOKENS = 4_096
_EMPTY = " "
"""DSPy refuses messages without text."""


class PortEngine:
    """Engine of `dspy.LM` (DSPy 3.4): one request, one reply of the port's model.

    DSPy has a cache and retries of its own. `language_model` turns both off.
    """

    def __init__(self, bridge: Bridge, model: LanguageModel) -> None:
        self._bridge = bridge
        self._model = model

    def __deepcopy__(self, memo: dict[int, Any]) -> PortEngine:
        return self

    def complete(self, request: Request) -> Response:
        """Return the model's reply.

        Raises:
            Stopped: the budget is spent, or the model does not answer.
        """
        reply: ModelReply = self._bridge.run(self._model.complete(_to_port(request)))
        return Response(
            id=None,
            model=reply.model,
            message=DspyMessage.assistant(reply.text or _EMPTY),
            finish_reason="stop",
            usage=Usage(input_tokens=reply.usage.prompt_tokens, output_tokens=reply.usage.completion_tokens),
        )

    def stream(self, request: Request) -> Iterator[Any]:
        """Refuse: optimizers do not stream."""
        raise NotImplementedError("this engine answers in one piece")

    def close(self) -> None:
        """Do nothing: the model belongs to the caller."""


def language_model(bridge: Bridge, model: LanguageModel) -> Any:
    """Return DSPy's language model. It caches nothing, on disk or in memory."""
    return dspy.LM(model.name, engine=PortEngine(bridge, model), cache=False, num_retries=0)


def _to_port(request: Request) -> ModelRequest:
    system = request.system if isinstance(request.system, str) else "\n".join(part.text for part in request.system or ())
    turns = [
        Message("assistant" if message.role == "assistant" else "user", message.text or _EMPTY) for message in request.messages
    ]
    return ModelRequest(
        prompt=PROPOSAL,
        messages=(*((Message("system", system),) if system else ()), *turns),
        temperature=min(2.0, max(0.0, request.config.temperature or 0.0)),
        max_tokens=request.config.max_tokens or MAX_TOKENS,
    )
