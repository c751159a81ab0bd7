"""A model that writes false sentences: nothing false reaches a client without a mark.

The model mixes true sentences of the documents with sentences that swap names, deny, change numbers, drop a hedge, misquote or
add something. It invents markers, stops in the middle, returns nothing, and ignores schemas. It judges no sentence of its
own. The test knows which sentences are true.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sampling import sampled
from tests.e2e.api.conftest import Client, Template, model_at

from agentic_rag_testing.models.server import ModelServer

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    # Threads of the server and of the jobs use `random` while Hypothesis draws.
    pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies"),
]

QUESTION = "Why was the tidal barrage delayed?"
CITED = r"(?: (?:\[\d+\])+| \((?:Tidal|Eel|Fish)[^)]*\)|)"
MARK = r" \[(?:unverified|unsupported)\]"
REFUSAL = "The documents do not answer this question."
TRUE = (
    "The barrage was delayed by two years.",
    "The delay was caused by a cracked caisson, which Jorin Sorrelwick had delivered.",
    "The Harbour Authority began the tidal barrage in May 2019.",
    "Mara Venn leads the Harbour Authority.",
    "The Harbour Authority is led by Mara Venn.",
    "In May 2019, the Harbour Authority began the tidal barrage.",
    "The Amberquoll Society objected to the barrage in June 2019.",
    "The tidal barrage was delayed by 2 years.",
)
FALTERING = (
    "The barrage was delayed by |three years.",
    "The barrage was delayed by two |months.",
    "The barrage was |not delayed by two years.",
    "The barrage may |not have been delayed, and it opened early.",
    "The delay was caused by a cracked caisson, which |Mara Venn had delivered.",
    "The delay was caused by a cracked caisson, which |Zebulon Quark had delivered.",
    "The delay was |not caused by a cracked caisson, which Jorin Sorrelwick had delivered.",
    "The tidal barrage began the |Harbour Authority in May 2019.",
    "The Harbour Authority began the tidal barrage in |June 2019.",
    "The Harbour Authority began the tidal barrage in May 20|15.",
    "The Harbour Authority |leads Mara Venn.",
    "Jorin Sorrelwick |leads the Harbour Authority.",
    "Mara Venn |never led the Harbour Authority.",
    "The Harbour Authority |objected to the barrage in June 2019.",
    'Mara Venn called the delay "a |disaster for the whole coast".',
    'Mara Venn told the council that the barrage was "delayed by the |weather".',
    "The council |fined the builder of the barrage heavily.",
    "|Zebulon Quark filmed the moon landing in Atlantis.",
    "The barrage was delayed by two years, and the council |paid for the repairs.",
)
"""False sentences. A model may stop before "|" without having written anything false."""
FALSE = tuple(sentence.replace("|", "") for sentence in FALTERING)
HARMLESS = tuple(sentence.partition("|")[0] for sentence in FALTERING)
MARKERS = ("", " [1]", " [2]", " [1][2]", " [99]", " [0]", " [1-9]", " 【1】")


@dataclass(frozen=True)
class Reply:
    """One scripted reply: sentences with markers, the number of characters after which it stops, and the reply to a schema."""

    sentences: tuple[tuple[str, str], ...]
    stops_at: int | None
    structured: str

    def __call__(self, prompt: str) -> str:
        if "<answer>" in prompt and "<passage" not in prompt:
            return self.structured
        if "<parts>" in prompt:
            return json.dumps({"verdicts": []})
        text = " ".join(f"{sentence}{marker}" for sentence, marker in self.sentences)
        return text if self.stops_at is None else text[: self.stops_at]


QUESTIONS = json.dumps({"questions": ["Who leads the Harbour Authority?", "When did the barrage begin?", ""]})
REPLIES = st.builds(
    Reply,
    sentences=st.lists(st.tuples(st.sampled_from(TRUE + FALSE * 2), st.sampled_from(MARKERS)), max_size=6).map(tuple),
    stops_at=st.none() | st.integers(0, 300),
    structured=st.sampled_from([QUESTIONS, QUESTIONS, '{"questions": []}', '{"questions": "none"}', "[1, 2", ""]),
)
BODIES = st.fixed_dictionaries(
    {
        "query": st.just(QUESTION),
        "generator": st.sampled_from(["standard", "attributed", "verified"]),
        "citation_policy": st.sampled_from([None, "strict", "checked", "mark"]),
        "citation_style": st.sampled_from(["numeric", "title", "none"]),
        "stream": st.booleans(),
    }
)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["whole", "whole+judged", "cut-stream"])
async def client(
    request: pytest.FixtureRequest, template: Template, folder: Path, open_world: Any, server: ModelServer
) -> AsyncIterator[Client]:
    """A tenant whose model writes as scripted."""
    server.matchers.clear()
    verifier = "model" if "judged" in request.param else "embedding"
    settings = model_at(server.base_url, request.param, llm_timeout_s=1.0, claim_verifier=verifier)
    async with open_world(folder, **settings) as (_, http):
        yield template.client(http)


async def ask(client: Client, sse: Callable[[httpx.Response], Any], body: dict[str, Any]) -> dict[str, Any]:
    """Return the answer. The events of a stream must say the same."""
    response = await client.post("/answers", body)
    assert response.status_code == 200, response.text
    if not body["stream"]:
        answer: dict[str, Any] = response.json()["data"]
        return answer
    events = sse(response)
    assert events[-1][1] == "done", events[-1]
    done: dict[str, Any] = events[-1][2]
    tokens = [data for _, name, data in events if name == "token"]
    assert "".join(token["text"] for token in tokens) == done["answer"]
    if done["answer"] != REFUSAL:
        included = [claim for claim in done["claims"] if claim["start_char"] is not None]
        assert [token["supported"] for token in tokens] == [claim["supported"] for claim in included]
        assert [token["reason"] for token in tokens] == [claim["reason"] for claim in included]
    return done


def plain(text: str) -> str:
    return " ".join(re.sub(r"[#*]+", " ", text).split())


def assert_nothing_false_is_unmarked(answer: dict[str, Any], documents: str) -> None:
    """Every supported sentence is true, every other one is marked, and the text has nothing else."""
    text = answer["answer"]
    included = [claim for claim in answer["claims"] if claim["start_char"] is not None]
    if text == REFUSAL:
        assert (answer["grounded"], answer["citations"], included) == (False, [], [])
        return
    at = 0
    for claim in included:
        assert not text[at : claim["start_char"]].strip(), text
        assert text[claim["start_char"] : claim["end_char"]] == claim["text"]
        at = claim["end_char"]
        ending = CITED + (r"(?=\s|$)" if claim["supported"] else MARK)
        match = re.compile(ending).match(text, at)
        assert match is not None, text
        at = match.end()
        # A model that stops in the middle leaves the beginning of a sentence.
        true = (
            any(each.startswith(claim["text"]) for each in TRUE + HARMLESS)
            or plain(claim["text"].replace(" – ", " ")) in documents
        )
        assert true or not claim["supported"], f"{claim['text']!r} is false and was not marked"
        assert claim["supported"] is (claim["reason"] is None)
        assert claim["supported"] is (claim["status"] == "supported")
        assert not claim["supported"] or claim["markers"]
    assert not text[at:].strip()
    assert answer["grounded"] is any(claim["supported"] for claim in included)
    numbers = {citation["marker"] for citation in answer["citations"]}
    assert {marker for claim in included for marker in claim["markers"]} == numbers


def assert_verification_is_marked(answer: dict[str, Any], policy: str | None, documents: str) -> None:
    """The first answer and the independent answers contain no unmarked false sentence either."""
    verification = answer["verification"]
    if verification is None:
        return
    assert 1 <= len(verification["verification_qa"]) <= 5
    for each in (verification["initial_answer"], *(checked["answer"] for checked in verification["verification_qa"])):
        for sentence in FALSE:
            unmarked = re.search(re.escape(sentence) + rf"(?!{CITED}{MARK})", each)
            assert unmarked is None or plain(sentence) in documents, each
            assert policy == "mark" or "[unsupported]" not in each


@sampled(gate=12, deep=1500, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=BODIES, reply=REPLIES)
async def test_nothing_false_reaches_a_client_without_a_mark(
    client: Client, server: ModelServer, sse: Any, body: dict[str, Any], reply: Reply
) -> None:
    server.matchers[:] = [(lambda _: True, reply)]
    documents = plain(" ".join(text for text in await contents(client)))
    answer = await ask(client, sse, body)
    assert_nothing_false_is_unmarked(answer, documents)
    assert_verification_is_marked(answer, body["citation_policy"], documents)
    for citation in answer["citations"]:
        chunk = await client.data("GET", f"/chunks/{citation['chunk_id']}")
        assert citation["quote"] in chunk["content"]


_CONTENTS: dict[str, list[str]] = {}


async def contents(client: Client) -> list[str]:
    """Return the texts of the tenant's chunks."""
    if client.caller.tenant_id not in _CONTENTS:
        documents = await client.data("GET", "/documents")
        chunks = [await client.data("GET", f"/documents/{each['id']}/chunks") for each in documents]
        _CONTENTS[client.caller.tenant_id] = [chunk["content"] for listed in chunks for chunk in listed]
    return _CONTENTS[client.caller.tenant_id]
