"""Dates and numbers of one thing that cannot both be true, and others that can."""

from __future__ import annotations

from typing import Any

import pytest
from sample_passages import visible_of

from agentic_rag_backend.domain.contradictions import Contradiction
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import EntityRef
from agentic_rag_backend.domain.location import Location
from agentic_rag_backend.knowledge.contradictions.passages import PassageReadings, contradictions_in_text

ARRAY = EntityRef("array", "Mirrow Tidal Array", "other")
PLACE = Location(start_char=0, end_char=1, start_line=1, end_line=1)


def passage(document: str, text: str, *, title: str = "", date: str | None = None) -> VisibleChunk:
    metadata = {} if date is None else {"date": date}
    return visible_of(text, f"{document}.c", title=title, metadata=metadata, document_id=document)


def found(*passages: VisibleChunk) -> list[Contradiction]:
    return contradictions_in_text(ARRAY, ["Mirrow Tidal Array", "MTA"], passages, PassageReadings())


def between(one: str, other: str, **given: Any) -> list[tuple[str, str, str]]:
    pair = passage("d1", one, **given), passage("d2", other, **given)
    return [(each.kind, each.a.value, each.b.value) for each in found(*pair) if each.confidence >= 0.5]


OPENED = "The Mirrow Tidal Array was opened on 14 June 2014, in bright sun."


def test_two_dates_of_one_event() -> None:
    for other, expected in [
        ("The Mirrow Tidal Array was opened on 2 September 2014.", ("date", "14 June 2014", "2 September 2014")),
        ("The MTA was opened in 2013.", ("date", "14 June 2014", "2013")),
        ("On 2 September 2014 the Mirrow Tidal Array was opened.", ("date", "14 June 2014", "2 September 2014")),
    ]:
        assert between(OPENED, other) == [expected]


def test_sentences_that_contradict_nothing() -> None:
    for other in [
        "The Mirrow Tidal Array was opened in 2014.",
        "The Mirrow Tidal Array was opened in June 2014.",
        "The Mirrow Tidal Array was reopened on 2 September 2018.",
        "The Mirrow Tidal Array was repaired on 2 September 2018.",
        "The Mirrow Tidal Array was open until 2 September 2018.",
        "The Mirrow Tidal Array was opened before 2013.",
        "The Mirrow Tidal Array will be opened on 2 September 2014.",
        "The Mirrow Tidal Array was not opened on 2 September 2014.",
        "The Mirrow Tidal Array Museum was opened on 2 September 2018.",
        "The Ellery Array was opened on 2 September 2018.",
        "The Mirrow Tidal Array was opened on 14 June 2014, and not, as reported, on 2 September 2014.",
        "The Mirrow Tidal Array | opened | 2018",
        "",
    ]:
        assert between(OPENED, other) == []


def test_a_document_does_not_contradict_itself() -> None:
    assert found(passage("d1", OPENED), passage("d1", "The Mirrow Tidal Array was opened in 2012.")) == []


def test_numbers_of_one_measure_contradict_each_other() -> None:
    cost = "The Mirrow Tidal Array has cost 41.2 million crowns."
    assert between(cost, "The Mirrow Tidal Array has cost 47.8 million crowns.") == [("number", "41.2 million", "47.8 million")]
    assert between(cost, "The Mirrow Tidal Array has cost 47.8 million pounds.") == []
    assert between(cost, "The Mirrow Tidal Array has cost about 41 million crowns.") == []
    in_year = "In {}, the Mirrow Tidal Array produced {} megawatts."
    assert between(in_year.format(2014, 7), in_year.format(2015, 9)) == []


def test_a_number_in_the_present_may_have_changed() -> None:
    one = passage("d1", "The Mirrow Tidal Array has 6 turbines.", date="2014")
    other = passage("d2", "The Mirrow Tidal Array has 8 turbines.", date="2020")
    (changed,) = found(one, other)
    assert changed.confidence < 0.5
    (contradicted,) = found(one, passage("d3", "The Mirrow Tidal Array has 8 turbines.", date="2014"))
    assert contradicted.confidence > 0.5
    assert (contradicted.a.date, contradicted.about) == ("2014", ARRAY)


def test_it_stands_for_the_entity_of_the_title() -> None:
    pair = "It was completed in 2013.", "It was completed in 2016."
    assert between(*pair, title="Mirrow Tidal Array") == [("date", "2013", "2016")]
    assert between(*pair, title="The harbour") == []


def test_a_copy_with_another_date_contradicts_its_original() -> None:
    """Also of events that may happen more than once, which two different texts may mean."""
    race = "The Mirrow Tidal Array won the prize in {}."
    rest = " Its owner is a bank. The wind was brisk."
    assert between(race.format(2013), race.format(2016)) == []
    assert between(race.format(2013) + rest, race.format(2016) + rest) == [("date", "2013", "2016")]
    assert between(race.format(2013) + rest, race.format(2013) + rest) == []


def test_the_order_of_passages_does_not_matter() -> None:
    pair = passage("d1", OPENED), passage("d2", "The MTA was opened in 2013.")
    assert [each.id for each in found(*pair)] == [each.id for each in found(*reversed(pair))]


@pytest.mark.parametrize(
    "pair",
    [
        ("The route to the Mirrow Tidal Array was opened in 2013.", "The Mirrow Tidal Array was opened in 2016."),
        ("The Mirrow Tidal Array outlet was opened in 2013.", "The Mirrow Tidal Array outlet was opened in 2016."),
        ("Ann ran in the Mirrow Tidal Array, starting in 2013.", "Bob ran in the Mirrow Tidal Array, starting in 2016."),
        ("The Mirrow Tidal Array covers 20.4% of the bay.", "The Mirrow Tidal Array covers 20% of the bay."),
        ("The Mirrow Tidal Array killed at least 20 eels.", "The Mirrow Tidal Array killed 20 to 30 eels."),
        ("The Mirrow Tidal Array fed 20 houses.", "The Mirrow Tidal Array fed 30 houses in 2016."),
    ],
    ids=" / ".join,
)
def test_pairs_that_contradict_nothing(pair: tuple[str, str]) -> None:
    assert between(*pair) == []


def test_a_copy_may_change_a_name() -> None:
    text = "The Mirrow Tidal Array was built in {} by a company. Its owner is a bank. The wind was brisk."
    assert between(text.format("Ellery"), text.format("Scarrow")) == [("exclusive", "Ellery", "Scarrow")]
    assert between(text.format("Ellery"), text.format("secret")) == []
    assert between(text.format("Ellery"), text.format("2013")) == []
    assert between(text.format("Ellery"), text.format("Ellery")) == []
