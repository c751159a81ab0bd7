"""Metrics of answers and estimates against values by hand, and evidence against results."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.document import Chunk, VisibleChunk
from agentic_rag_backend.domain.location import Location
from agentic_rag_backend.domain.query import Hit
from agentic_rag_backend.evaluation.answer_metrics import contains_answer, share_of_texts, token_f1
from agentic_rag_backend.evaluation.case_measures import measure_results
from agentic_rag_backend.evaluation.estimate_metrics import auroc, calibration_error
from agentic_rag_backend.evaluation.gold import GoldEvidence, locate_quote
from agentic_rag_backend.evaluation.ranking_metrics import reciprocal_rank


def hit(id: str, document: str = "d") -> Hit:
    location = Location(start_char=0, end_char=1, start_line=1, end_line=1)
    chunk = Chunk(id=id, document_id=document, version=1, ordinal=0, text="x", size_tokens=1, content_hash="", location=location)
    return Hit(visible=VisibleChunk(chunk=chunk, document_title="", document_key=None, metadata={}), score=1.0)


def test_answers_by_hand() -> None:
    assert contains_answer("It was **Mara Venn** [1].", ["mara venn"])
    assert not contains_answer("It was Mara Vennings.", ["Mara Venn"])
    assert not contains_answer("anything", ["", "?!"])
    # The articles of both texts do not count: "cat sat" and "cat sat on mat".
    assert token_f1("The cat sat [2]", "a cat sat on the mat") == pytest.approx(2 * 2 / (2 + 4))
    assert token_f1("the", "a") == 1.0
    assert token_f1("", "x") == 0.0
    assert share_of_texts("one and two", ["two", "three"]) == 0.5
    assert share_of_texts("", []) == 1.0


def test_estimates_by_hand() -> None:
    assert auroc([0.9, 0.5], [0.5, 0.1]) == pytest.approx(0.875)
    assert calibration_error([0.95, 0.95, 0.05], [True, False, False]) == pytest.approx(2 / 3 * 0.45 + 1 / 3 * 0.05)
    assert reciprocal_rank(["a", "b"], {"b"}) == 0.5
    assert reciprocal_rank(["a"], {"b"}) == 0.0


def test_results_cover_evidence_by_any_of_its_chunks() -> None:
    evidence = [GoldEvidence(frozenset({"a", "b"})), GoldEvidence(document_id="whole"), GoldEvidence()]
    measures = measure_results(evidence, [hit("x"), hit("b"), hit("a"), hit("z", "whole")], 3)
    # The second chunk of an item is a result without gain, and the missing item does not count.
    assert measures["recall@3"] == 0.5
    assert (measures["all_gold@3"], measures["mrr@3"]) == (0.0, 0.5)
    assert measure_results(evidence, [hit("z", "whole"), hit("a")], 3)["ndcg@3"] == 1.0
    assert measure_results([GoldEvidence()], [hit("x")], 3) == {}
    both = [GoldEvidence(frozenset({"a"})), GoldEvidence(frozenset({"a", "c"}))]
    assert measure_results(both, [hit("a")], 1) == {"recall@1": 1.0, "all_gold@1": 1.0, "ndcg@1": 1.0, "mrr@1": 1.0}


def test_quotes_are_located_whatever_their_space() -> None:
    text = "One.\n\nMara  Venn leads\nthe Harbour. Two."
    start, end = locate_quote(text, "mara venn leads the harbour.") or (0, 0)
    assert text[start:end] == "Mara  Venn leads\nthe Harbour."
    assert locate_quote(text, "Venn lead the") is None
    assert locate_quote(text, "  ") is None


@given(st.lists(st.text("abß İ\n\t.", min_size=1, max_size=8), min_size=1, max_size=12), st.data())
def test_every_run_of_words_is_located(words: list[str], data: st.DataObject) -> None:
    text = " ".join(words)
    tokens = text.split()
    if not tokens:
        return
    first = data.draw(st.integers(0, len(tokens) - 1))
    last = data.draw(st.integers(first, len(tokens) - 1))
    quote = "  ".join(tokens[first : last + 1])
    place = locate_quote(text, quote)
    assert place is not None
    assert quote.split()[0] in text[place[0] :]
    assert " ".join(text[place[0] : place[1]].split()).casefold().find(quote.split()[0].casefold()) >= 0
