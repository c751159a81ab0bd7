"""Authentication of callers by their keys or tokens, and lock-out of clients that send many wrong keys.

A tenant's key has 256 random bits and cannot be guessed, so it is checked whatever its client sent before: clients behind one
address do not lock each other out. People choose the operator's key and the key of the metrics. A client that is locked out
cannot try them, unless the same key was accepted from it before.

The counts belong to one process. Time and counts are bounded: the longest lock, and the clients that are remembered.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agentic_rag_backend.domain.filter_grammar import parse_filter
from agentic_rag_backend.domain.tenant import (
    ONLY_OPERATOR,
    OPERATOR_KEY_ID,
    Access,
    Credential,
    Principal,
    Scope,
    Tenant,
    TenantId,
    TenantState,
)
from agentic_rag_backend.errors import (
    AgenticRagError,
    Forbidden,
    InvalidRequest,
    InvalidScope,
    KeyExpired,
    KeyRevoked,
    NotFound,
    TenantSuspended,
    TokenInvalid,
    TooManyWrongKeys,
    Unauthenticated,
)
from agentic_rag_backend.stores.catalogue.tenants.tenant_directory import TenantDirectory
from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.tenancy.key_uses import KeyUses
from agentic_rag_backend.tenancy.oidc.claims import no_such_tenant

if TYPE_CHECKING:
    from agentic_rag_backend.tenancy.oidc.token_verifier import TokenVerifier

_SHOWN_CHARACTERS = 128


async def find_tenant(directory: TenantDirectory, name_or_id: str) -> Tenant:
    """Return the tenant with that id or name.

    A text of the form of an id is never read as a name, so that no name stands for a deleted tenant.

    Raises:
        NotFound: no tenant has this id or name.
    """
    try:
        tenant_id = TenantId(name_or_id)
    except InvalidScope:
        tenant = await directory.tenant_by_name(name_or_id)
    else:
        return await directory.tenant(tenant_id)
    if tenant is None:
        raise NotFound(f"tenant {name_or_id[:_SHOWN_CHARACTERS]!r} does not exist: no tenant has this name or id")
    return tenant


_log = get_logger(__name__)
FIRST_LOCK_S = 1.0
LONGEST_LOCK_S = 300.0
FORGOTTEN_AFTER_S = 3600.0
MAX_CLIENTS = 10_000
"""Remembered clients. Beyond it, the one that was not seen for the longest time is forgotten."""


@dataclass(frozen=True, slots=True)
class _Record:
    """What is known about a client. Times are on the monotonic clock."""

    wrong: int = 0
    last_wrong_at: float = 0.0
    locked_until: float = 0.0
    accepted: frozenset[str] = frozenset()
    """Hashes of keys that people chose and that this client sent."""


class WrongKeys:
    """Counts wrong keys by client. Each wrong key after the limit locks the client out, twice as long as the one before.

    Args:
        limit: wrong keys before the first lock. 0: no client is locked out.
    """

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit = limit
        self._clock = clock
        self._records: OrderedDict[str, _Record] = OrderedDict()

    def may_try(self, client: str | None, digest: str) -> bool:
        """Return whether a key of a client may be compared with the key that has the hash ``digest``."""
        record = self._record_of(client)
        return record.locked_until <= self._clock() or digest in record.accepted

    def accept_key(self, client: str | None, digest: str) -> None:
        """Remember that a client sent the key with the hash ``digest``."""
        record = self._record_of(client)
        self._keep_record(client, replace(record, accepted=record.accepted | {digest}))

    def count_wrong_key(self, client: str | None) -> float:
        """Count a wrong key, unless the client is locked out. Return the seconds for which it is locked out now."""
        if client is None or not self.limit:
            return 0.0
        record, now = self._record_of(client), self._clock()
        if record.locked_until > now:
            return record.locked_until - now
        forgotten = now - record.last_wrong_at > FORGOTTEN_AFTER_S
        record = replace(record, wrong=1 if forgotten else record.wrong + 1, last_wrong_at=now)
        beyond = record.wrong - self.limit
        if beyond > 0:
            doubled = FIRST_LOCK_S * 2.0 ** min(beyond - 1, 30)
            record = replace(record, locked_until=now + min(doubled, LONGEST_LOCK_S))
            _log.warning("client_locked_out", client=client, wrong_keys=record.wrong, locked_s=record.locked_until - now)
        self._keep_record(client, record)
        return max(0.0, record.locked_until - now)

    def _record_of(self, client: str | None) -> _Record:
        return self._records.get(client or "", _Record())

    def _keep_record(self, client: str | None, record: _Record) -> None:
        if client is None or not self.limit:
            return
        self._records[client] = record
        self._records.move_to_end(client)
        while len(self._records) > MAX_CLIENTS:
            self._records.popitem(last=False)


KEY_PREFIX = "ark_"
_SECRET_BYTES = 32
_SHOWN_SECRET_CHARACTERS = 8
MAX_KEY_CHARACTERS = 256
MAX_TOKEN_CHARACTERS = 16_384


def new_secret() -> str:
    """Return a new key: a recognisable prefix and 256 random bits."""
    return KEY_PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


def shown_prefix(secret: str) -> str:
    """Return the beginning of a key, by which people recognise it. The other 208 bits cannot be guessed."""
    return secret[: len(KEY_PREFIX) + _SHOWN_SECRET_CHARACTERS]


def secret_hash(secret: str) -> str:
    """Return the SHA-256 of a key in hex. A fast hash suffices, because 256 random bits cannot be guessed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def is_token(secret: str) -> bool:
    """Return whether a secret has the form of a signed token (JWT): three parts. Keys of tenants contain no dots."""
    return secret.count(".") == 2 and not secret.startswith(KEY_PREFIX)


class Authenticator:
    """Turns secrets into principals. It reads the directory at every call, so every process refuses a revoked key immediately.

    Args:
        operators: keys of operators by name; see `Settings.operators`.
        metrics_key: a key that reads metrics and nothing else.
        wrong_keys: counts the wrong keys of clients. Callers that name no client are not counted.
        key_uses: notes the uses of tenants' keys. None: nobody does.
        tokens: verifies tokens of an OpenID provider. None: there is no provider, and a token is an unknown key.
    """

    def __init__(
        self,
        directory: TenantDirectory,
        *,
        operators: Mapping[str, str],
        metrics_key: str | None = None,
        wrong_keys: WrongKeys | None = None,
        key_uses: KeyUses | None = None,
        tokens: TokenVerifier | None = None,
    ) -> None:
        self._directory = directory
        self._operators = {secret_hash(key): name for name, key in operators.items()}
        self._metrics = {secret_hash(metrics_key): "metrics"} if metrics_key else {}
        self._wrong_keys = wrong_keys or WrongKeys(0)
        self._key_uses = key_uses
        self._tokens = tokens

    def find_operator(self, secret: str | None, *, client: str | None = None) -> str | None:
        """Return the name of the operator whose key ``secret`` is, in constant time. A client that is locked out gets None."""
        return self._find_digest(secret, self._operators, client)

    def may_read_metrics(self, secret: str | None, *, client: str | None = None) -> bool:
        """Return whether ``secret`` is the key of the metrics or an operator's. A client that is locked out gets False."""
        return self._find_digest(secret, {**self._metrics, **self._operators}, client) is not None

    def _find_digest(self, secret: str | None, names: Mapping[str, str], client: str | None) -> str | None:
        """Return the name of the digest of ``names`` that is the secret's, of those that the client may try."""
        if secret is None:
            return None
        digest_of_secret = secret_hash(secret)
        # All are compared, so that the time does not depend on which of them matches.
        matches = [digest for digest in names if hmac.compare_digest(digest_of_secret, digest)]
        if not matches or not self._wrong_keys.may_try(client, digest_of_secret):
            return None
        self._wrong_keys.accept_key(client, digest_of_secret)
        return names[digest_of_secret]

    async def authenticate(self, secret: str | None, *, acting_for: str | None = None, client: str | None = None) -> Principal:
        """Return the holder of ``secret``.

        Args:
            acting_for: the name or id of a tenant, which only the operator may send; other callers that send one are refused.
            client: identity of the caller's address, which wrong keys are counted for.

        Raises:
            Unauthenticated: the key is missing or unknown.
            KeyRevoked, KeyExpired: the key worked earlier.
            TokenInvalid, TokenExpired: the token does not work. It is not a guess, so it does not count as a wrong key.
            IdentityProviderUnavailable: the token cannot be checked.
            TooManyWrongKeys: the key is unknown, and so were many keys of the client before.
            TenantSuspended: the tenant is suspended. The operator may still read.
            Forbidden: the tenant is being imported or deleted, or a tenant's key names another tenant.
            NotFound: the operator names a tenant that does not exist.
            InvalidRequest: the operator names no tenant.
        """
        if not secret:
            raise Unauthenticated("a key is required: send 'Authorization: Bearer KEY' or 'X-API-Key: KEY'")
        tokens = self._tokens if is_token(secret) else None
        if tokens is None and len(secret) > MAX_KEY_CHARACTERS:
            raise self._count_wrong_key(client, f"a key has at most {MAX_KEY_CHARACTERS} characters; got {len(secret)}")
        operator = self.find_operator(secret, client=client)
        if operator is not None:
            return await self._as_operator(acting_for, operator)
        if tokens is not None:
            return await self._as_holder(tokens, secret, acting_for)
        credential = await self._directory.authenticate(secret_hash(secret))
        if credential is None:
            raise self._count_wrong_key(client, "the key is unknown")
        now = datetime.now(UTC)
        _require_valid(credential, now)
        _require_no_tenant(acting_for)
        _require_active(credential.principal.tenant)
        if self._key_uses is not None:
            self._key_uses.note_use(credential, now)
        return credential.principal if credential.filter is None else restrict(credential.principal, credential.filter)

    def _count_wrong_key(self, client: str | None, reason: str) -> AgenticRagError:
        """Count a wrong key and return the error for it."""
        locked_s = self._wrong_keys.count_wrong_key(client)
        if not locked_s:
            return Unauthenticated(reason)
        return TooManyWrongKeys(
            f"{reason}, and your address has sent more than {self._wrong_keys.limit} wrong keys (MAX_WRONG_KEYS_PER_CLIENT): "
            f"wait {math.ceil(locked_s)} s; valid keys of tenants are accepted meanwhile",
            retry_after_s=locked_s,
        )

    async def _as_operator(self, acting_for: str | None, name: str = ONLY_OPERATOR) -> Principal:
        if acting_for is None:
            raise InvalidRequest("this route acts for a tenant; give its name or id in X-Tenant-Id")
        tenant = await find_tenant(self._directory, acting_for)
        readable = tenant.state in (TenantState.IMPORTING, TenantState.SUSPENDED)
        if not readable:
            _require_active(tenant)
        return Principal(
            tenant=tenant,
            # Meanwhile only the import writes, and callers can follow its job. Nothing changes a suspended tenant.
            scopes=frozenset({Scope.READ} if readable else Scope),
            key_id=OPERATOR_KEY_ID if name == ONLY_OPERATOR else f"{OPERATOR_KEY_ID}:{name}",
            operator=True,
            flags=await self._directory.flags(tenant.id),
        )

    async def _as_holder(self, tokens: TokenVerifier, token: str, acting_for: str | None) -> Principal:
        """Return the holder of a token, for the tenant that the token names."""
        if len(token) > MAX_TOKEN_CHARACTERS:
            raise TokenInvalid(f"a token has at most {MAX_TOKEN_CHARACTERS} characters; got {len(token)}")
        holder = await tokens.verify_token(token)
        _require_no_tenant(acting_for)
        match = await self._directory.tenant_and_flags(holder.tenant)
        if match is None:
            raise no_such_tenant(holder.tenant, tokens.rules.claims.tenant_claim)
        tenant, flags = match
        _require_active(tenant)
        return Principal(tenant, holder.scopes, holder.key_id, flags=flags)

    async def local_principal(self, tenant_id: TenantId) -> Principal:
        """Return a principal for a caller in this process (the CLI, a Python program), which has the stores open.

        Raises:
            NotFound: the tenant does not exist.
        """
        return await self._as_operator(tenant_id.value)


def restrict(principal: Principal, filter: Mapping[str, Any]) -> Principal:
    """Return the principal with a scope that shows only the documents that pass ``filter``.

    Raises:
        InvalidRequest: the filter is invalid.
    """
    access = _read_access(json.dumps(filter, sort_keys=True))
    scope = TenantId(principal.tenant.id.value, access)
    return replace(principal, tenant=replace(principal.tenant, id=scope))


@lru_cache(maxsize=1024)
def _read_access(text: str) -> Access:
    filter = parse_filter(json.loads(text), of_documents=True)
    if filter is None:
        raise InvalidRequest("the filter of the key has no comparison, so the key is refused; ask the operator for another")
    return Access(text, filter)


def _require_no_tenant(acting_for: str | None) -> None:
    if acting_for is not None:
        raise Forbidden("only the operator may send X-Tenant-Id; a tenant's key or token acts for its own tenant")


def _require_valid(credential: Credential, now: datetime) -> None:
    """Raise the error of a key that does not work any more. It is not a guess, so it does not count as a wrong key."""
    if credential.revoked_at is not None:
        raise KeyRevoked(f"the key was revoked at {credential.revoked_at:%Y-%m-%dT%H:%M:%SZ}; ask the operator for another")
    if credential.expires_at is not None and credential.expires_at <= now:
        raise KeyExpired(f"the key expired at {credential.expires_at:%Y-%m-%dT%H:%M:%SZ}; ask the operator for another")


def _require_active(tenant: Tenant) -> None:
    if tenant.state is TenantState.SUSPENDED:
        raise TenantSuspended("the tenant is suspended: its keys are refused until the operator resumes it")
    if tenant.state is not TenantState.ACTIVE:
        raise Forbidden(f"the tenant is {tenant.state.value}")
