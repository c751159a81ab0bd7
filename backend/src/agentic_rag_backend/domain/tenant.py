"""Tenants, their keys, the caller of a request, and the deployment to which they belong."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import uuid4

from agentic_rag_backend.domain.experiments import ActiveExperiment
from agentic_rag_backend.domain.filters import Filter
from agentic_rag_backend.domain.quota import QuotaValues
from agentic_rag_backend.domain.tuning import NOT_TUNED, TunedValues
from agentic_rag_backend.errors import InvalidScope

ONLY_OPERATOR = "operator"
"""Name of the operator whose key is OPERATOR_KEY."""
OPERATOR_KEY_ID = "operator"
"""Id of OPERATOR_KEY. A key of OPERATOR_KEYS has this id, a colon, and its name."""
MAX_LABELS = 20
MAX_LABEL_CHARACTERS = 256
LABEL_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}\Z")
"""Name of a label of a tenant."""
_TENANT_ID = re.compile(r"t_[0-9a-f]{32}\Z")


@dataclass(frozen=True, slots=True, order=True)
class Access:
    """The documents that a restricted key may read: those that pass ``filter``.

    ``text`` is the filter as canonical JSON. It alone identifies the access, because equal filters may differ: 1 equals true.
    """

    text: str
    filter: Filter = field(compare=False)


@dataclass(frozen=True, slots=True, order=True)
class TenantId:
    """An opaque tenant identifier, ``t_`` and 32 hex digits. Equal to Graphiti's ``group_id``.

    With ``access``, it is the scope of a restricted key: the documents of the tenant that the key may not read do not exist.
    Scopes with different access are different, so that graphs and caches in memory are never shared between them.

    Raises:
        InvalidScope: the value is empty or has another form. A missing scope therefore never means "all".
    """

    value: str
    access: Access | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.value, str) or _TENANT_ID.match(self.value) is None:
            raise InvalidScope(f"a tenant scope is required, of the form 't_' and 32 hex digits; got {self.value!r}")

    def __str__(self) -> str:
        return self.value

    @property
    def whole(self) -> TenantId:
        """The scope of the whole tenant."""
        return self if self.access is None else TenantId(self.value)

    @classmethod
    def new(cls) -> TenantId:
        """Return a new random identifier."""
        return cls(f"t_{secrets.token_hex(16)}")


def require_tenant(tenant: object) -> TenantId:
    """Return ``tenant`` if it is a `TenantId`. Store adapters call it first in every method.

    Raises:
        InvalidScope: for any other value, including ``None`` and the empty string.
    """
    if not isinstance(tenant, TenantId):
        raise InvalidScope(f"a tenant scope is required; got {tenant!r}")
    return tenant


def is_operator_key(key_id: str | None) -> bool:
    """Return whether a key is an operator's."""
    return key_id is not None and key_id.partition(":")[0] == OPERATOR_KEY_ID


class Scope(StrEnum):
    """Permissions of a key; ``admin`` includes ``write``, ``write`` includes ``read``."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class TenantState(StrEnum):
    """State of a tenant. Only the operator sees an ``importing`` or ``suspended`` tenant.

    Only its import changes a tenant that is ``importing``. The jobs of a ``suspended`` tenant wait.
    """

    ACTIVE = "active"
    IMPORTING = "importing"
    SUSPENDED = "suspended"
    DELETING = "deleting"


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant in the catalogue. ``state_version`` grows with every change that can alter an answer."""

    id: TenantId
    name: str
    state: TenantState
    state_version: int
    created_at: datetime
    tuned: TunedValues = field(default=NOT_TUNED, hash=False)
    """Values that an accepted proposal of tuning set."""
    experiment: ActiveExperiment | None = field(default=None, hash=False)
    """The experiment that runs."""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Labels that the operator gave it."""
    quota: QuotaValues = field(default_factory=dict, hash=False)
    """Limits that the operator set. Others have their defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantChange:
    """New values of a tenant. None: the value stays."""

    name: str | None = None
    labels: Mapping[str, str] | None = None
    suspended: bool | None = None


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """A key to issue. ``expires_at`` is in UTC. None: it does not expire.

    ``filter`` selects the documents that the key may read. None: all documents.
    """

    name: str
    scopes: Collection[Scope] = (Scope.READ,)
    expires_at: datetime | None = None
    filter: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """The public part of a key. Only the SHA-256 of the secret is stored."""

    id: str
    tenant_id: TenantId
    name: str
    scopes: frozenset[Scope]
    created_at: datetime
    prefix: str | None = None
    """The beginning of the secret, by which people recognise it. None: an earlier release issued the key."""
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    """Exact to a minute. None: the key was not used since releases record it."""
    replaced_by: str | None = None
    """Id of the key that a rotation issued instead. This key works until it expires."""
    revoked_at: datetime | None = None
    filter: Mapping[str, Any] | None = None
    """The filter, as the operator wrote it, of the documents that the key may read. None: it may read all documents."""
    quota: QuotaValues = field(default_factory=dict, hash=False)
    """Limits of this key, within those of the tenant."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller: the tenant, the credential's scopes, and the tenant's flags and version, read in one statement."""

    tenant: Tenant
    scopes: frozenset[Scope]
    key_id: str
    operator: bool = False
    flags: Mapping[str, object] = field(default_factory=dict)
    key_quota: QuotaValues = field(default_factory=dict)
    """Limits of the key."""

    def may_use(self, scope: Scope) -> bool:
        """Return whether the credential includes ``scope``."""
        order = (Scope.READ, Scope.WRITE, Scope.ADMIN)
        return any(order.index(granted) >= order.index(scope) for granted in self.scopes)


@dataclass(frozen=True, slots=True)
class Credential:
    """A tenant's key that a caller sent, and its holder. The key may be revoked or expired."""

    principal: Principal
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    filter: Mapping[str, Any] | None = None


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
