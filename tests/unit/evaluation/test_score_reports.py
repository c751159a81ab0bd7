"""Scores that are computed for a caller who did not give them."""

from __future__ import annotations

from agentic_rag_backend.domain.score_submission import ScoreSubmission
from agentic_rag_backend.evaluation.score_reports import MAX_SENTENCES, compute_scores

STATED = "Mara Venn leads the Harbour Authority."
INVENTED = "She was born in Oslo in 1961."


def _compute(*contexts: str, **more: object) -> dict[str, float]:
    return compute_scores(ScoreSubmission(query="Who leads the Harbour Authority?", **more), contexts)  # type: ignore[arg-type]


def test_each_metric_needs_its_inputs() -> None:
    assert _compute() == {}
    assert _compute(answer=STATED) == {}
    assert _compute(answer=STATED, expected_answer="Mara Venn").keys() == {"token_f1", "contains"}
    assert _compute("Nothing.", expected_answer="Mara Venn") == {"context_contains": 0.0}
    assert _compute(retrieved_chunk_ids=("a", "b"), gold_chunk_ids=("b", "c"))["recall"] == 0.5


def test_faithfulness_is_the_share_of_sentences_that_a_context_states() -> None:
    contexts = ("The eel passage closed in 2019.", "The Harbour Authority is led by Mara Venn.", STATED)
    assert _compute(*contexts, answer=f"{STATED} [1] {INVENTED} [9]")["faithfulness"] == 0.5
    assert _compute(*contexts, answer=STATED)["faithfulness"] == 1.0
    assert _compute(*contexts, answer=INVENTED)["faithfulness"] == 0.0
    assert _compute("", answer=STATED)["faithfulness"] == 0.0


def test_only_the_first_sentences_are_checked() -> None:
    """The work of a request has a bound."""
    assert _compute(STATED, answer=f"{STATED} " * MAX_SENTENCES + INVENTED)["faithfulness"] == 1.0
