"""Tenants by name: acting for them, their order, taken names, and copies made of archives."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.api.conftest import Client, World

pytestmark = pytest.mark.asyncio(loop_scope="module")

GZIP = {"Content-Type": "application/gzip"}


async def test_the_operator_acts_for_a_tenant_by_name_or_id(world: World) -> None:
    await world.tenant("Hafen Łódź")
    for name in ("alpha", world.alpha.caller.tenant_id, "Hafen Łódź"):
        acting: Any = {"X-Tenant-Id": name.encode()}
        own = await world.operator.data("GET", "/tenants/me", headers=acting)
        assert name in (own["id"], own["name"])
    refused = await world.operator.get("/documents", headers={"X-Tenant-Id": "nobody"})
    assert (refused.status_code, refused.json()["detail"]) == (
        404,
        "tenant 'nobody' does not exist: no tenant has this name or id",
    )
    assert (await world.alpha.get("/documents", headers={"X-Tenant-Id": "beta"})).status_code == 403


async def test_no_name_hides_the_id_of_another_tenant(world: World) -> None:
    alpha = world.alpha.caller.tenant_id
    await world.operator.data("POST", "/tenants", status=201, json={"name": alpha})
    own = await world.operator.data("GET", "/tenants/me", headers={"X-Tenant-Id": alpha})
    assert (own["id"], own["name"]) == (alpha, "alpha")
    nobodys = "t_" + "0" * 32
    await world.operator.data("POST", "/tenants", status=201, json={"name": nobodys})
    assert (await world.operator.get("/tenants/me", headers={"X-Tenant-Id": nobodys})).status_code == 404


async def test_lists_begin_with_the_newest(world: World) -> None:
    for number in range(3):
        await world.operator.data("POST", "/tenants", status=201, json={"name": f"order-{number}"})
        path = f"/tenants/{world.beta.caller.tenant_id}/keys"
        await world.operator.data("POST", path, status=201, json={"name": f"order-{number}", "scopes": ["read"]})
    keys = await world.operator.data("GET", f"/tenants/{world.beta.caller.tenant_id}/keys")
    for items in (await world.operator.pages("/tenants", limit=2), keys, await world.alpha.pages("/documents", limit=1)):
        times = [item["created_at"] for item in items]
        assert len(times) >= 3
        assert times == sorted(times, reverse=True)


async def test_a_taken_name_shows_who_has_it(world: World) -> None:
    refused = await world.operator.post("/tenants", {"name": "alpha"})
    detail = refused.json()["detail"]
    assert refused.status_code == 409
    assert detail == f"the tenant name 'alpha' is taken by {world.alpha.caller.tenant_id}, which is active: choose another name"


async def _archive(world: World, client: Client) -> bytes:
    return (await world.operator.post(f"/tenants/{client.caller.tenant_id}/export")).content


async def _imported(world: World, archive: bytes, **parameters: str) -> str:
    """Import an archive, wait for the job, and return the id of its tenant."""
    accepted = await world.operator.data("POST", "/tenants/import", status=202, params=parameters, headers=GZIP, content=archive)
    acting = {"X-Tenant-Id": accepted["tenant_id"]}
    while True:
        job = await world.operator.data("GET", f"/jobs/{accepted['job_id']}", headers=acting)
        if job["state"] in {"succeeded", "failed", "partial", "cancelled"}:
            assert job["state"] == "succeeded", job
            return str(accepted["tenant_id"])


async def test_an_archive_becomes_a_copy_under_another_name(world: World) -> None:
    source = await world.tenant("copied")
    await source.upload("Ilse Harrow of the Sluice Company drew the sluice of Sarn.", key="sluice")
    archive, own = await _archive(world, source), source.caller.tenant_id
    for parameters in ({"name": "by-name"}, {"tenant": "by-tenant"}):
        (name,) = parameters.values()
        tenant = await _imported(world, archive, **parameters)
        assert tenant != own
        acting = {"X-Tenant-Id": name}
        assert (await world.operator.data("GET", "/tenants/me", headers=acting))["id"] == tenant
        (document,) = await world.operator.data("GET", "/documents", headers=acting)
        assert document["key"] == "sluice"

    for parameters, status in (
        ({}, 409),
        ({"name": "copied"}, 409),
        ({"name": "by-name"}, 409),
        ({"name": "alpha"}, 409),
        ({"tenant": "by-name"}, 409),
        ({"tenant": "t_" + "0" * 32}, 404),
        ({"tenant": "by-name", "name": "both"}, 422),
    ):
        response = await world.operator.post("/tenants/import", params=parameters, headers=GZIP, content=archive)
        assert response.status_code == status, (parameters, response.text)

    await world.operator.data("DELETE", f"/tenants/{own}")
    assert await _imported(world, archive, name="restored") == own
    assert (await world.operator.data("GET", f"/tenants/{own}"))["name"] == "restored"
