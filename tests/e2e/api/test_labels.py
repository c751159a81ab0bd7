"""Labels of texts over HTTP: the nearest labelled documents vote, or a model chooses from their labels."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.api.conftest import Client, World, add_tenant

pytestmark = pytest.mark.asyncio(loop_scope="module")

LABELLED = {
    "card_arrival": ("When will my new card arrive?", "My card has not come yet.", "I still wait for the card that I ordered."),
    "lost_card": ("I lost my card on the train.", "My card was stolen yesterday.", "How do I report a missing card?"),
    "exchange_rate": ("Which exchange rate do you use?", "What is the rate from dollars to euros?"),
}
TEXT = "The card I ordered two weeks ago is still not here."


async def upload_labelled(client: Client, **metadata: Any) -> None:
    """Upload labelled documents, and one without a label."""
    for label, texts in LABELLED.items():
        for text in texts:
            await client.upload(text, metadata={"label": label, **metadata})
    await client.upload("The new card of the ferry company arrives in three colours.")


async def test_the_nearest_labelled_documents_vote(world: World) -> None:
    client, reader = await add_tenant(world.operator.http, "votes", "admin", "read")
    await upload_labelled(client)
    labelling = await reader.data("POST", "/label", json={"text": TEXT})
    assert (labelling["label"], labelling["method"], labelling["strategy"]) == ("card_arrival", "votes", "hybrid")
    assert 0.5 < labelling["confidence"] <= 1
    assert sum(vote["share"] for vote in labelling["votes"]) == pytest.approx(1, abs=0.001)
    assert labelling["votes"][0] == {**labelling["votes"][0], "label": "card_arrival", "documents": 3}
    assert len(labelling["examples"]) == 8
    assert labelling["examples"][0]["labels"] == ["card_arrival"]
    assert labelling["examples"][0]["text"] in LABELLED["card_arrival"]
    unlike = await reader.data("POST", "/label", json={"text": "Tides are caused by the moon."})
    assert unlike["confidence"] < 0.3
    for strategy in ("dense", "sparse", "graph"):
        other = await reader.data("POST", "/label", json={"text": TEXT, "strategy": strategy, "limit": 3})
        assert (other["label"], other["strategy"], len(other["examples"])) == ("card_arrival", strategy, 3)


async def test_labels_and_filters_restrict_the_documents(world: World) -> None:
    (client,) = await add_tenant(world.operator.http, "restricted", "admin")
    await upload_labelled(client, project="bank")
    await client.upload(TEXT, metadata={"label": ["post", "card_arrival"], "project": "shop"})
    await client.upload("A label that is a number votes for nothing: the card.", metadata={"label": 5})
    chosen = await client.data("POST", "/label", json={"text": TEXT, "labels": ["lost_card", "exchange_rate"]})
    assert chosen["label"] == "lost_card"
    assert {vote["label"] for vote in chosen["votes"]} == {"lost_card", "exchange_rate"}
    shop = await client.data("POST", "/label", json={"text": TEXT, "filters": {"project": "shop"}})
    assert [(vote["label"], vote["share"]) for vote in shop["votes"]] == [("card_arrival", 0.5), ("post", 0.5)]
    response = await client.post("/label", {"text": TEXT, "labels": ["unknown"]})
    assert response.json()["data"]["label"] is None
    assert "no document with the metadata 'label'" in response.json()["meta"]["warnings"][0]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"text": ""}, "text"),
        ({"text": "x" * 8001}, "text"),
        ({"text": TEXT, "limit": 51}, "limit"),
        ({"text": TEXT, "labels": []}, "labels"),
        ({"text": TEXT, "labels": ["x" * 201]}, "labels"),
        ({"text": TEXT, "method": "model"}, "method"),
        ({"text": TEXT, "strategy": "none"}, "strategy"),
        ({"text": TEXT, "filters": {"tenant_id": "x"}}, "tenant_id"),
    ],
)
async def test_bad_input_is_refused(world: World, body: dict[str, Any], field: str) -> None:
    response = await world.alpha.post("/label", body)
    assert response.status_code == 422
    assert field in response.text
