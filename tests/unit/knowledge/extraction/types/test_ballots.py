from __future__ import annotations

import numpy as np

from agentic_rag_backend.knowledge.extraction.types.ballots import (
    DECIDED,
    SLOTS,
    Ballot,
    WordScores,
    agree_on_odds,
    chances,
    relate_names,
    types_of,
)

NO_WORDS = np.zeros((0, len(SLOTS) * DECIDED), dtype=np.int8)
VOTES_ONLY = WordScores(
    (), NO_WORDS, 1.0, {"votes_person": (1, 0, 0), "votes_place": (0, 0, 1)}, {"ends": 9.0, "opens": 9.0, "listed": 9.0}
)


def ballots(*keys: str, **votes: str) -> dict[str, Ballot]:
    found = {key: Ballot(key, key.title().split()) for key in keys}
    for name, type_ in votes.items():
        found[name.replace("_", " ")].vote(type_, 3.0)
    return found


def test_a_short_form_takes_the_type_of_the_full_name() -> None:
    types = types_of(ballots("vestby bay", "bay", "zell", vestby_bay="place"), (), VOTES_ONLY)
    assert types["bay"] == "place"
    assert types["zell"] != "place"


def test_the_items_of_a_list_share_a_type() -> None:
    names = ballots("vestby", "halden", "moss", vestby="place", moss="place")
    assert types_of(names, [("vestby", "halden"), ("halden", "moss")], VOTES_ONLY)["halden"] == "place"


def test_related_names_are_found_by_whole_words() -> None:
    assert relate_names(["new york", "york", "new york times", "yorkshire"], []) == {
        "new york": {"ended_by": ["york"], "opens": ["new york times"]},
        "york": {"ends": ["new york"]},
        "new york times": {"opened_by": ["new york"]},
        "yorkshire": {},
    }


def test_names_hear_what_others_knew_alone() -> None:
    odds = {"a b": [4.0, 0.0, 0.0, 0.0], "b": [0.0, 0.0, 0.0, 0.0]}
    heard = agree_on_odds(odds, {"a b": {}, "b": {"ends": ["a b"]}}, {"ends": 2.0})
    assert heard["a b"] == odds["a b"]
    assert heard["b"] == [2.0 * chance for chance in chances(odds["a b"])]
    assert chances([800.0, 0.0, 0.0, 0.0])[0] == 1.0


def test_peoples_and_countries_have_their_type_by_form() -> None:
    assert types_of(ballots("norwegian", "norway"), (), VOTES_ONLY) == {"norwegian": "group", "norway": "place"}
