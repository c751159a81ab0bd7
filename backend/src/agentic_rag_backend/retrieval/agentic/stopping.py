"""Options of the agentic loop, and when it stops: the novelty circuit breaker, fixed rounds, or the budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

from agentic_rag_backend.prompts import Prompt
from agentic_rag_backend.retrieval.options.model import Name, RequestOptions, optional_field
from agentic_rag_backend.retrieval.structured_calls import Spending, StructuredCalls

EPSILON = 0.2
LEAST_ROUNDS = 2
FIXED_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Spent:
    """Model requests, tokens and seconds."""

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one request, all inclusive."""

    calls: int
    tokens: int
    seconds: float

    def find_exhausted_limit(self, spent: Spent) -> str | None:
        """Return the name of the first limit that is reached. None: there is some left of each."""
        if spent.seconds >= self.seconds:
            return "seconds"
        if spent.tokens >= self.tokens:
            return "tokens"
        return "calls" if spent.calls and spent.calls >= self.calls else None


@dataclass(frozen=True, slots=True)
class Progress:
    """The rounds so far: the novelty of each, and what all of them spent."""

    novelty: Sequence[float]
    spent: Spent = Spent()

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return len(self.novelty)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that policies read. ``epsilon`` in [0, 1] is the least novelty of a round that another one follows."""

    rounds: int
    epsilon: float
    budget: Budget


def novelty(new_ids: Set[str], earlier_ids: Set[str], *, first: bool) -> float:
    """Return |found \\ known| ÷ |known|: how much a round adds to the passages of the rounds before.

    The first round counts as 1, whether or not it found something. If nothing was known, a later round has 1 if it found
    something and 0 otherwise.

    Args:
        new_ids: ids of the round, after the hard filter.
        earlier_ids: ids of the rounds before, after the hard filter.
    """
    if first:
        return 1.0
    if not earlier_ids:
        return 1.0 if new_ids else 0.0
    return len(new_ids - earlier_ids) / len(earlier_ids)


def by_novelty(progress: Progress, limits: Limits) -> str | None:
    """Stop after a round with a novelty below epsilon."""
    return "novelty" if progress.novelty[-1] < limits.epsilon else None


def by_rounds(progress: Progress, limits: Limits) -> str | None:
    """Stop after the fixed number of rounds only."""
    return None


def by_budget(progress: Progress, limits: Limits) -> str | None:
    """Stop if another round of the mean cost of those before would exceed the budget."""
    spent, rounds = progress.spent, progress.rounds
    after = Spent(
        spent.calls + spent.calls // rounds, spent.tokens + spent.tokens // rounds, spent.seconds + spent.seconds / rounds
    )
    limit = limits.budget
    exceeds = after.calls > limit.calls or after.tokens > limit.tokens or after.seconds > limit.seconds
    return "budget" if exceeds else None


POLICIES: Mapping[str, Callable[[Progress, Limits], str | None]] = MappingProxyType(
    {"novelty": by_novelty, "fixed_rounds": by_rounds, "budget": by_budget}
)
"""Policies by name. Each returns the reason to stop after the last round; None: go on."""


def stop_reason(policy: str, progress: Progress, limits: Limits) -> str | None:
    """Return why the loop stops: the policy's reason, `rounds`, or a limit of the budget. None: another round follows."""
    if reason := POLICIES[policy](progress, limits):
        return reason
    if progress.rounds >= limits.rounds:
        return "rounds"
    limit = limits.budget.find_exhausted_limit(progress.spent)
    return f"budget_{limit}" if limit else None


@dataclass(slots=True)
class Meter:
    """Measures one request against its budget."""

    budget: Budget
    spending: Spending = field(init=False)
    _started: float = field(default_factory=time.monotonic, init=False)

    def __post_init__(self) -> None:
        self.spending = Spending(self.budget.calls)

    @property
    def spent(self) -> Spent:
        """The consumption so far. A started request counts, whether or not it succeeded."""
        usage = self.spending.usage
        tokens = usage.prompt_tokens + usage.completion_tokens
        return Spent(self.spending.begun, tokens, time.monotonic() - self._started)

    def may_call(self, calls: StructuredCalls) -> bool:
        """Return whether there is a model, and budget for one of its requests."""
        return calls.possible and self.spending.left > 0 and self.budget.find_exhausted_limit(self.spent) is None

    def within_time(self, calls: StructuredCalls) -> StructuredCalls:
        """Return the calls with a time limit that ends with the budget."""
        remaining_s = max(0.001, self.budget.seconds - self.spent.seconds)
        return replace(calls, timeout_s=min(calls.timeout_s, remaining_s))


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
