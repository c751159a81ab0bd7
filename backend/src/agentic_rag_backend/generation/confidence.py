"""The confidence of an answer in [0, 1], from its evidence and from the checks of its sentences.

`answerability` estimates whether passages answer a question. That is the confidence of an answer that quotes them. A language
model reads better than this estimate, so the confidence of its answer depends more on what it cites: how well the passage was
ranked, and whether a cited quote is a sentence that the estimate chose, too.

The weights of `of_model` were fitted on 623 answers to the questions of 64 real documents, by a simulated reader that is right in
two of three cases and otherwise quotes a wrong sentence, weighted so that four of five are right. On the half of the questions
that was not used, the area under the curve of right against wrong answers is .74; with the estimate alone it is .63. No answers
of a real model were used.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from agentic_rag_backend.domain.answer import ClaimStatus

CHECKED_SHARE = 0.3
"""Maximum loss of confidence, if no sentence of the model passed the checks."""
UNVERIFIED_SHARE = 0.5
"""Share of a failed sentence's loss that an unverified sentence costs."""
UNKNOWN_SHARE = 0.5
"""Factor on the confidence of an answer without a supported sentence."""
_INTERCEPT, _EVIDENCE, _AGREES, _RANK = -1.74, 0.13, 1.34, 3.74
_LEAST = 0.01


def of_quotations(answerable: float, statuses: Sequence[ClaimStatus]) -> float:
    """Return the confidence of an answer that quotes passages, which answer with the chance ``answerable``."""
    return answerable * _share_after_checks(statuses) if "supported" in statuses else 0.0


def of_model(answerable: float, statuses: Sequence[ClaimStatus], *, agrees: bool, rank: float) -> float:
    """Return the confidence of an answer that a language model wrote.

    Args:
        answerable: the estimate of the evidence.
        statuses: of all sentences of the model, those left out included.
        agrees: whether it cites a sentence that the estimate chose.
        rank: score of the best cited passage relative to the best passage, in [0, 1].
    """
    if not statuses:
        return 0.0
    evidence = min(max(answerable, _LEAST), 1.0 - _LEAST)
    logit = _INTERCEPT + _EVIDENCE * math.log(evidence / (1.0 - evidence)) + _AGREES * agrees + _RANK * rank
    certainty = 1.0 if "supported" in statuses else UNKNOWN_SHARE
    return certainty * _share_after_checks(statuses) / (1.0 + math.exp(-logit))


def _share_after_checks(statuses: Sequence[ClaimStatus]) -> float:
    """Return the share of the confidence that the checks leave."""
    counts = Counter(statuses)
    failed = counts["contradicted"] + UNVERIFIED_SHARE * counts["unverified"]
    return 1.0 - CHECKED_SHARE * failed / len(statuses)
