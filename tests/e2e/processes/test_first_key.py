"""Several API processes that start concurrently on an empty catalogue."""

from __future__ import annotations

import json

import httpx
import pytest
from site_of_processes import OPERATOR, Site, call

pytestmark = pytest.mark.slow


def test_of_servers_that_start_at_once_one_issues_the_first_key(site: Site) -> None:
    servers = [site.start("serve") for _ in range(2)]
    running = [site.await_start(process) for process in servers]
    kept = [site.folder / f"data-{number}" / "credentials.json" for number in range(2)]
    (winner,) = [json.loads(path.read_text()) for path in kept if path.exists()]
    (tenant,) = call(running[0].url, "GET", "/tenants", OPERATOR)
    assert (tenant["name"], tenant["id"]) == ("default", winner["tenant_id"])
    keys = call(running[1].url, "GET", f"/tenants/{tenant['id']}/keys", OPERATOR)
    assert [key["name"] for key in keys] == ["made at first start"]
    for server in running:
        answer = httpx.get(f"{server.url}/api/v1/tenants/me", headers={"X-API-Key": winner["key"]}, timeout=60)
        assert answer.status_code == 200, answer.text

    (loser,) = [number for number, path in enumerate(kept) if not path.exists()]
    assert running[loser].stop() == 0
    site.await_start(site.start("serve", DATA_DIR=str(site.folder / f"data-{loser}")))
    assert len(call(running[1 - loser].url, "GET", f"/tenants/{tenant['id']}/keys", OPERATOR)) == 1
