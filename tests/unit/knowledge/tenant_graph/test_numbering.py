from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.knowledge.tenant_graph.rows import Numbered, Numbers

IDS = st.lists(st.sampled_from("abcdefgh"), unique=True)


@given(ids=IDS, later=IDS, used=st.data())
def test_a_snapshot_holds_the_ids_in_use(ids: list[str], later: list[str], used: st.DataObject) -> None:
    numbers = Numbers()
    numbers.add(ids)
    in_use = np.array(used.draw(st.lists(st.booleans(), min_size=len(ids), max_size=len(ids))), dtype=np.bool_)
    snapshot = Numbered(numbers, in_use)
    numbers.add(later)
    expected = {id: number for number, id in enumerate(numbers.ids[: len(ids)]) if in_use[number]}
    assert dict(snapshot) == expected
    assert len(snapshot) == len(expected)
    assert [*snapshot.among("hgfedcba").items()] == [(id, expected[id]) for id in "hgfedcba" if id in expected]
    for id in "abcdefgh":
        assert snapshot.get(id) == expected.get(id)
        assert snapshot.get(id, -1) == expected.get(id, -1)
        assert (id in snapshot) == (id in expected)
        if id not in expected:
            with pytest.raises(KeyError):
                snapshot[id]
