"""The migrations match the tables, and the tables separate tenants."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Table, inspect

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.catalogue.deployments import RecordedDeployment
from agentic_rag_backend.stores.catalogue.migrations import HEAD, revisions
from agentic_rag_backend.stores.catalogue.tables import metadata
from agentic_rag_backend.stores.catalogue.tenants import tenant_directory as tenants


async def test_migrations_make_the_tables(tmp_path: Path) -> None:
    catalogue = await Catalogue.open(f"sqlite:///{tmp_path / 'catalogue.db'}")
    await catalogue.migrate()
    with catalogue.sync_engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        assert set(inspect(connection).get_table_names()) == {*metadata.tables, "alembic_version"}
    await catalogue.downgrade("base")
    with catalogue.sync_engine.connect() as connection:
        assert inspect(connection).get_table_names() == ["alembic_version"]
    await catalogue.migrate()
    await catalogue.tenants.create("first")
    await catalogue.close()


async def test_two_processes_migrate_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'catalogue.db'}"
    first, second = await Catalogue.open(url), await Catalogue.open(url)
    await asyncio.gather(first.migrate(), second.migrate())
    made = await first.tenants.create("first")
    assert await second.tenants.tenant(made.id) == made
    await first.close()
    await second.close()


def test_the_head_that_is_compared_with_is_the_last_revision() -> None:
    assert revisions()[0] == HEAD


async def test_a_database_that_is_up_to_date_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = await Catalogue.open(f"sqlite:///{tmp_path / 'catalogue.db'}")
    ran: list[str] = []
    monkeypatch.setattr("alembic.command.upgrade", lambda config, revision: ran.append(revision))
    await catalogue.migrate()
    assert ran == ["head"]
    monkeypatch.undo()
    await catalogue.migrate("0002")
    with pytest.raises(ConfigurationError, match=f"it is at 0002, and {HEAD} is needed"):
        await catalogue.require_migrated()
    await catalogue.migrate()
    await catalogue.require_migrated()
    monkeypatch.setattr("alembic.command.upgrade", lambda config, revision: ran.append(revision))
    await catalogue.migrate()
    assert ran == ["head"]
    await catalogue.close()


NOBODYS = {"workers", "places", "deployments", "removed_tenants"}


@pytest.mark.parametrize(
    "table", [table for table in metadata.sorted_tables if table.name not in NOBODYS], ids=lambda table: table.name
)
def test_tenants_are_apart_in_every_table(table: Table) -> None:
    assert next(iter(table.primary_key.columns)).name == "tenant_id"
    for constraint in table.foreign_key_constraints:
        assert constraint.column_keys[0] == "tenant_id"
    for index in table.indexes:
        assert index.columns[0].name == "tenant_id"


async def test_removing_a_tenant_visits_every_table(tmp_path: Path) -> None:
    catalogue = await Catalogue.open(f"sqlite:///{tmp_path / 'catalogue.db'}")
    await catalogue.migrate()
    made = await catalogue.tenants.create("first")
    assert set(await catalogue.tenants.remove(made.id)) == set(metadata.tables) - NOBODYS
    assert tenants.metadata is metadata  # type: ignore[attr-defined]
    await catalogue.close()


async def test_of_processes_that_start_at_once_one_names_the_deployment(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'catalogue.db'}"
    first, second = await Catalogue.open(url), await Catalogue.open(url)
    await first.migrate()
    made = await asyncio.gather(*(each.deployments.identify(name) for name in ("here", "there") for each in (first, second)))
    assert len(set(made)) == 1
    assert re.fullmatch("d_[0-9a-f]{32}", made[0].id)
    await first.deployments.rename("renamed")
    assert await second.deployments.identify("else") == RecordedDeployment(made[0].id, "renamed")
    await first.close()
    await second.close()
