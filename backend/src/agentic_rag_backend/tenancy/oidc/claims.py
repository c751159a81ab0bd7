"""What claims of a token say about a caller: subject, tenant and scopes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agentic_rag_backend.domain.tenant import Scope
from agentic_rag_backend.errors import Forbidden, TokenInvalid

KEY_ID_PREFIX = "oidc:"
_SHOWN_CHARACTERS = 128
_MAX_VALUES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRules:
    """Which claims name the tenant and the scopes, and what their values mean.

    A claim of a claim has the names joined by a dot, such as ``realm_access.roles``.

    Args:
        tenants: names or ids of tenants by value. None: the value is the name or the id.
    """

    tenant_claim: str
    tenants: Mapping[str, str] | None
    scopes_claim: str
    scopes: Mapping[str, Scope]


@dataclass(frozen=True, slots=True)
class TokenHolder:
    """The holder of a valid token: an id that stands for the subject, the name or id of the tenant, and the scopes."""

    key_id: str
    tenant: str
    scopes: frozenset[Scope]


def read_holder(claims: Mapping[str, Any], rules: ClaimRules) -> TokenHolder:
    """Return what the claims of a valid token say.

    Raises:
        TokenInvalid: the token names no subject.
        Forbidden: the token names no tenant, several tenants, or a value that is no tenant's.
    """
    return TokenHolder(make_key_id(claims), _read_tenant(claims, rules), _read_scopes(claims, rules))


def make_key_id(claims: Mapping[str, Any]) -> str:
    """Return the id under which usage, sessions and streams of a subject are kept. It has 43 characters and no personal data.

    Tokens of a subject have one id, so work goes on when the provider issues the next token.
    """
    issuer, subject = claims.get("iss"), claims.get("sub")
    if not isinstance(subject, str) or not subject:
        raise TokenInvalid("the token names no subject (sub)")
    return KEY_ID_PREFIX + hashlib.sha256(f"{issuer}\x1f{subject}".encode(errors="surrogatepass")).hexdigest()[:38]


def find_claim(claims: Mapping[str, Any], name: str) -> Any:
    """Return the claim of a name, or of a path of names joined by dots. None: there is none.

    Names that contain dots, such as addresses, have priority over paths.
    """
    if name in claims:
        return claims[name]
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        inner = claims.get(".".join(parts[:length]))
        if isinstance(inner, Mapping):
            return find_claim(inner, ".".join(parts[length:]))
    return None


def _read_tenant(claims: Mapping[str, Any], rules: ClaimRules) -> str:
    value = find_claim(claims, rules.tenant_claim)
    values = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    if len(values) != 1 or not isinstance(values[0], str) or not values[0]:
        count = "several tenants" if len(values) > 1 else "no tenant"
        raise Forbidden(f"the token names {count}: its claim {rules.tenant_claim!r} (OIDC_TENANT_CLAIM) must have one text")
    tenant = values[0] if rules.tenants is None else rules.tenants.get(values[0])
    if tenant is None:
        raise no_such_tenant(values[0], rules.tenant_claim)
    return tenant


def no_such_tenant(value: str, claim: str) -> Forbidden:
    """Return the error of a token whose tenant does not exist."""
    return Forbidden(f"the token's tenant {value[:_SHOWN_CHARACTERS]!r} (claim {claim!r}) does not exist")


def _read_scopes(claims: Mapping[str, Any], rules: ClaimRules) -> frozenset[Scope]:
    """Return the scopes. Values that have no meaning here grant nothing."""
    value = find_claim(claims, rules.scopes_claim)
    values: Iterable[object] = value.split() if isinstance(value, str) else value[:_MAX_VALUES] if isinstance(value, list) else ()
    return frozenset(rules.scopes[item] for item in values if isinstance(item, str) and item in rules.scopes)
