from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.language.questions.kinds import find_literals


def test_which_parts_of_a_query_are_literal() -> None:
    for query, found in [
        ("What was wrong with KX-4471?", ("KX-4471",)),
        ("kx-4471 seal", ("kx-4471",)),
        ("error E0521 after a restart", ("E0521",)),
        ("invoice 2024-118, paid", ("2024-118",)),
        ("order 4711234", ("4711234",)),
        ("host 10.0.0.1 and version 1.2.3", ("10.0.0.1", "1.2.3")),
        ("who calls parse_header()", ("parse_header",)),
        ("std::vector growth", ("std::vector",)),
        ("COVID-19 rules", ("COVID-19",)),
        ('who said "no tide waits" at the quay', ("no tide waits",)),
        ("wer sagte „keine Flut wartet“", ("keine Flut wartet",)),
        ("qui a dit «aucune marée»", ("aucune marée",)),
        ("谁说「潮水不等人」", ("潮水不等人",)),
        ('"a" is too short', ()),
        ('an open "quote', ()),
        ("the 19th century, the 1990s, the 70's and 12km", ()),
        ("a 4-letter word of the mid-1970s", ()),
        ("from 2019-20 to 2024-05-06 in 2019", ()),
        ("3.14 is 1,000,000 times 50% of 12", ()),
        ("Who leads the harbour project?", ()),
        ("and/or", ()),
        ("_ __ snake_", ()),
        ("", ()),
    ]:
        parts = find_literals(query)
        assert (*parts.quoted, *parts.identifiers) == found


@given(st.text(max_size=60))
def test_literals_are_parts_of_the_query(query: str) -> None:
    parts = find_literals(query)
    assert all(part and part in query for part in (*parts.quoted, *parts.identifiers))
