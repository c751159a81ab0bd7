"""The visible part of a summary after deletions: everything that visible passages support, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from sample_passages import visible_of

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import CommunitySummary, Finding, Label, Support, contains_name, name_words
from agentic_rag_backend.knowledge.visible.summaries import further_chunks, supporting_chunks, visible_summary
from agentic_rag_backend.themes.communities.summaries.community_evidence import CentralEntity, Fact, SummaryEvidence
from agentic_rag_backend.themes.communities.summaries.extractive_summaries import extractive_summary
from agentic_rag_backend.themes.communities.summaries.keywords import MAX_PASSAGES, spread
from agentic_rag_backend.themes.communities.summaries.summary_writing import _make_label

NAMES = ("Halden Institute", "Mira Voss", "Tidal Array", "Carrow Bay", "Osric")
TOPICS = ("turbine", "harbour", "lantern", "ledger", "orchard", "Harbours")


def passage(id: str, text: str, *, title: str = "", headings: tuple[str, ...] = ()) -> VisibleChunk:
    return visible_of(text, id, title=title, document_id=id.split(".")[0], headings=headings)


def supports(*ids: str) -> tuple[Support, ...]:
    return tuple(Support(id.split(".")[0], 1, id) for id in ids)


def summary(**changes: object) -> CommunitySummary:
    plain = CommunitySummary(
        fingerprint="f",
        names=(Label("Halden Institute", supports("d1.1", "d2.1")), Label("Osric", supports("d3.1"))),
        summary="Prose.",
        keywords=(Label("turbine", supports("d1.1")), Label("ledger", supports("d3.1"))),
        findings=(Finding("Both.", supports("d1.1", "d3.1")),),
        rating=1.0,
        model="m",
        prompt_version="p",
        sources=supports("d1.1", "d2.1"),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


PASSAGES = {
    "d1.1": passage("d1.1", "The Halden Institute built a turbine."),
    "d2.1": passage("d2.1", "The HALDEN  Institute’s roof leaks."),
    "d3.1": passage("d3.1", "Osric keeps the ledger."),
}


def shown(of: CommunitySummary, *ids: str) -> CommunitySummary:
    return visible_summary(of, {id: PASSAGES[id] for id in ids})


def test_a_name_stands_while_one_of_its_passages_does() -> None:
    assert shown(summary(), *PASSAGES) == summary()
    assert shown(summary(), "d2.1", "d3.1").name == "Halden Institute and Osric"
    assert shown(summary(), "d3.1").name == "Osric"
    assert shown(summary(), "d1.1").name == "Halden Institute"
    assert shown(summary()).name == ""


def test_a_keyword_goes_with_its_own_passages_and_not_with_the_prose() -> None:
    left = shown(summary(), "d2.1", "d3.1")
    assert (left.summary, left.keyword_texts, left.findings) == ("", ("ledger",), ())


def test_a_title_gives_way_to_the_names_that_still_stand() -> None:
    titled = summary(title=Label("Osric's roof", supports("d3.1")))
    assert shown(titled, *PASSAGES).name == "Halden Institute and Osric", "its passage does not say it"
    titled = summary(title=Label("Osric", supports("d3.1")))
    assert shown(titled, *PASSAGES).name == "Osric"
    assert shown(titled, "d1.1").name == "Halden Institute"


def test_what_no_passage_says_goes_with_the_prose() -> None:
    own = summary(title=Label("Old machines"), keywords=(Label("heritage"),))
    assert (shown(own, "d1.1", "d2.1").name, shown(own, "d1.1", "d2.1").keyword_texts) == ("Old machines", ("heritage",))
    assert (shown(own, "d1.1", "d3.1").name, shown(own, "d1.1", "d3.1").keyword_texts) == ("Halden Institute and Osric", ())


def test_titles_and_headings_count_as_they_are_now() -> None:
    named = summary(names=(Label("Tidal Array", supports("d1.1")),))
    for now, name in (
        (passage("d1.1", "It turns.", title="On the Tidal Array"), "Tidal Array"),
        (passage("d1.1", "It turns.", headings=("Works", "The Tidal Array")), "Tidal Array"),
        (passage("d1.1", "It turns.", title="On the Tidal Arrays"), ""),
        (passage("d1.1", "It turns."), ""),
    ):
        assert visible_summary(named, {"d1.1": now}).name == name


def test_says_is_by_words() -> None:
    for text, name, held in [
        ("The I.B.M.'s engine", "IBM", True),
        ("Adams was here", "Ada", False),
        ("Adams met Ada.", "Ada", True),
        ("a turbine-driven pump", "turbine driven", True),
        ("anything", "", False),
        ("…", "…", True),
        ("anything", "…", False),
    ]:
        assert contains_name(text, name) is held


def test_passages_of_many_documents_come_first() -> None:
    many = supports(*(f"a.{n}" for n in range(9)), "b.1", "a.0", "c.1")
    assert [each.chunk_id for each in spread(many)] == ["a.0", "b.1", "c.1", "a.1", "a.2", "a.3", "a.4", "a.5"]
    assert len(spread(many)) == MAX_PASSAGES
    assert spread(()) == ()


def test_a_second_look_is_only_for_what_the_first_leaves_open() -> None:
    given = summary(keywords=(Label("roof", supports("d1.1", "d2.1")),))
    assert supporting_chunks([given]) == ["d1.1", "d2.1", "d3.1"]
    assert further_chunks([given], PASSAGES) == []
    first = {"d3.1": PASSAGES["d3.1"]}
    assert further_chunks([given], first) == ["d1.1", "d2.1"]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[CommunitySummary, dict[str, VisibleChunk], set[str]]:
    """Draw a community from the statements of a few documents, its summary, and the remaining documents."""
    sentence = st.builds(
        "{0} told {1} of the {2} and a {3}.".format,
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        st.sampled_from(TOPICS),
        st.sampled_from(TOPICS),
    )
    held = draw(st.dictionaries(st.sampled_from([f"d{d}.{c}" for d in range(5) for c in range(2)]), sentence, min_size=1))
    facts = tuple(Fact(text, supports(id), frozenset(NAMES)) for id, text in sorted(held.items()))
    entities = tuple(
        CentralEntity(name, name, "thing", share, spread(s for f in facts if contains_name(f.statement, name) for s in f.sources))
        for name, share in zip(NAMES, (0.5, 0.4, 0.3, 0.3, 0.1), strict=True)
        if any(contains_name(fact.statement, name) for fact in facts)
    )
    evidence = SummaryEvidence(fingerprint="f", entity_count=5, entities=entities, facts=facts, passages=len(facts))
    written = extractive_summary(evidence, {})
    if draw(st.booleans()):
        invented = draw(st.sampled_from([*NAMES, *TOPICS, "Mira", "told", "Heritage"]))
        written = replace(
            written, title=_make_label(invented, evidence, facts), sources=tuple(s for f in facts for s in f.sources)
        )
    left = draw(st.sets(st.sampled_from([f"d{d}" for d in range(5)])))
    return written, {id: passage(id, text) for id, text in held.items()}, left


def _words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in name_words(text)}


@given(worlds())
def test_no_word_outlives_its_last_passage(drawn: tuple[CommunitySummary, dict[str, VisibleChunk], set[str]]) -> None:
    written, passages, left = drawn
    visible = {id: each for id, each in passages.items() if each.chunk.document_id in left}
    told = visible_summary(written, visible)
    said = _words(each.chunk.text for each in visible.values())
    whole = {support.chunk_id for support in written.sources} <= visible.keys()
    own = _words([written.title.text]) if whole and written.title and not written.title.sources else set()
    assert _words(told.name.split(" and ")) <= said | own
    assert _words(told.keyword_texts) <= said
    for label in (*written.names, *written.keywords):
        assert (label in (*told.names, *told.keywords)) == any(source.chunk_id in visible for source in label.sources)
    asked = {id: each for id, each in visible.items() if id in supporting_chunks([written])}
    asked |= {id: each for id, each in visible.items() if id in further_chunks([written], asked)}
    assert visible_summary(written, asked) == told, "what a reader fetches is enough"
