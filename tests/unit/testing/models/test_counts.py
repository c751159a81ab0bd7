"""The ledger of the scriptable model server: sums are correct, and memory is bounded."""

from __future__ import annotations

import json
from dataclasses import asdict

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_testing.models.counts import Ledger, Stats, text_hash


@given(st.lists(st.sampled_from("abcdefgh"), max_size=40), st.integers(1, 8))
def test_texts_are_bounded_and_those_met_last_are_kept(texts: list[str], most: int) -> None:
    ledger = Ledger(most=most)
    for text in texts:
        ledger.embedded("m", [text], 1)
    stats = ledger.stats()
    assert stats.embedded_texts == stats.total.prompt_tokens == len(texts)
    assert len(stats.texts) <= most
    last = list(dict.fromkeys(reversed(texts)))[:most]
    assert set(stats.texts) == {text_hash(text) for text in last}
    if len(set(texts)) <= most:
        assert stats.forgotten == 0
        assert stats.texts == {text_hash(text): texts.count(text) for text in set(texts)}
    else:
        assert stats.forgotten > 0, "who asks must be told that the counts are not whole"


def test_stats_survive_json_and_later_calls_do_not_change_them() -> None:
    ledger = Ledger()
    assert [ledger.begin("m"), ledger.begin("m"), ledger.begin("n")] == [0, 1, 0]
    ledger.chatted("m", "hash", (3, 4), ["passage"])
    ledger.failed("n", "500")
    ledger.end()
    before = ledger.stats()
    assert Stats.from_json(json.loads(json.dumps(asdict(before)))) == before
    ledger.chatted("m", "hash", (3, 4), ["passage"])
    assert before.prompts["hash"].calls == before.models["m"].prompt_tokens - 2 == 1
    assert ledger.stats().paid_again() == {text_hash("passage"): 2}
    assert (before.in_flight, before.most_at_once) == (2, 3)
    ledger.reset()
    assert ledger.stats() == Stats(in_flight=2)
    assert ledger.begin("m") == 0, "faults that end begin anew"
