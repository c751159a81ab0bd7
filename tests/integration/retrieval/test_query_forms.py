"""Queries by identifier, and in scripts that the encoder does not read, find their passage among similar ones."""

from __future__ import annotations

import pytest
from tests.integration.retrieval.conftest import Corpus

pytestmark = pytest.mark.asyncio(loop_scope="module")

PASSAGES = {
    "parse": "The function parse_header splits the first line of a message into its name and its version and raises an error if "
    "either is missing.",
    "read": "The function read_header copies the first line of a message into a buffer and raises an error if the buffer is too "
    "small.",
    "write": "The function write_header puts the name and the version of a message into its first line and raises an error if "
    "the name is empty.",
    "lighthouse": "北角的旧灯塔去年秋天由两名工匠重新粉刷。因为雨水冲掉了第一层油漆，他们只好再刷一遍。",
    "ferry": "开往西岛的渡轮冬天每天只有三班。遇到大风，渡轮就停在港口里。",
    "street": "老城的街道禁止卡车通行，以免压坏石板路。",
}
QUESTIONS = (
    ("message header function with a buffer: parse_header", "parse", "query_form", 0.3),
    ("read_header first line name and version of a message", "read", "query_form", 0.3),
    ("谁粉刷了灯塔？", "lighthouse", "query_script", 0.3),
    ("卡车为什么不能通行？", "street", "query_script", 0.3),
    ("Who writes the version of a message?", "write", "settings", 0.7),
)


async def test_the_form_of_a_query_decides_on_the_weights(corpus: Corpus) -> None:
    tenant = await corpus.tenant("forms", [])
    await corpus.add_all(tenant, {key: (text, {"title": "Notes"}) for key, text in PASSAGES.items()})
    for question, key, by, dense in QUESTIONS:
        found = await corpus.ask(tenant, question, "hybrid")
        assert found.hits[0].visible.document_key == key, question
        assert found.trace.details["weights_by"] == by
        assert found.trace.details["weights"]["dense"] == dense
