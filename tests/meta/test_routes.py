"""The application and ``docs/reference/http.md`` have the same routes: method, path and scope."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from inspect import iscoroutinefunction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from fastapi.routing import APIRoute, APIRouter

from agentic_rag_backend.api import doors, routers
from agentic_rag_backend.api.app import BASE_PATH, create_app
from agentic_rag_backend.api.dependencies import Operator, Requires, refuse_unknown_parameters, require_metrics_key
from agentic_rag_backend.api.requests.bodies import GuardedRoute, creates
from agentic_rag_backend.container import Container
from agentic_rag_backend.settings import Settings

Rows = Sequence[Sequence[str]]


def served() -> dict[tuple[str, str], str]:
    """Return the summary of every (method, path) of the application. No store is opened."""
    container = cast(Container, SimpleNamespace(settings=Settings(_env_file=None)))  # type: ignore[call-arg]
    paths = create_app(container).openapi()["paths"]
    return {(method.upper(), path): route["summary"] for path, methods in paths.items() for method, route in methods.items()}


def find_routers() -> list[APIRouter]:
    """Return the router of each module of routes."""
    modules = [
        import_module(module.name)
        for package in (routers, doors)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not module.ispkg
    ]
    return [module.router for module in modules if hasattr(module, "router")]


def scopes() -> dict[tuple[str, str], str]:
    """Return the required scope of each (method, path without base): a scope, `operator` or `none`."""
    found: dict[tuple[str, str], str] = {}
    for router in find_routers():
        for route in router.routes:
            assert isinstance(route, APIRoute)
            asked = scopes_of(route)
            assert len(asked) <= 1, f"{route.path} asks for {asked}"
            found |= {(method, route.path): asked.pop() if asked else "none" for method in route.methods}  # type: ignore[union-attr]
    return found


def scopes_of(route: APIRoute) -> set[str]:
    """Return the scopes that a route requires."""
    return {scope for call in _calls(route.dependant) if (scope := _scope_of(call))}


def _calls(dependant: Any) -> Iterator[Callable[..., Any]]:
    for inner in dependant.dependencies:
        yield inner.call
        yield from _calls(inner)


def test_no_request_waits_for_a_thread_of_the_frameworks_pool() -> None:
    routes = [route for router in find_routers() for route in router.routes if isinstance(route, APIRoute)]
    called = {call for route in routes for call in (route.endpoint, *_calls(route.dependant))} | {refuse_unknown_parameters}
    on_threads = {call for call in called if not iscoroutinefunction(call) and not iscoroutinefunction(type(call).__call__)}
    assert on_threads == set()


def _scope_of(call: Callable[..., Any]) -> str | None:
    if call in (Operator.dependency, require_metrics_key):
        return "operator"
    return call.scope.value if isinstance(call, Requires) else None


def test_every_route_has_its_row_and_every_row_its_route(root: Path, table_rows: Callable[[Path], Rows]) -> None:
    rows = table_rows(root / "docs" / "reference" / "http.md")
    described = {(row[0].strip("`"), row[1].strip("`")) for row in rows if row[0].strip("`").isupper()}

    assert described == {(method, path.removeprefix(BASE_PATH)) for method, path in served()}


def test_the_rows_name_the_scope_that_the_route_asks_for(root: Path, table_rows: Callable[[Path], Rows]) -> None:
    rows = table_rows(root / "docs" / "reference" / "http.md")
    described = {(row[0].strip("`"), row[1].strip("`")): row[2].strip("`") for row in rows if row[0].strip("`").isupper()}

    assert described == scopes()


def test_only_health_and_the_provider_of_tokens_are_open_to_callers_without_a_key() -> None:
    of_tokens = {f"/.well-known/oauth-protected-resource{path}" for path in ("", "/mcp")}
    assert {path for (_, path), scope in scopes().items() if scope == "none"} == {"/health/live", "/health/ready"} | of_tokens


def test_routes_that_create_something_require_room_on_the_disk() -> None:
    changing = {
        (method, route.path): creates(route)
        for router in find_routers()
        for route in router.routes
        if isinstance(route, GuardedRoute) and scopes_of(route) != {"read"}
        for method in (route.methods or set()) & {"POST", "PUT", "PATCH"}
    }
    assert len(changing) > 15
    assert {path for (_, path), room in changing.items() if not room} == {
        "/admin/reconcile",
        "/chunking/preview",
        "/jobs/{job_id}/cancel",
        "/jobs/{job_id}/retry",
    }


def test_every_metric_has_its_row_and_every_row_its_metric(root: Path, table_rows: Callable[[Path], Rows]) -> None:
    rows = table_rows(root / "docs" / "guide" / "operations.md")
    described = {row[0].strip("`"): row[1] for row in rows if row[0].startswith("`agentic_rag_")}
    source = root / "backend" / "src" / "agentic_rag_backend"
    made = "".join((source / name).read_text() for name in ("telemetry/metrics.py", "api/routers/prometheus.py"))
    found = {
        name + ("_total" if kind == "Counter" else ""): kind.lower()
        for kind, name in re.findall(r'(Counter|Gauge|Histogram)\(\s*"(\w+)"', made)
    }
    assert described == found
