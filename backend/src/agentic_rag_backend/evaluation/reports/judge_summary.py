"""The summary of a judge's verdicts: wins and losses of each configuration, and the agreement of the two orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from agentic_rag_backend.domain.evaluation import PairVerdict
from agentic_rag_backend.evaluation.reports.intervals import estimate_mean, permutation_p
from agentic_rag_backend.evaluation.reports.run_summary import sum_costs


def summarise_verdicts(verdicts: Sequence[PairVerdict], names: Sequence[str]) -> dict[str, Any]:
    """Return the comparisons of the configurations ``names`` with the first one, as JSON values, and the usage of the judge."""
    by_name = {name: [verdict for verdict in verdicts if verdict.configuration == name] for name in names[1:]}
    return {
        "comparisons": [_summarise(name, names[0], of) for name, of in by_name.items() if of],
        "usage": {
            "prompt_tokens": sum(verdict.prompt_tokens for verdict in verdicts),
            "completion_tokens": sum(verdict.completion_tokens for verdict in verdicts),
            "calls": sum(verdict.calls for verdict in verdicts),
            "cost": sum_costs(verdicts),
        },
    }


def _summarise(name: str, baseline: str, verdicts: Sequence[PairVerdict]) -> dict[str, Any]:
    """Return one comparison. Verdicts whose reply could not be read prefer no answer, and do not count for the agreement."""
    preferences = np.array([float(verdict.preference) for verdict in verdicts])
    asked = [verdict for verdict in verdicts if verdict.asked and verdict.error is None]
    agreeing = sum(verdict.choices[0] == verdict.choices[1] for verdict in asked)
    return {
        "configuration": name,
        "baseline": baseline,
        "wins": int((preferences > 0).sum()),
        "losses": int((preferences < 0).sum()),
        "ties": int((preferences == 0).sum()),
        "equal_answers": sum(not verdict.asked for verdict in verdicts),
        "failed": sum(verdict.error is not None for verdict in verdicts),
        "agreement": round(agreeing / len(asked), 6) if asked else None,
        "preference": estimate_mean(preferences).as_result(),
        "p": round(permutation_p(preferences), 6),
    }
