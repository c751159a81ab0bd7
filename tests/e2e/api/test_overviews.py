"""Questions for documents over HTTP: which of them mention a subject, and what the one with a file's name is about."""

from __future__ import annotations

import pytest
from tests.e2e.api.conftest import Client, World

pytestmark = pytest.mark.asyncio(loop_scope="module")

MANY = 60
"""Passages of one document with the subject: more than a search reads at once."""


async def documents_named(client: Client, question: str, **fields: object) -> str:
    """Return the introduction of the answer, which names the documents."""
    answer = await client.data("POST", "/answers", json={"query": question, **fields})
    return str(answer["introduction"])


async def test_all_documents_that_mention_a_subject_are_named(world: World) -> None:
    client, other = await world.tenant("mentions"), await world.tenant("others")
    days = [f"The pilot cutter sailed on day {day} and the pilot slept." for day in range(4 * MANY)]
    chapters = "\n\n".join(f"# Pilot cutter {number}\n\n{' '.join(days[4 * number : 4 * number + 4])}" for number in range(MANY))
    await client.upload(chapters, key="voyage", title="The voyage")
    await client.upload(
        f"{'Each ship paid dues in the town hall. ' * 3}The last pilot cutter was sold in 1911.",
        key="dues",
        title="Dues",
        metadata={"kind": "a"},
    )
    await client.upload("A cutter needs no pilot.", key="boats", title="Boats")
    await client.upload("The market opens at eight.", key="market", title="Market")
    await other.upload("Their pilot cutter is blue.", key="theirs", title="Theirs")
    named = "“The voyage”", "“Dues”", "“Boats”"
    introduction = await documents_named(client, "Which documents mention the pilot cutter?")
    assert introduction.startswith("3 documents mention “the pilot cutter”: ")
    assert all(title in introduction for title in named)
    only = await documents_named(client, "Which documents mention the pilot cutter?", filters={"metadata.kind": "a"})
    assert only == "1 document mentions “the pilot cutter”: “Dues”."
    answer = await client.data("POST", "/answers", json={"query": "Which documents mention the airship?"})
    assert not answer["grounded"]


async def test_a_document_is_named_by_its_file(world: World) -> None:
    client = await world.tenant("files")
    await client.upload("- Rope\n- Sails\n- Oars", key="lists/what_2014.md", title="Stores")
    await client.upload("The pier is long. It was built in 1911.", key="pier.md", title="The pier")
    answer = await client.data("POST", "/answers", json={"query": "What is What_2014.md about?"})
    assert answer["introduction"].startswith("These are the first lines of the document “Stores”.")
    assert "Oars" in answer["answer"]
