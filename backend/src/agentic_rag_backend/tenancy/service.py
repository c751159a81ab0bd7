"""Management of tenants and their keys, for the operator."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from agentic_rag_backend.domain.filter_grammar import parse_filter
from agentic_rag_backend.domain.size_limits import printable_name
from agentic_rag_backend.domain.tenant import (
    LABEL_NAME,
    MAX_LABEL_CHARACTERS,
    MAX_LABELS,
    ApiKey,
    KeyRequest,
    Principal,
    Scope,
    Tenant,
    TenantChange,
    TenantId,
)
from agentic_rag_backend.errors import Conflict, InvalidRequest, in_field
from agentic_rag_backend.jobs.relay import Relay
from agentic_rag_backend.stores.catalogue.base import Page, TenantDirectory, Topic
from agentic_rag_backend.tenancy.authentication import find_tenant, new_secret, secret_hash, shown_prefix
from agentic_rag_backend.tenancy.key_uses import KeyUses

_FIRST_KEY = uuid.UUID("6f7c1e0a-5d2b-4f57-9a63-3c1d0f6b8e21")
"""Namespace for the id of a tenant's first key. Every process derives the same id, so only one issues the key."""

Erase = Callable[[TenantId], Awaitable[Mapping[str, int]]]
"""Removes a tenant's data from every other store and returns the counts. The container provides it."""


DELETED_WITHIN_S = 30.0
LONGEST_OVERLAP = timedelta(days=30)
"""Longest time for which a replaced key works."""
LONGEST_LIFE = timedelta(days=36_525)


@dataclass(frozen=True, slots=True)
class Removal:
    """Removed numbers of a deleted tenant, by store and table. If not ``done``, the rest is removed in the background."""

    done: bool
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new key with its secret. The secret is not stored."""

    key: ApiKey
    secret: str


class TenantService:
    """Creates and deletes tenants, issues and revokes keys."""

    def __init__(self, directory: TenantDirectory, erase: Erase, relay: Relay, key_uses: KeyUses) -> None:
        self._directory = directory
        self._key_uses = key_uses
        self._erase = erase
        self._relay = relay
        relay.register_handlers({Topic.TENANT: self._remove_tenant})

    async def create(self, name: str) -> Tenant:
        """Create a tenant.

        Raises:
            InvalidRequest: the name is empty or too long.
            Conflict: the name is taken.
        """
        return await self._directory.create(printable_name(name))

    async def get(self, tenant: TenantId) -> Tenant:
        """Return a tenant or raise `NotFound`."""
        return await self._directory.tenant(tenant)

    async def act_for(self, tenant: TenantId) -> Principal:
        """Return a caller that may read the tenant's data, for the jobs of the tenant. `NotFound` if there is no such tenant."""
        flags = await self._directory.flags(tenant)
        return Principal(await self._directory.tenant(tenant), frozenset({Scope.READ}), key_id="", flags=flags)

    async def by_name(self, name: str) -> Tenant | None:
        """Return the tenant with that name, or None."""
        return await self._directory.tenant_by_name(name)

    async def find(self, name_or_id: str) -> Tenant:
        """Return the tenant with that id or name, or raise `NotFound`."""
        return await find_tenant(self._directory, name_or_id)

    async def list(
        self, *, limit: int, cursor: str | None = None, labels: Mapping[str, str] = MappingProxyType({})
    ) -> Page[Tenant]:
        """List tenants, newest first. With ``labels``, those that have all of them."""
        return await self._directory.tenants(limit=limit, cursor=cursor, newest_first=True, labels=labels)

    async def change(self, tenant: TenantId, changes: TenantChange) -> Tenant:
        """Rename a tenant, replace its labels, suspend or resume it.

        A suspended tenant's keys are refused from the next request on. Its running jobs stop within seconds, and wait with the
        queued ones until it is resumed.

        Raises:
            NotFound: the tenant does not exist.
            InvalidRequest: nothing changes, or a name or a label is outside its limits.
            Conflict: the name is taken, or the tenant is being imported or deleted.
        """
        if changes == TenantChange():
            raise InvalidRequest("name at least one of name, labels and suspended")
        if changes.name is not None:
            changes = replace(changes, name=printable_name(changes.name))
        _check_labels(changes.labels or {})
        return await self._directory.change(tenant, changes)

    async def delete(self, tenant: TenantId, *, within_s: float = DELETED_WITHIN_S) -> Removal:
        """Refuse the tenant's requests immediately and remove all its data from every store.

        Args:
            within_s: maximum seconds to wait. A removal that takes longer, or that a store interrupts, continues by itself.

        Raises:
            NotFound: the tenant does not exist.
        """
        await self._directory.mark_deleting(tenant)
        delivery = await self._relay.deliver(tenant, within_s=within_s)
        return Removal(done=delivery.done, counts=delivery.counts)

    async def finish_deleting(self, tenant: TenantId) -> Mapping[str, int]:
        """Remove the rest of a tenant whose removal was interrupted. Return the counts."""
        return await self._remove_tenant(tenant, tenant.value)

    async def _remove_tenant(self, tenant: TenantId, _subject: str) -> Mapping[str, int]:
        counts = dict(await self._erase(tenant))
        counts.update(await self._directory.remove(tenant))
        return counts

    async def issue_key(self, tenant: TenantId, request: KeyRequest) -> IssuedKey:
        """Create a key. Only the result contains its secret.

        Raises:
            NotFound: the tenant does not exist.
            InvalidRequest: there is no scope, the name is invalid, or the time of expiry is past or more than a century away; the
                filter is invalid, or the key has one and may do more than read.
            Conflict: a key of the tenant that works has the name.
        """
        if not request.scopes:
            raise InvalidRequest(f"a key must have at least one scope of {', '.join(Scope)}; got none", field="scopes")
        _check_expiry(request.expires_at)
        _check_filter(request)
        secret = new_secret()
        key = await self._directory.add_key(
            tenant,
            replace(request, name=printable_name(request.name)),
            secret_sha256=secret_hash(secret),
            prefix=shown_prefix(secret),
        )
        return IssuedKey(key, secret)

    async def issue_first_key(self, tenant: TenantId, *, name: str) -> IssuedKey | None:
        """Create a tenant's first key, with all scopes. None if any process did so before, even if that key was revoked.

        Raises:
            NotFound: the tenant does not exist.
        """
        secret = new_secret()
        first_key = str(uuid.uuid5(_FIRST_KEY, tenant.value))
        try:
            key = await self._directory.add_key(
                tenant,
                KeyRequest(printable_name(name), (Scope.ADMIN,)),
                secret_sha256=secret_hash(secret),
                prefix=shown_prefix(secret),
                key_id=first_key,
            )
        except Conflict:
            return None
        return IssuedKey(key, secret)

    async def list_keys(self, tenant: TenantId) -> Sequence[ApiKey]:
        """List a tenant's keys, newest first, including revoked keys. Other processes write uses within `WRITTEN_EVERY_S`."""
        await self._directory.tenant(tenant)
        await self._key_uses.write_uses()
        return await self._directory.keys(tenant)

    async def rotate_key(self, tenant: TenantId, key_id: str, *, overlap: timedelta) -> IssuedKey:
        """Create a key with the name, the scopes and the length of life of another. The other one works for ``overlap`` longer.

        Raises:
            NotFound: the tenant has no such key.
            InvalidRequest: the overlap is outside its limits.
            Conflict: the key was revoked or replaced, or has expired.
        """
        if not timedelta(0) <= overlap <= LONGEST_OVERLAP:
            limit_s, overlap_s = int(LONGEST_OVERLAP.total_seconds()), overlap.total_seconds()
            raise InvalidRequest(f"overlap_s must be from 0 to {limit_s}; got {overlap_s:g}", field="overlap_s")
        secret = new_secret()
        key = await self._directory.rotate_key(
            tenant, key_id, secret_sha256=secret_hash(secret), prefix=shown_prefix(secret), overlap=overlap
        )
        return IssuedKey(key, secret)

    async def revoke_key(self, tenant: TenantId, key_id: str) -> None:
        """Revoke a key immediately, or raise `NotFound`."""
        await self._directory.revoke_key(tenant, key_id)


def _check_expiry(expires_at: datetime | None) -> None:
    now = datetime.now(UTC)
    if expires_at is not None and not now < expires_at <= now + LONGEST_LIFE:
        raise InvalidRequest(
            f"expires_at must be later than now ({now:%Y-%m-%dT%H:%M:%SZ}) and within {LONGEST_LIFE.days} days; "
            f"got {expires_at.isoformat()}",
            field="expires_at",
        )


def _check_labels(labels: Mapping[str, str]) -> None:
    if len(labels) > MAX_LABELS:
        raise InvalidRequest(f"a tenant may have at most {MAX_LABELS} labels; got {len(labels)}", field="labels")
    for name, value in labels.items():
        if not LABEL_NAME.match(name):
            raise InvalidRequest(
                f"the name of a label must have 1 to 63 lower-case letters, digits, '.', '_' and '-'; got {name[:80]!r}",
                field="labels",
            )
        if len(value) > MAX_LABEL_CHARACTERS or not value.isprintable():
            raise InvalidRequest(
                f"a label must have at most {MAX_LABEL_CHARACTERS} printable characters; {name!r} has {len(value)}",
                field=f"labels.{name}",
            )


def _check_filter(request: KeyRequest) -> None:
    if request.filter is None:
        return
    with in_field("filter"):
        if parse_filter(request.filter, of_documents=True) is None:
            raise InvalidRequest('a key\'s filter must have a comparison, such as {"team": ["sales"]}; got an empty one')
    if set(request.scopes) != {Scope.READ}:
        scopes = ", ".join(sorted(request.scopes))
        raise InvalidRequest(
            f"a key with a filter may only read, because writing concerns all documents; got {scopes}", field="scopes"
        )
