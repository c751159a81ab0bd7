"""What language models were given to read and wrote."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens a language model was asked to read and wrote; zeros where no model was called.

    ``calls`` counts every request that was sent, repeated attempts included; ``failed_calls`` those of them that brought
    nothing: an error, no answer in time, or a reply that is not what was asked for.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    failed_calls: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.calls + other.calls,
            self.failed_calls + other.failed_calls,
        )


@dataclass(slots=True)
class UsageAccount:
    """Collects the usage of one piece of work where it arises, so that it is known also when the work fails or is cancelled.

    Args:
        parent: the account of the larger piece of work that this is a part of.
    """

    parent: UsageAccount | None = None
    usage: Usage = field(default_factory=Usage)

    def add(self, usage: Usage) -> None:
        """Add to what is on the account, and on those above."""
        self.usage += usage
        if self.parent is not None:
            self.parent.add(usage)
