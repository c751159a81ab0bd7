"""A deployment: one catalogue, and everything that belongs to it in other stores."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Identity of a deployment on servers that other deployments may use.

    ``id`` (``d_`` and 32 hex digits) is created once in the catalogue and never changes. ``name`` is the setting DEPLOYMENT,
    which prefixes the names of everything that the deployment creates on a server. ``described`` shows people where it runs.
    """

    id: str
    name: str
    described: str

    def __str__(self) -> str:
        return f"{self.id} ({self.name!r} on {self.described})"


def new_deployment_id() -> str:
    """Return a new unique id."""
    return f"d_{uuid4().hex}"
