"""Generic commands over a path of the API, and groups of options."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import pytest
import typer
from typer.exceptions import TyperException

from agentic_rag_backend.cli import command as command_module
from agentic_rag_backend.cli.command import Session, command, join_path
from agentic_rag_backend.cli.command_tree import CommandGroup, add_commands
from agentic_rag_backend.cli.resources import Resource, delete_command, list_command, post_command, show_command
from agentic_rag_backend.errors import InvalidRequest

SHIPS = [{"id": "s1", "name": "Aster", "crew": 7}, {"id": "s2", "name": "Kestrel", "crew": 12}]


class FakeClient:
    """Records requests and returns ships."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, Any]]] = []

    async def every(self, path: str, *, limit: int, **parameters: Any) -> list[dict[str, Any]]:
        self.requests.append(("LIST", path, {"limit": limit, **parameters}))
        return SHIPS if parameters["flag"] is None else []

    async def get(self, path: str, **parameters: Any) -> Any:
        self.requests.append(("GET", path, parameters))
        return SHIPS if path == "/ports" else SHIPS[0]

    async def post(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        self.requests.append(("POST", path, body or {}))
        return {"id": "s1", "state": "moored"}

    async def delete(self, path: str, **parameters: Any) -> dict[str, Any]:
        self.requests.append(("DELETE", path, parameters))
        return {"id": "s1"}


@dataclass(frozen=True, kw_only=True)
class Cargo:
    """A group of options."""

    weight: Annotated[int | None, typer.Option("--weight", help="Tons.")] = None
    fragile: Annotated[bool, typer.Option("--fragile")] = False


async def load_ship(session: Session, name: str, *, cargo: Cargo, target: str = "north") -> None:
    """Load a ship."""
    session.output.present({"name": name, "target": target, **asdict(cargo)})


async def find_ship(session: Session, name: str) -> str:
    return {"Aster": "s1"}.get(name, name)


async def show_removal(session: Session, reply: Any) -> None:
    session.output.present({"removed": reply["id"]})


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    client = FakeClient()

    @asynccontextmanager
    async def connect(*_: Any, operator: bool, **__: Any) -> AsyncIterator[FakeClient]:
        assert operator
        yield client

    monkeypatch.setattr(command_module, "connect", connect)
    return client


@pytest.fixture
def ships() -> typer.Typer:
    resource = Resource(
        path="/ships",
        columns={"id": "id", "#crew": "crew", "call": lambda ship: ship["name"].upper()},
        empty="no ships",
        argument=Annotated[str, typer.Argument(metavar="SHIP")],
        find_id=find_ship,
        operator=True,
    )
    flag = Annotated[str | None, typer.Option("--flag", help="Only of this country.")]
    deep = Annotated[bool, typer.Option("--deep")]
    commands = {
        "list": list_command(resource, "List ships.", flag=flag),
        "show": show_command(resource, "Show a ship.", deep=(deep, False)),
        "moor": post_command(resource, "moor", "Moor a ship."),
        "delete": delete_command(resource, "Delete a ship.", show_removal, deep=(deep, False)),
        "load": command(load_ship, operator=True),
        "ports": list_command(Resource(path="/ports", columns={"name": "name"}, paged=False, operator=True), "List ports."),
    }
    app = typer.Typer()
    add_commands(app, {"ships": CommandGroup(help="Ships.", commands=commands)})
    return app


def run(app: typer.Typer, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    typer.main.get_command(app)(args=["ships", *arguments], standalone_mode=False)
    return capsys.readouterr().out


def test_a_resource_is_listed_as_a_table_and_as_json(
    client: FakeClient, ships: typer.Typer, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [line.split() for line in run(ships, capsys, "list").splitlines()]
    assert rows == [["id", "crew", "call"], ["s1", "7", "ASTER"], ["s2", "12", "KESTREL"]]
    assert json.loads(run(ships, capsys, "list", "--limit", "3", "--json")) == SHIPS
    assert run(ships, capsys, "list", "--flag", "NO") == "no ships\n"
    assert client.requests == [
        ("LIST", "/ships", {"limit": 50, "flag": None}),
        ("LIST", "/ships", {"limit": 3, "flag": None}),
        ("LIST", "/ships", {"limit": 50, "flag": "NO"}),
    ]


def test_one_item_is_shown_changed_and_deleted_by_its_name_or_id(
    client: FakeClient, ships: typer.Typer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert json.loads(run(ships, capsys, "show", "Aster", "--deep", "--json")) == SHIPS[0]
    assert json.loads(run(ships, capsys, "moor", "s1", "--json")) == {"id": "s1", "state": "moored"}
    assert json.loads(run(ships, capsys, "delete", "Aster", "--json")) == {"removed": "s1"}
    assert client.requests == [
        ("GET", "/ships/s1", {"deep": True}),
        ("POST", "/ships/s1/moor", {}),
        ("DELETE", "/ships/s1", {"deep": False}),
    ]


def test_a_name_with_slashes_names_no_other_resource(
    client: FakeClient, ships: typer.Typer, capsys: pytest.CaptureFixture[str]
) -> None:
    run(ships, capsys, "delete", "../documents/a?b", "--json")
    assert [path for _, path, _ in client.requests] == ["/ships/..%2Fdocuments%2Fa%3Fb"]
    assert join_path("/graph/edits", 3) == "/graph/edits/3"
    for name in ("", ".", ".."):
        with pytest.raises(InvalidRequest):
            run(ships, capsys, "show", name)


def test_a_list_without_pages_has_no_limit(client: FakeClient, ships: typer.Typer, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(ships, capsys, "ports").split() == ["name", "Aster", "Kestrel"]
    assert client.requests == [("GET", "/ports", {})]
    with pytest.raises(TyperException, match="limit"):
        run(ships, capsys, "ports", "--limit", "3")


def test_each_field_of_a_group_is_an_option(client: FakeClient, ships: typer.Typer, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = {"name": "Aster", "target": "north", "weight": None, "fragile": False}
    assert json.loads(run(ships, capsys, "load", "Aster", "--json")) == loaded
    options = ["--weight", "3", "--fragile", "--target", "south"]
    assert json.loads(run(ships, capsys, "load", "Aster", *options, "--json")) == {
        "name": "Aster",
        "target": "south",
        "weight": 3,
        "fragile": True,
    }
