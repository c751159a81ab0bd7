"""The OpenAPI description of the server, and the check that the client has a name for every route."""

from __future__ import annotations

from types import SimpleNamespace

from agentic_rag_backend.api.app import create_app
from agentic_rag_backend.settings import Settings
from generator.names import OPERATIONS, OTHER_PROTOCOLS, STREAMED, WRITTEN
from generator.writer import Schema, successes


def read_description() -> Schema:
    """Return the OpenAPI description of the application of this checkout, without other protocols."""
    settings = Settings(_env_file=None)  # type: ignore[call-arg]
    description: Schema = create_app(SimpleNamespace(settings=settings)).openapi()  # type: ignore[arg-type]
    paths = {path: operations for path, operations in description["paths"].items() if not path.startswith(OTHER_PROTOCOLS)}
    return {**description, "paths": paths}


def check_coverage(description: Schema) -> None:
    """Check that the tables name every route and media type, and nothing else.

    Raises:
        SystemExit: a route has no name, or a name no route.
    """
    offered = {(route, "application/json") for route in OPERATIONS.values()} | set(WRITTEN.values())
    offered |= {(route, "text/event-stream") for route in STREAMED.values()}
    published = set()
    for path, operations in description["paths"].items():
        for verb, operation in operations.items():
            route = f"{verb.upper()} {path}"
            bodies = set(operation.get("requestBody", {}).get("content", {}))
            replies = {media for _, content in successes(operation) for media in content}
            streams = {media for media in replies if media == "text/event-stream"}
            plain = {"application/json"} if (not bodies and not streams) or "application/json" in bodies else set()
            published |= {(route, media) for media in plain | (bodies - {"application/json"}) | streams}
    unnamed, unknown = published - offered, offered - published
    if unnamed or unknown:
        raise SystemExit(f"OPERATIONS or WRITTEN lacks {sorted(unnamed)}; no route has {sorted(unknown)}")
