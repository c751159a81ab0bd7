"""After a deletion, words of the removed text appear in no response at once, including names and keywords of themes."""

from __future__ import annotations

import pytest
from removed_words import CELLAR, MAPS, VELLUM, assert_whole, responses, said
from tests.e2e.api.conftest import Client, World

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def fill(world: World, name: str) -> tuple[Client, str]:
    client = await world.tenant(name)
    await client.data("PATCH", "/features", json={"DUAL_LEVEL_RETRIEVAL_ENABLED": True})
    document = await client.upload(VELLUM, key="one")
    await client.upload(CELLAR, key="two")
    await client.upload(MAPS, key="three")
    await client.rebuild()
    await client.build_tree()
    before = said(await responses(client))
    assert {"/raptor.data[].name", "/raptor.data[].summary"} <= before.keys()
    held = {at for at in before if at.startswith("/communities.")}
    assert {"/communities.data[].name", "/communities.data[].keywords[]", "/communities.data[].summary"} <= held
    assert any(at.endswith(".themes[].name") for at in before), before
    return client, document["id"]


async def test_a_deleted_documents_words_are_nowhere(world: World) -> None:
    client, document = await fill(world, "forgets")
    accepted = await client.data("DELETE", f"/documents/{document}", status=202)
    assert said(await responses(client)) == {}
    await assert_whole(client)
    assert (await client.ended(accepted["job_id"]))["state"] == "succeeded"
    assert said(await responses(client)) == {}
    await client.rebuild(mode="incremental")
    await client.build_tree()
    assert said(await responses(client)) == {}
    await assert_whole(client)


async def test_words_that_a_new_version_lacks_are_nowhere(world: World) -> None:
    client, document = await fill(world, "corrects")
    changed = await client.upload("# The reading room\n\nThe Lacewater Archive has a reading room.\n", key="one")
    assert changed["id"] == document
    assert said(await responses(client)) == {}
    await assert_whole(client)
    await client.rebuild(mode="incremental")
    await client.build_tree()
    assert said(await responses(client)) == {}
