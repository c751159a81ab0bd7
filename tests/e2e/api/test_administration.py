"""Tenants, keys and scopes, communities, status, health, and the OpenAPI document."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.e2e.api.conftest import DOORS, Client, World

from agentic_rag_backend.retrieval.registry import STRATEGIES

pytestmark = pytest.mark.asyncio(loop_scope="module")

OPERATOR_KEY = "the-operators-key-of-these-tests-0123456789"
READS = ["/documents", "/jobs", "/communities", "/status", "/features", "/strategies", "/rerankers", "/tenants/me"]
SEARCH = ("POST", "/search", {"query": "eels"})
WRITES = [("POST", "/documents", {"text": " "}), ("DELETE", "/documents/none", None), ("POST", "/jobs/none/cancel", None)]
ADMIN = [
    ("POST", "/admin/communities/rebuild", {"mode": "full", "dry_run": True}),
    ("GET", "/admin/communities", None),
    ("POST", "/admin/reconcile", {"repair": False}),
    ("GET", "/admin/reconcile", None),
    ("PATCH", "/features", {"COMMUNITY_AUTO_REBUILD": False}),
]
OPERATORS = [
    ("GET", "/tenants", None),
    ("POST", "/tenants", {"name": "mine"}),
    ("GET", "/tenants/{own}", None),
    ("PATCH", "/tenants/{own}", {"suspended": False}),
    ("DELETE", "/tenants/{own}", None),
    ("GET", "/tenants/{own}/keys", None),
    ("POST", "/tenants/{own}/keys", {"scopes": ["admin"]}),
    ("POST", "/tenants/{own}/keys/none/rotate", {"overlap_s": 0}),
    ("DELETE", "/tenants/{own}/keys/none", None),
    ("POST", "/tenants/{own}/export", None),
    ("POST", "/tenants/import", None),
]


async def _status(client: Client, method: str, path: str, body: Any) -> int:
    options = {} if body is None else {"json": body}
    return (await client.request(method, path.replace("{own}", client.caller.tenant_id), **options)).status_code


async def test_a_scope_allows_what_it_says(world: World) -> None:
    allowed = {200, 202, 404, 422}
    for client, writes, administers in (
        (world.alpha_reader, False, False),
        (world.alpha_writer, True, False),
        (world.alpha, True, True),
    ):
        assert {await _status(client, "GET", path, None) for path in READS} == {200}
        assert await _status(client, *SEARCH) == 200
        for asked, may in (*((asked, writes) for asked in WRITES), *((asked, administers) for asked in ADMIN)):
            status = await _status(client, *asked)
            assert status in (allowed if may else {403}), (client.caller.name, asked)
        assert {await _status(client, *asked) for asked in OPERATORS} == {403}


PROBES = ("/health", "/.well-known")


async def test_nothing_but_health_and_the_description_is_open(world: World) -> None:
    for path, operations in (await asyncio.to_thread(world.app.openapi))["paths"].items():
        for method in operations:
            if path.startswith(PROBES):
                continue
            await asyncio.sleep(0)  # refusals in process do not give up the loop
            content = {"json": {"query": "x", "name": "x"}} if method in {"post", "patch"} and path != "/x" else {}
            response = await world.nobody.request(method.upper(), "/" + path.replace("{", "").replace("}", ""), **content)
            assert response.status_code == 401, (method, path, response.text)
            assert response.headers["www-authenticate"] == "Bearer"


async def test_a_key_works_in_either_header_and_not_after_it_was_revoked(world: World) -> None:
    tenant = world.alpha.caller.tenant_id
    issued = await world.operator.data("POST", f"/tenants/{tenant}/keys", status=201, json={"name": "brief", "scopes": ["read"]})
    assert issued["key"].startswith("ark_")
    for headers in ({"X-API-Key": issued["key"]}, {"Authorization": f"bearer {issued['key']}"}):
        assert (await world.nobody.get("/tenants/me", headers=headers)).json()["data"]["id"] == tenant

    listed = await world.operator.data("GET", f"/tenants/{tenant}/keys")
    assert all(key["key"] is None for key in listed)
    assert issued["key"] not in json.dumps(listed)
    revoked = await world.operator.delete(f"/tenants/{tenant}/keys/{issued['id']}")
    assert (revoked.status_code, revoked.content) == (204, b"")
    refused = await world.nobody.get("/tenants/me", headers={"X-API-Key": issued["key"]})
    assert (refused.status_code, refused.json()["code"]) == (401, "key_revoked")
    again = await world.operator.data("GET", f"/tenants/{tenant}/keys")
    assert next(key for key in again if key["id"] == issued["id"])["revoked_at"] is not None
    other = await world.operator.delete(f"/tenants/{world.beta.caller.tenant_id}/keys/{issued['id']}")
    assert other.status_code == 404, "a key is found below its own tenant only"


async def test_a_key_is_issued_with_the_least_scope_and_rotated(world: World) -> None:
    keys = f"/tenants/{world.alpha.caller.tenant_id}/keys"
    issued = await world.operator.data("POST", keys, status=201, json={"name": "site", "expires_at": "2099-05"})
    assert (issued["scopes"], issued["prefix"], issued["last_used_at"]) == (["read"], issued["key"][:12], None)
    assert issued["expires_at"].startswith("2099-05-31T23:59:59")
    with_key = {"X-API-Key": issued["key"]}
    assert (await world.nobody.post("/documents", {"text": "x"}, headers=with_key)).status_code == 403
    assert (await world.nobody.get("/documents", headers=with_key)).status_code == 200
    taken = await world.operator.post(keys, {"name": "site"})
    assert (taken.status_code, issued["id"] in taken.json()["detail"]) == (409, True)
    for body in ({"overlap_s": -1}, {"overlap_s": 2_592_001}, {"overlap_s": "soon"}, {"overlap_s": 1.5}, {"overlap": 1}):
        assert (await world.operator.post(f"{keys}/{issued['id']}/rotate", body)).status_code == 422, body
    rotated = await world.operator.data("POST", f"{keys}/{issued['id']}/rotate", status=201, json={"overlap_s": 0})
    assert {name: rotated[name] for name in ("name", "scopes", "revoked_at", "replaced_by")} == {
        "name": "site",
        "scopes": ["read"],
        "revoked_at": None,
        "replaced_by": None,
    }
    refused = await world.nobody.get("/documents", headers=with_key)
    assert (refused.status_code, refused.json()["code"], refused.json()["title"]) == (401, "key_expired", "Key expired")
    assert (await world.nobody.get("/documents", headers={"X-API-Key": rotated["key"]})).status_code == 200
    listed = {key["id"]: key for key in await world.operator.data("GET", keys)}
    assert listed[issued["id"]]["replaced_by"] == rotated["id"]
    assert min(listed[key["id"]]["last_used_at"] for key in (issued, rotated)) > listed[issued["id"]]["created_at"]
    assert (await world.operator.post(f"{keys}/{issued['id']}/rotate", {})).status_code == 409
    other = f"/tenants/{world.beta.caller.tenant_id}/keys"
    assert (await world.operator.post(f"{other}/{rotated['id']}/rotate", {})).status_code == 404
    for expires_at in ("2001", "yesterday", 4_000_000_000, "9999-12-31T23:59:59-12:00", "2099-02-30"):
        refused = await world.operator.post(keys, {"name": "late", "expires_at": expires_at})
        assert (refused.status_code, [error["field"] for error in refused.json()["errors"]]) == (422, ["expires_at"]), expires_at


async def test_the_operator_acts_for_a_tenant_it_names(world: World) -> None:
    for_alpha = {"X-Tenant-Id": world.alpha.caller.tenant_id}
    documents = await world.operator.data("GET", "/documents", headers=for_alpha)
    assert {item["id"] for item in documents} == {item["id"] for item in world.documents["alpha"].values()}
    assert (await world.operator.get("/documents")).status_code == 422
    for unknown in ("t_" + "0" * 32, "Alpha", "", "*"):
        assert (await world.operator.get("/documents", headers={"X-Tenant-Id": unknown})).status_code in {404, 422}
    nobody = await world.nobody.get("/documents", headers=for_alpha)
    assert nobody.status_code == 401


async def test_tenants_are_created_listed_and_refused(world: World) -> None:
    names = [tenant["name"] for tenant in await world.operator.pages("/tenants", limit=1)]
    assert names[-2:] == ["beta", "alpha"]
    assert (await world.operator.post("/tenants", {"name": "alpha"})).status_code == 409
    for name in ("", " ", "x" * 129, "a\x00b", "a\nb", 5):
        assert (await world.operator.post("/tenants", {"name": name})).status_code == 422, name
    for body in ({"scopes": []}, {"scopes": ["root"]}, {"name": "\x00"}, {"scopes": "read"}):  # type: ignore[var-annotated]
        refused = await world.operator.post(f"/tenants/{world.alpha.caller.tenant_id}/keys", body)
        assert refused.status_code == 422, body
    assert (await world.operator.get("/tenants/t_nobody")).status_code == 404
    assert [tenant["name"] for tenant in await world.operator.pages("/tenants", limit=1)] == names


async def test_a_deleted_tenant_leaves_nothing(world: World) -> None:
    client = await world.tenant("leaving")
    document = await client.upload("Ilse Harrow of the Sluice Company drew the sluice of Sarn.", key="sluice")
    await client.rebuild()
    tenant = client.caller.tenant_id
    receipt = await world.operator.data("DELETE", f"/tenants/{tenant}")
    assert receipt["id"] == tenant
    assert min(receipt["removed"][name] for name in ("vectors", "blobs", "documents", "tenants", "api_keys")) >= 1
    assert (await client.get("/documents")).status_code == 401
    assert (await world.operator.get(f"/documents/{document['id']}", headers={"X-Tenant-Id": tenant})).status_code == 404
    assert (await world.operator.delete(f"/tenants/{tenant}")).status_code == 404
    folder = world.container.settings.data_dir
    assert [path for path in folder.rglob("*") if tenant in path.name] == []


async def test_communities_are_listed_and_read(world: World) -> None:
    listed = await world.alpha.pages("/communities", limit=1)
    assert [item["level"] for item in listed] == sorted(item["level"] for item in listed)
    for item in listed:
        assert await world.alpha.data("GET", f"/communities/{item['id']}") == item
        assert item["entity_count"] > 0
        for source in item["sources"]:
            assert (await world.alpha.data("GET", f"/chunks/{source['chunk_id']}"))["document_id"] == source["document_id"]
    assert await world.alpha.data("GET", "/communities", params={"level": 9}) == []
    assert {item["level"] for item in await world.alpha.data("GET", "/communities", params={"level": 0})} == {0}


async def test_a_dry_run_changes_nothing_and_rebuilds_are_joined(world: World) -> None:
    before = await world.alpha.data("GET", "/admin/communities")
    dry = await world.alpha.rebuild(dry_run=True)
    assert dry["result"]
    after = await world.alpha.data("GET", "/admin/communities")
    assert after["generation"] == before["generation"] > 0
    assert after["stale"] is False

    asked = [world.alpha.data("POST", "/admin/communities/rebuild", status=202, json={"mode": "full"}) for _ in range(4)]
    jobs = {accepted["job_id"] for accepted in await asyncio.gather(*asked)}
    ended = [await world.alpha.ended(job) for job in jobs]
    assert {job["state"] for job in ended} == {"succeeded"}
    assert len(jobs) < 4
    assert (await world.alpha.data("GET", "/admin/communities"))["generation"] == before["generation"] + len(jobs)
    without_body = await world.alpha.post("/admin/communities/rebuild")
    assert without_body.status_code == 202, "everything in the body may be left out, so the body may be"
    await world.alpha.ended(without_body.json()["data"]["job_id"])


async def test_status_says_what_is_served(world: World) -> None:
    status = await world.alpha_reader.data("GET", "/status")
    assert status["profile"] == "embedded"
    assert status["counts"]["documents_ready"] == 3
    assert set(status["strategies"]) == STRATEGIES.keys() - {"dual_level"}
    assert (status["dual_level"]["low_weight"], status["dual_level"]["high_weight"]) == (0.6, 0.4)
    flags = status["features"]
    assert (flags["DUAL_LEVEL_RETRIEVAL_ENABLED"], flags["COMMUNITY_AUTO_REBUILD"]) == (False, False)
    assert (flags["DUAL_LEVEL_AUTO_WEIGHTS"], flags["DUAL_LEVEL_LOW_WEIGHT"]) == (False, 0.6)
    assert status["communities"]["generation"] > 0
    assert status["vector_indexes"] is None, "which is over all tenants, and for the operator"
    assert OPERATOR_KEY not in json.dumps(status)
    assert [row["name"] for row in await world.alpha.data("GET", "/strategies")] == list(STRATEGIES)


async def test_health_names_each_store(world: World) -> None:
    assert (await world.nobody.get("//health/live")).json() == {"status": "ok"}
    ready = await world.nobody.get("//health/ready")
    assert ready.status_code == 200
    assert ready.json()["stores"] == dict.fromkeys(["catalogue", "graph", "vectors", "blobs", "jobs"], "ok")


async def test_a_request_id_is_kept_if_it_is_harmless(world: World) -> None:
    kept = await world.alpha.get("/status", headers={"X-Request-Id": "trace-1"})
    assert kept.json()["meta"]["requestId"] == kept.headers["x-request-id"] == "trace-1"
    for harmful in ("a b", "x" * 65, "a;b", "<b>"):
        made = await world.alpha.get("/nothing", headers={"X-Request-Id": harmful})
        assert made.json()["requestId"] == made.headers["x-request-id"] != harmful
    assert kept.headers["cache-control"] == "no-store"
    assert kept.headers["x-content-type-options"] == "nosniff"


async def test_the_openapi_document_is_whole(world: World) -> None:
    document = (await world.nobody.get("/openapi.json")).json()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            where = f"{method} {path}"
            assert operation["summary"], where
            if path.startswith((*PROBES, "/metrics")):
                continue
            if path.startswith(DOORS):
                assert "application/json" in operation["responses"]["default"]["content"], where
                continue
            problems = {status for status in operation["responses"] if status.startswith(("4", "5")) or status == "default"}
            assert {"401", "422", "default"} <= problems, where
            for status in problems:
                content = operation["responses"][status]["content"]
                assert content["application/problem+json"]["schema"] == {"$ref": "#/components/schemas/Problem"}, where
            if "{" in path:
                assert "404" in problems, where
            for body in operation.get("requestBody", {}).get("content", {}).items():
                assert _has_example(document, body), where
    assert set(document["components"]["securitySchemes"]) == {"bearer", "apiKey"}


def _has_example(document: dict[str, Any], body: tuple[str, Any]) -> bool:
    schema = body[1]["schema"]
    for option in [schema, *schema.get("anyOf", [])]:
        name = option.get("$ref", "").rpartition("/")[2]
        if (document["components"]["schemas"][name] if name else option).get("examples"):
            return True
    return False
