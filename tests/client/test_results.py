"""Results of older and newer servers, parts of results, events, and the forms for prompts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_client import models
from agentic_rag_client.event_streams import EventParser, ServerEvent
from agentic_rag_client.model import ResponseInfo

RESULT: dict[str, Any] = {
    "id": "c/1",
    "document_id": "d 1",
    "title": "Barrage <b>",
    "content": "The delay was caused by a cracked caisson.",
    "score": 0.9,
    "metadata": {"year": 2019, "tags": ["a"], "draft": False},
}
ADDRESS = "http://rag.test/console/#/d/d%201?chunk=c%2F1"


def test_fields_and_values_of_a_newer_server_are_kept() -> None:
    job = models.Job.model_validate({"id": "j", "state": "hibernating", "kind": "ingest", "novelty": {"a": 1}})
    assert job.state == "hibernating"
    assert job.model_extra == {"novelty": {"a": 1}}
    assert models.Job.model_validate(job.model_dump()) == job


def test_a_field_that_was_not_sent_is_no_attribute() -> None:
    result = models.SearchResults.model_validate({"results": [{"title": "Barrage"}]}).results[0]
    assert result.title == "Barrage"
    with pytest.raises(AttributeError, match="no 'content' of a Result: `fields`"):
        result.content  # noqa: B018 - the access is tested
    with pytest.raises(AttributeError, match="nothing"):
        result.nothing  # type: ignore[attr-defined]  # noqa: B018
    assert result.model_dump(exclude_unset=True) == {"title": "Barrage"}
    assert "content" not in json.loads(result.model_dump_json())


def test_a_name_of_python_is_read_from_its_field() -> None:
    report = models.UsageReport.model_validate({"from": "2026-11-01", "to": "2026-11-02"})
    assert (report.from_.day, report.to.day) == (1, 2)


def test_passages_for_prompts() -> None:
    found = models.SearchResults.model_validate({"results": [RESULT]})
    found._response = ResponseInfo(200, origin="http://rag.test")
    (block,) = found.to_anthropic()
    assert block == {
        "type": "search_result",
        "source": ADDRESS,
        "title": "Barrage <b>",
        "content": [{"type": "text", "text": RESULT["content"]}],
        "citations": {"enabled": True},
    }
    assert found.to_anthropic(address="https://docs.test/")[0]["source"].startswith("https://docs.test/console/#/d/")
    (entry,) = found.to_openai()
    assert entry["attributes"] == {"year": 2019, "draft": False}
    assert entry["content"] == [{"type": "text", "text": RESULT["content"]}]


def claim(text: str, start: int | None, *markers: int) -> dict[str, Any]:
    end = None if start is None else start + len(text)
    return {"text": text, "supported": True, "markers": list(markers), "start_char": start, "end_char": end}


@given(st.lists(st.sampled_from(["It was late.", "Why?", "Über 3 m."]), max_size=5), st.sampled_from(["", "Intro: ", " "]))
def test_the_blocks_of_an_answer_are_its_text(sentences: list[str], introduction: str) -> None:
    text, claims = introduction, [claim("left out", None, 1)]
    for sentence in sentences:
        claims.append(claim(sentence, len(text), 1))
        text += f"{sentence} [1] "
    citation = {"marker": 1, "chunk_id": "c/1", "document_id": "d 1", "title": "Barrage <b>", "quote": "cracked caisson"}
    citations = [citation, {**citation, "marker": 2, "quote": "of a claim that was left out"}]
    answer = models.Answer.model_validate({"answer": text, "claims": claims, "citations": citations, "sources": [RESULT]})
    blocks = answer.to_anthropic(address="http://rag.test")
    assert "".join(block["text"] for block in blocks).strip() == text.strip()
    cited = [block for block in blocks if "citations" in block]
    assert [block["text"] for block in cited] == sentences
    for block in cited:
        (place,) = block["citations"]
        assert (place["source"], place["cited_text"], place["search_result_index"]) == (ADDRESS, "cracked caisson", 0)
    assert answer.search_results(address="http://rag.test")[0]["source"] == ADDRESS
    annotations = answer.to_openai(address="http://rag.test")["annotations"]
    assert [item["url_citation"]["url"] for item in annotations] == [ADDRESS, ADDRESS]


NAMES = st.sampled_from(["token", "done", "späte"])
EVENTS = st.lists(st.tuples(NAMES, st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=2)), max_size=6)


@given(EVENTS, st.lists(st.integers(1, 9)), st.sampled_from(["\n", "\r\n"]))
def test_blocks_may_end_anywhere(events: list[tuple[str, dict[str, str]]], lengths: list[int], end: str) -> None:
    text = "".join(
        f"id: {number}{end}event: {name}{end}data: {json.dumps(data, ensure_ascii=False)}{end}{end}: heartbeat{end}{end}"
        for number, (name, data) in enumerate(events, 1)
    )
    stream = text.encode()
    parser, received, place = EventParser(), list[ServerEvent](), 0
    for length in [*lengths, len(stream)]:
        received += parser.feed(stream[place : place + length])
        place += length
    assert [(event.id, event.name, event.data) for event in received] == [
        (str(number), name, data) for number, (name, data) in enumerate(events, 1)
    ]


def test_data_of_several_lines_are_one_value() -> None:
    (event,) = EventParser().feed(b'data: {"a":\ndata:1}\n\n')
    assert event == ServerEvent("", "message", {"a": 1})
