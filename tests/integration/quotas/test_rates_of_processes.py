"""Several processes send requests against one limit: never more than the limit is admitted, and at most 1 % less."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from programs import Program

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.base import Catalogue

CLIENT = Path(__file__).parents[2] / "fixtures" / "rate_client.py"
EVEN, UNEVEN = (1, 1, 1, 1, 1, 1, 1, 1), (9, 1, 1, 1, 1, 1, 1, 1)
"""The shares of eight processes of all requests."""


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catalogue.db'}"
    address: str = request.getfixturevalue("postgres_url")
    return address


async def test_processes_share_a_limit(url: str, tmp_path: Path) -> None:
    await _send(url, tmp_path, [share * 400 for share in UNEVEN], limit=4_000)


@pytest.mark.deep
@pytest.mark.parametrize("shares", [EVEN, UNEVEN], ids=["even", "uneven"])
async def test_200_000_requests_of_eight_processes(url: str, tmp_path: Path, shares: Sequence[int]) -> None:
    await _send(url, tmp_path, [200_000 * share // sum(shares) // 8 * 8 for share in shares], limit=100_000)


async def _send(url: str, folder: Path, requests: Sequence[int], *, limit: int) -> None:
    catalogue = await Catalogue.open(url)
    await catalogue.migrate()
    tenant = (await catalogue.tenants.create("rates")).id
    await catalogue.close()
    admitted = await asyncio.to_thread(_run_clients, url, tenant, folder, requests, limit)
    assert sum(requests) > limit
    assert 0.99 * limit <= sum(admitted) <= limit, admitted


def _run_clients(url: str, tenant: TenantId, folder: Path, requests: Sequence[int], limit: int) -> list[int]:
    programs = [
        Program([str(CLIENT), url, tenant.value, str(limit), str(count)], cwd=folder, env=os.environ, stdout=subprocess.PIPE)
        for count in requests
    ]
    admitted = []
    for program in programs:
        assert program.stdout is not None
        admitted.append(int(program.stdout.read()))
        assert program.wait(60) == 0
        program.stdout.close()
    return admitted
