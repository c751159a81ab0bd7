"""Options of the agentic loop: the deployment's defaults, completed by those of a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from agentic_rag_backend.prompts import Prompt
from agentic_rag_backend.retrieval.agentic.stopping import EPSILON, FIXED_ROUNDS, LEAST_ROUNDS, Budget, Limits
from agentic_rag_backend.retrieval.options.model import Name, RequestOptions, optional_field

MAX_ROUNDS = 4
ROUNDS_BY_RULES = 2
"""Maximum number of rounds without a model. A third one changes no R@5 of MuSiQue or HotpotQA, and costs as much again."""
CALLS, TOKENS, SECONDS = 6, 20_000, 30.0
SESSION_S = 1800.0
COVERED = 0.8
"""Share of the question's words in one passage at which rules search no second round. It spares nearly half of the second rounds
on SQuAD, one of six on HotpotQA and hardly any on MuSiQue, and changes no R@5 of the three."""
SHARE_OF_TIMEOUT = 0.8
"""Share of a request's time limit that the loop may use. An answer needs the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgenticOptions:
    """Options of the loop.

    Attributes:
        query_planning: plan the searches. False: every round searches the question as it is.
        novelty_circuit: stop by novelty. False: exactly `FIXED_ROUNDS` rounds, unless the request sets ``max_rounds``.
        negative_memory: keep the negative constraints of the plan and of the reflections.
        cascade_recall: search by vector, BM25 and graph. False: by vector alone.
        policy: name of the policy that ends the loop. None: by ``novelty_circuit``.
        max_rounds: maximum number of rounds. ``fixed_rounds`` has `FIXED_ROUNDS`, and rules at most `ROUNDS_BY_RULES`, unless
            ``asked_rounds`` is set.
        asked_rounds: the number of rounds that the request names.
        epsilon: least novelty of a round that another one follows, in [0, 1].
        budget: limits of model requests, tokens and seconds.
        session_s: seconds for which a session is kept after its last request.
        planner_prompt: prompt of the planner. None: the built-in one.
        by_rules: no model plans and reflects.
    """

    query_planning: bool = True
    novelty_circuit: bool = True
    negative_memory: bool = True
    cascade_recall: bool = True
    policy: str | None = None
    max_rounds: int = MAX_ROUNDS
    asked_rounds: int | None = None
    epsilon: float = EPSILON
    budget: Budget = field(default_factory=lambda: Budget(CALLS, TOKENS, SECONDS))
    session_s: float = SESSION_S
    planner_prompt: Prompt | None = None
    by_rules: bool = False

    def of(self, options: Mapping[str, Any], timeout_s: float | None = None, *, model: bool = True) -> AgenticOptions:
        """Return the options of a request. Those that it does not name keep the deployment's values.

        Args:
            options: of the request.
            timeout_s: time limit of the request in seconds.
            model: whether there is a language model. Without a budget for calls, it is not used.
        """
        seconds = float(options.get("max_seconds", self.budget.seconds))
        if timeout_s is not None:
            seconds = min(seconds, SHARE_OF_TIMEOUT * timeout_s)
        budget = Budget(
            int(options.get("max_calls", self.budget.calls)), int(options.get("max_tokens", self.budget.tokens)), seconds
        )
        plain = (
            "query_planning",
            "novelty_circuit",
            "negative_memory",
            "cascade_recall",
            "policy",
            "epsilon",
        )
        values = {name: options[name] for name in plain if name in options}
        by_rules = not model or budget.calls == 0
        return replace(self, budget=budget, asked_rounds=options.get("max_rounds"), by_rules=by_rules, **values)

    @property
    def stop_policy(self) -> str:
        """The name of the policy that applies."""
        return self.policy or ("novelty" if self.novelty_circuit else "fixed_rounds")

    @property
    def limits(self) -> Limits:
        """The limits that policies read."""
        limit = min(self.max_rounds, ROUNDS_BY_RULES) if self.by_rules else self.max_rounds
        default = FIXED_ROUNDS if self.stop_policy == "fixed_rounds" else limit
        return Limits(self.asked_rounds or default, self.epsilon, self.budget)


def circuit_without_effect(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a warning for a ``novelty_circuit`` that ``policy`` contradicts and overrides."""
    policy, circuit = options.get("policy"), options.get("novelty_circuit")
    if policy is None or circuit is None or circuit is (policy == "novelty"):
        return ()
    return (f"options.novelty_circuit has no effect: options.policy is {policy!r}",)


class AgenticRequestOptions(RequestOptions):
    query_planning: bool = optional_field(description="plan the searches; false: each round searches the question as it is")
    novelty_circuit: bool = optional_field(description=f"stop after a round with little news; false: {FIXED_ROUNDS} rounds")
    negative_memory: bool = optional_field(description="keep the negative constraints of plan and reflection")
    cascade_recall: bool = optional_field(description="search by vector, BM25 and graph; false: by vector alone")
    policy: Literal["novelty", "fixed_rounds", "budget"] = optional_field(
        description="when the rounds end; default: novelty, or fixed_rounds without novelty_circuit"
    )
    max_rounds: int = optional_field(ge=LEAST_ROUNDS, le=FIXED_ROUNDS, description="maximum number of rounds")
    epsilon: float = optional_field(ge=0, le=1, description="least novelty of a round that another one follows")
    max_calls: int = optional_field(ge=1, le=32, description="maximum number of requests to the language model")
    max_tokens: int = optional_field(
        ge=100, le=1_000_000, description="tokens after which no further request to the model is made"
    )
    max_seconds: float = optional_field(ge=0.1, le=600, description="seconds after which no further round begins")
    negative_constraints: list[Name] = optional_field(
        max_length=10,
        description="what results must not be about: `entity:ID`, `NAME=VALUE` of an attribute, or a phrase",
    )
    session_id: str = optional_field(
        min_length=1,
        max_length=64,
        pattern=r"^[A-Za-z0-9._:-]+$",
        description="session of the caller's API key, which keeps verified facts and negative constraints between requests",
    )
