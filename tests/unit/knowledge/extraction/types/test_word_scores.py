from __future__ import annotations

import numpy as np

from agentic_rag_backend.knowledge.extraction.types.ballots import DECIDED, SLOTS, WordScores, load_scores, word_pieces

WIDTH = len(SLOTS) * DECIDED
KNOWN = {piece: number for number, piece in enumerate(("kel", "##ler", "keller", "ville", "##ville", ",", "o"))}


def test_a_word_is_cut_into_its_longest_known_pieces() -> None:
    for word, pieces in [
        ("Keller", ["keller"]),
        ("Kelville", ["kel", "##ville"]),
        ("KÉLVILLE", ["kel", "##ville"]),
        ("o,", ["o", ","]),
        ("Kelx", []),
        ("o" * 41, []),
        ("", []),
    ]:
        assert word_pieces(word, KNOWN) == pieces


def test_the_scores_of_a_word_are_the_mean_over_its_pieces() -> None:
    scores = WordScores(list(KNOWN), np.arange(len(KNOWN), dtype=np.int8)[:, None].repeat(WIDTH, axis=1) * 10, 1.0, {}, {})
    assert scores.of("kelville").tolist() == [20] * WIDTH
    assert scores.of("unknown").tolist() == [0] * WIDTH


def test_the_shipped_scores_have_a_row_for_each_piece() -> None:
    shipped = load_scores()
    assert len(shipped.of("river")) == WIDTH
    assert any(shipped.of("river"))
    assert {"bias", "votes_person"} <= shipped.weights.keys()
    assert all(len(weights) == DECIDED for weights in shipped.weights.values())
