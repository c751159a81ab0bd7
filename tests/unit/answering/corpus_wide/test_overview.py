"""Corpus-wide answers without a model: which sentences, in which order, and the sentence before them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hashed_words import HashedWords
from sample_passages import theme_of, visible_of

from agentic_rag_backend.answering.corpus_wide.aspects import aspect_of, expresses
from agentic_rag_backend.answering.corpus_wide.document_overview import introduce_document, select_central
from agentic_rag_backend.answering.corpus_wide.overview import Collected, introduce_themes, nearest_passages, select_overview
from agentic_rag_backend.answering.corpus_wide.partial_answers import PartialAnswers
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import Finding, Support, placeholder_name
from agentic_rag_backend.domain.query import Hit, ThemeHit
from agentic_rag_backend.models.embedding.calibration import CosineScale

QUESTION = "What do the volunteers of the harbour do?"


def visible(id: str, text: str) -> VisibleChunk:
    return visible_of(text, id, title="", key=id, document_id=f"d{id}")


def theme(id: str, name: str, statement: str) -> ThemeHit:
    return theme_of(f"t{id}", 0.4, name=name, findings=(Finding(statement, (Support(f"d{id}", 1, id),)),))


def collected(*texts: str, near: Sequence[str] = ()) -> Collected:
    """Return one theme for each text, and hits for the texts in ``near``."""
    chunks = {f"c{number}": visible(f"c{number}", text) for number, text in enumerate(texts)}
    themes = [theme(id, f"Harbour {id}", chunk.chunk.text.split("\n")[0]) for id, chunk in chunks.items()]
    hits = [Hit(visible=visible(f"n{number}", text), score=1.0, scores={"dense": 0.5}) for number, text in enumerate(near)]
    return Collected(themes, chunks, hits)


async def ask(found: Collected, question: str = QUESTION, *, of_all: bool = False) -> PartialAnswers:
    return await select_overview(question, found, HashedWords(), of_all=of_all)


def statements(partial: PartialAnswers) -> list[str]:
    return [point.statement for point in partial.points]


async def test_sentences_near_the_question_are_quoted_and_others_left_out() -> None:
    near = "The volunteers of the harbour count eels."
    far = "Nine turbines turn under a northern sea."
    found = await ask(collected(near, far))
    assert statements(found) == [near]
    assert found.zero == 1
    assert found.points[0].passages[0].text == near


async def test_a_passage_near_the_question_is_read_although_no_theme_rests_on_it() -> None:
    text = "The volunteers of the harbour mend the lamps."
    assert text in statements(await ask(collected("The volunteers of the harbour count eels.", near=[text])))


async def test_sentences_that_need_context_come_after_others_and_headings_never() -> None:
    whole = "The volunteers of the harbour count eels."
    leaning = "They are volunteers of the harbour, too."
    found = statements(await ask(collected(f"# Volunteers of the harbour\n\n{leaning}", whole)))
    assert found[0] == whole
    assert not any(each.startswith("Volunteers") for each in found)


async def test_repetitions_are_left_out() -> None:
    text = "The volunteers of the harbour count eels."
    assert statements(await ask(collected(text, text))) == [text]


async def test_a_formula_of_many_documents_is_left_out() -> None:
    formula = "Welcome to the news of the harbour volunteers."
    other = "The volunteers of the harbour count eels."
    assert statements(await ask(collected(formula, formula, formula, other))) == [other]


async def test_sentences_with_dates_are_in_order_of_time() -> None:
    late = "The volunteers of the harbour counted eels in 2021."
    early = "The volunteers of the harbour mended lamps in 2009."
    found = await ask(collected(late, early))
    assert statements(found) == [early, late]
    lead = introduce_themes(found.points, collected(late, early).themes, of_all=False)
    assert lead == (
        "The 2 sentences that are nearest to the question come from 2 documents (2009 to 2021), mostly of the themes "
        "“Harbour c0” and “Harbour c1”, and are listed in order of time, those without a date last."
    )


async def test_a_question_about_concerns_is_answered_only_by_concerns() -> None:
    plain = "The staff of the harbour come from nine towns."
    concern = "The staff of the harbour fear that the pier is unsafe."
    found = statements(await ask(collected(plain, concern), "What are the main concerns of the staff of the harbour?"))
    assert found == [concern]
    assert not (await ask(collected(plain), "What are the main concerns of the staff of the harbour?")).points


def test_aspects() -> None:
    for question, name in [
        ("What worries the fishers?", "concerns"),
        ("Which benefits did it bring?", "benefits"),
        ("What are the plans?", "plans"),
    ]:
        aspect = aspect_of(question)
        assert aspect is not None
        assert aspect.name == name


def test_a_question_without_an_aspect_and_a_sentence_that_expresses_one() -> None:
    assert aspect_of("How wide is the channel?") is None
    aspect = aspect_of("What are their problems?")
    assert aspect is not None
    assert expresses("Two engineers left because they lacked a house.", aspect)
    assert not expresses("Twelve of the staff were born here.", aspect)


async def test_about_everything_each_theme_gives_its_sentence() -> None:
    texts = ["The harbour was dredged twice by its fishers.", "Nine turbines turn under a northern sea."]
    found = await ask(collected(*texts), "What are the main topics of these documents?", of_all=True)
    assert sorted(statements(found)) == sorted(texts)
    lead = introduce_themes(found.points, collected(*texts).themes, of_all=True)
    assert re.match(r"The documents have 2 themes: “Harbour c0”, “Harbour c1”; each of these 2 sentences from 2 documents ", lead)


async def test_a_theme_without_a_name_that_may_be_shown_is_counted_and_not_listed() -> None:
    texts = ["The harbour was dredged twice by its fishers.", "Nine turbines turn under a northern sea."]
    found = await ask(collected(*texts), "What are the main topics of these documents?", of_all=True)
    named, other = collected(*texts).themes
    unnamed = replace(other, name=placeholder_name(other.id))
    begins = [introduce_themes(found.points, themes, of_all=True) for themes in ((named, unnamed), (unnamed, unnamed))]
    assert begins[0].startswith("The documents have 2 themes: “Harbour c0” and 1 more; each ")
    assert begins[1].startswith("The documents have 2 themes; each ")


async def test_a_single_sentence_has_no_introduction() -> None:
    found = await ask(collected("The volunteers of the harbour count eels."))
    assert introduce_themes(found.points, (), of_all=False) == ""


async def test_without_passages_there_is_no_answer() -> None:
    assert (await ask(Collected((), {}))).points == ()


def test_cosines_of_another_encoder_are_converted() -> None:
    hits = [Hit(visible=visible(id, id), score=1.0, scores={"dense": cosine}) for id, cosine in (("a", 0.94), ("b", 0.76))]
    scale = CosineScale((0.7, 0.76, 0.82, 0.88, 0.94, 1.0))
    scores = [passage.score for passage in nearest_passages(Collected((), {}, hits, scale))]
    assert scores == pytest.approx([1.0, 0.25])
    assert [passage.score for passage in nearest_passages(Collected((), {}, hits))] == pytest.approx([1.0, 0.76 / 0.94])


async def test_an_overview_of_a_document_has_its_central_sentences_and_its_sections() -> None:
    texts = [
        "This page explains the eels of the harbour. The volunteers count the eels of the harbour at night.",
        "They left. A lamp burned at the inn of the next valley. | eels | 12 |",
        "The harbour has eels because its volunteers built a ladder.\n\nx_eels = harbour(eels) + eels_{2}.",
    ]
    hits = [
        Hit(visible=visible_of(text, f"c{n}", title="Eels", headings=(f"Part {n}",)), score=0.0) for n, text in enumerate(texts)
    ]
    points = (await select_central(hits, HashedWords())).points
    assert [point.statement for point in points][:2] == [
        "This page explains the eels of the harbour.",
        "The volunteers count the eels of the harbour at night.",
    ]
    assert "The harbour has eels because its volunteers built a ladder." in [point.statement for point in points]
    assert not any("x_eels" in point.statement or "|" in point.statement for point in points)
    assert introduce_document(points, hits) == (
        "These are the most central sentences of the document “Eels”. Its sections are “Part 0”, “Part 1”, “Part 2”."
    )
    assert (await select_central([], HashedWords())).points == ()
    assert introduce_document((), ()) == ""


async def test_an_overview_of_a_document_without_a_sentence_has_its_first_lines() -> None:
    hits = [Hit(visible=visible_of("- Rope\n- Sails\n- Rope\n- Oars", "c0", title="Sails"), score=0.0)]
    points = (await select_central(hits, HashedWords())).points
    assert [point.statement for point in points] == ["Rope", "Oars"]
    assert introduce_document(points, hits) == "These are the first lines of the document “Sails”."
