"""Tokens: which are accepted, and for which tenant."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any, cast

import pytest
import pytest_asyncio
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from token_issuer import AUDIENCE, Issuer, make_key, public_entry

from agentic_rag_backend.domain.identity_provider import SIGNING_ALGORITHMS
from agentic_rag_backend.domain.tenant import Principal, Scope, Tenant, TenantId, TenantState
from agentic_rag_backend.errors import (
    AgenticRagError,
    Forbidden,
    TenantSuspended,
    TokenExpired,
    TokenInvalid,
    TooManyWrongKeys,
    Unauthenticated,
)
from agentic_rag_backend.tenancy.authentication import MAX_TOKEN_CHARACTERS, Authenticator, WrongKeys
from agentic_rag_backend.tenancy.oidc.claims import ClaimRules, find_claim
from agentic_rag_backend.tenancy.oidc.provider_keys import ProviderKeys
from agentic_rag_backend.tenancy.oidc.token_verifier import TokenRules, TokenVerifier

NORTH, SOUTH = TenantId("t_" + "a" * 32), TenantId("t_" + "b" * 32)
OPERATOR = "an.operators.key-of-at-least-32-characters"
SCOPES = {scope.value: scope for scope in Scope}


class Directory:
    """Tenants in memory."""

    def __init__(self) -> None:
        now = datetime.now(UTC)
        self.tenants = {
            name: Tenant(id, name, TenantState.ACTIVE, 0, now) for name, id in (("north", NORTH), ("south", SOUTH), ("t", SOUTH))
        }

    async def tenant_and_flags(self, name_or_id: str) -> tuple[Tenant, Mapping[str, Any]] | None:
        by_id = {tenant.id.value: tenant for tenant in self.tenants.values()}
        tenant = by_id.get(name_or_id) or self.tenants.get(name_or_id)
        return None if tenant is None else (tenant, {"flag": True})

    async def authenticate(self, secret: str) -> None:
        """Every key is unknown."""


def make_authenticator(issuer: Issuer, **changes: Any) -> Authenticator:
    """Return an authenticator that trusts the issuer."""
    claims = {"tenant_claim": "tenant", "tenants": None, "scopes_claim": "scope", "scopes": SCOPES}
    claims |= {name: changes.pop(name) for name in claims if name in changes}
    rules: dict[str, Any] = {
        "issuer": issuer.address,
        "audiences": (AUDIENCE, "https://rag.test/mcp"),
        "algorithms": frozenset({"RS256", "ES256", "EdDSA", "PS256"}),
        "leeway_s": 0,
        "claims": ClaimRules(**claims),  # type: ignore[arg-type]
    }
    keys = ProviderKeys(issuer.address, local=False, max_age_s=60, create_client=issuer.create_client)
    return Authenticator(
        cast(Any, Directory()),
        operators={"operator": OPERATOR},
        wrong_keys=WrongKeys(1),
        tokens=TokenVerifier(TokenRules(**(rules | changes)), keys),
    )


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest_asyncio.fixture
async def authenticator(issuer: Issuer) -> AsyncIterator[Authenticator]:
    made = make_authenticator(issuer)
    yield made
    assert made._tokens is not None
    await made._tokens.close()


async def test_a_token_acts_for_the_tenant_that_it_names(issuer: Issuer, authenticator: Authenticator) -> None:
    for named in ("north", NORTH.value):
        caller = await authenticator.authenticate(issuer.token(tenant=named, scope="openid write unknown"))
        assert (caller.tenant.id, caller.scopes, caller.flags) == (NORTH, frozenset({Scope.WRITE}), {"flag": True})
        assert not caller.operator
    for audience in (["other", AUDIENCE], "https://rag.test/mcp"):
        await authenticator.authenticate(issuer.token(tenant="north", aud=audience))
    with pytest.raises(Forbidden, match="X-Tenant-Id"):
        await authenticator.authenticate(issuer.token(tenant="north"), acting_for="south")
    assert (await authenticator.authenticate(issuer.token(tenant="north", scope=None))).scopes == frozenset()


async def test_a_subject_has_one_id_that_does_not_name_it(issuer: Issuer, authenticator: Authenticator) -> None:
    async def key_id(**claims: Any) -> str:
        return (await authenticator.authenticate(issuer.token(tenant="north", **claims))).key_id

    assert await key_id(sub="anna@example.org") == await key_id(sub="anna@example.org", jti="2", scope="write")
    assert await key_id(sub="anna@example.org") != await key_id(sub="ben@example.org")
    for subject in ("anna@example.org", "x" * 5000, "\ud800"):
        shown = await key_id(sub=subject)
        assert (shown[:5], len(shown)) == ("oidc:", 43)
        assert subject not in shown


def _unsigned(claims: Mapping[str, Any], **header: Any) -> str:
    parts = [json.dumps({"typ": "JWT", **header}), json.dumps(claims)]
    return ".".join(base64.urlsafe_b64encode(part.encode()).rstrip(b"=").decode() for part in parts) + "."


async def test_every_algorithm_verifies_with_its_own_kind_of_key(issuer: Issuer) -> None:
    authenticator = make_authenticator(issuer, algorithms=frozenset(SIGNING_ALGORITHMS))
    private = {
        **{name: make_key("RSA") for name, (kind, _) in SIGNING_ALGORITHMS.items() if kind == "RSA"},
        "ES256": make_key("EC"),
        "ES384": make_key("EC384"),
        "EdDSA": make_key("OKP"),
    }
    issuer.publish(*(public_entry(key, kid=algorithm) for algorithm, key in private.items()))
    for algorithm, key in private.items():
        token = issuer.token(tenant="north", signed_by=key, algorithm=algorithm, header={"kid": algorithm})
        assert (await authenticator.authenticate(token)).tenant.id == NORTH
        other = "ES384" if algorithm != "ES384" else "ES256"
        with pytest.raises(TokenInvalid):
            await authenticator.authenticate(
                token.replace(token.split(".")[0], _unsigned({}, alg=other, kid=algorithm).split(".")[0])
            )


async def test_tokens_of_others_are_refused(issuer: Issuer, authenticator: Authenticator) -> None:
    now = int(time.time())
    public = issuer.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    issuer.publish(
        public_entry(issuer.private, kid="first"),
        public_entry(weak, kid="weak"),
        {"kty": "oct", "k": base64.urlsafe_b64encode(public).decode(), "kid": "secret"},
    )
    good = issuer.token(tenant="north")
    head, body, signature = good.split(".")
    south = _unsigned(issuer.claims(tenant="south")).split(".")[1]
    refused = {
        "signed by another key": issuer.token(tenant="north", signed_by=make_key("RSA", 7)),
        "claims of another token": f"{head}.{south}.{signature}",
        "no signature": f"{head}.{body}.",
        "none": _unsigned(issuer.claims(tenant="north"), alg="none", kid="first"),
        "the public key as a secret": issuer.token(tenant="north", signed_by=b"x" * 64, algorithm="HS256"),
        "a published secret": issuer.token(tenant="north", signed_by=public[:64], algorithm="HS256", header={"kid": "secret"}),
        "an algorithm that is not allowed": issuer.token(tenant="north", algorithm="RS512"),
        "a key that is too short": issuer.token(tenant="north", signed_by=weak, header={"kid": "weak"}),
        "an unknown key id": issuer.token(tenant="north", header={"kid": "unknown"}),
        "no key id, two keys": issuer.token(tenant="north", header={"kid": None}),
        "another type": issuer.token(tenant="north", header={"typ": "logout+jwt"}),
        "a critical extension": issuer.token(tenant="north", header={"crit": ["b64"], "b64": True}),
        "another issuer": issuer.token(tenant="north", iss="https://other.test"),
        "an issuer with a slash": issuer.token(tenant="north", iss=issuer.address + "/"),
        "another audience": issuer.token(tenant="north", aud="other"),
        "no audience": issuer.token(tenant="north", aud=None),
        "no issuer": issuer.token(tenant="north", iss=None),
        "no subject": issuer.token(tenant="north", sub=None),
        "an empty subject": issuer.token(tenant="north", sub=""),
        "a number as subject": issuer.token(tenant="north", sub=7),
        "no end": issuer.token(tenant="north", exp=None),
        "an end that is no number": issuer.token(tenant="north", exp="soon"),
        "an end that is infinite": issuer.token(tenant="north", exp=float("inf")),
        "not valid yet": issuer.token(tenant="north", nbf=now + 100),
        "issued later": issuer.token(tenant="north", iat=now + 100),
        "too long": issuer.token(tenant="north", x="x" * MAX_TOKEN_CHARACTERS),
        "no JSON": "bm8.bm8.bm8",
        "deep JSON": ".".join([base64.urlsafe_b64encode(b"[" * 9000).decode().rstrip("="), "e30", "x"]),
        "dots": "..",
        "not ASCII": "ä.ö.ü",
    }
    for name, token in refused.items():
        with pytest.raises(TokenInvalid) as error:
            await authenticator.authenticate(token, client="192.0.2.1")
        assert len(error.value.message) < 200, name
    with pytest.raises(TokenExpired, match=f"the token expired at {datetime.fromtimestamp(now - 1, UTC):%Y-%m-%dT%H:%M:%SZ}"):
        await authenticator.authenticate(issuer.token(tenant="north", exp=now - 1))
    # None of them is a guess: the address may still try the operator's key, and a wrong key.
    with pytest.raises(Unauthenticated, match="unknown"):
        await authenticator.authenticate("wrong", client="192.0.2.1")
    assert issuer.asked.count("/keys") <= 2


async def test_clocks_may_differ_by_the_leeway(issuer: Issuer) -> None:
    authenticator = make_authenticator(issuer, leeway_s=30)
    now = int(time.time())
    for claims in ({"exp": now - 10}, {"nbf": now + 10}, {"iat": now + 10}):
        await authenticator.authenticate(issuer.token(tenant="north", **claims))
    with pytest.raises(TokenExpired):
        await authenticator.authenticate(issuer.token(tenant="north", exp=now - 40))


async def test_without_a_provider_a_token_is_an_unknown_key(issuer: Issuer) -> None:
    authenticator = Authenticator(cast(Any, Directory()), operators={"operator": OPERATOR}, wrong_keys=WrongKeys(1))
    for error in (Unauthenticated, TooManyWrongKeys):
        with pytest.raises(error) as refused:
            await authenticator.authenticate(issuer.token(tenant="north"), client="192.0.2.1")
        assert not isinstance(refused.value, TokenInvalid)


async def test_an_operators_key_with_dots_is_no_token(authenticator: Authenticator) -> None:
    assert authenticator.find_operator(OPERATOR) == "operator"
    with pytest.raises(AgenticRagError, match="X-Tenant-Id"):
        await authenticator.authenticate(OPERATOR)


async def test_a_token_without_one_tenant_is_refused(issuer: Issuer, authenticator: Authenticator) -> None:
    for tenant in (None, "", [], ["north", "south"], 7, {"north": 1}, [7], ["north", "north"], "west", "t_" + "0" * 32, "NORTH"):
        with pytest.raises(Forbidden, match="tenant"):
            await authenticator.authenticate(issuer.token(tenant=tenant))
    assert (await authenticator.authenticate(issuer.token(tenant=["north"]))).tenant.id == NORTH


async def test_a_suspended_tenant_is_suspended_for_tokens(issuer: Issuer, authenticator: Authenticator) -> None:
    directory: Any = authenticator._directory
    suspended = Tenant(NORTH, "north", TenantState.SUSPENDED, 0, datetime.now(UTC))
    directory.tenants["north"] = suspended
    with pytest.raises(TenantSuspended):
        await authenticator.authenticate(issuer.token(tenant="north"))


async def test_values_of_claims_have_the_meaning_that_the_operator_gives_them(issuer: Issuer) -> None:
    authenticator = make_authenticator(
        issuer,
        tenant_claim="https://rag.test/org",
        tenants={"org-1": "north", "org-2": SOUTH.value},
        scopes_claim="realm_access.roles",
        scopes={"reader": Scope.READ, "editor": Scope.WRITE},
    )

    def claim(org: str, *roles: str) -> str:
        return issuer.token(**{"https://rag.test/org": org}, realm_access={"roles": [*roles, 7, {}]}, scope="admin")

    caller = await authenticator.authenticate(claim("org-2", "reader", "editor", "admin"))
    assert (caller.tenant.id, caller.scopes) == (SOUTH, {Scope.READ, Scope.WRITE})
    for other in ("north", NORTH.value, "org-3"):  # a mapping leaves no other way
        with pytest.raises(Forbidden, match="does not exist"):
            await authenticator.authenticate(claim(other, "reader"))


def test_a_name_with_dots_is_tried_before_a_path() -> None:
    claims = {"a.b": 1, "a": {"b": 2, "c.d": 3, "e": {"f": 4}}, "x.y": {"z": 5}}
    names = ("a.b", "a.c.d", "a.e.f", "x.y.z", "a.b.c", "b", "a.", ".", "")
    assert [find_claim(claims, name) for name in names] == [1, 3, 4, 5, None, None, None, None, None]


NAMES = st.sampled_from(["north", "south", "t", NORTH.value, SOUTH.value, "west", "", "org"])
VALUES = st.one_of(NAMES, st.lists(NAMES, max_size=2), st.none(), st.integers(), st.text(max_size=5))
CLAIMS = st.dictionaries(st.sampled_from(["tenant", "tenant_id", "org", "x.tenant", "client_id"]), VALUES)


@given(
    claims=CLAIMS,
    inner=CLAIMS,
    claim=st.sampled_from(["tenant", "org", "x.tenant"]),
    mapping=st.none() | st.dictionaries(NAMES, st.sampled_from(["north", "south", SOUTH.value]), max_size=3),
    signer=st.sampled_from(["provider", "other", "none", "spliced"]),
    audience=st.sampled_from([AUDIENCE, "other"]),
)
def test_a_token_never_acts_for_another_tenant_than_its_claim(
    claims: dict[str, Any], inner: dict[str, Any], claim: str, mapping: dict[str, str] | None, signer: str, audience: str
) -> None:
    issuer = Issuer()
    claims = {**claims, "x": inner}
    authenticator = make_authenticator(issuer, tenant_claim=claim, tenants=mapping)
    token = issuer.token(**claims, aud=audience, signed_by=None if signer != "other" else make_key("RSA", 7))
    if signer == "none":
        token = _unsigned(issuer.claims(**claims), alg="none")
    if signer == "spliced":
        head, _, signature = issuer.token(tenant="north", org="north").split(".")
        token = ".".join([head, token.split(".")[1], signature])
    caller: Principal | None = None
    with contextlib.suppress(TokenInvalid, Forbidden):
        caller = asyncio.run(authenticator.authenticate(token))
    named = claims.get(claim, inner.get("tenant") if claim == "x.tenant" else None)
    named = named[0] if isinstance(named, list) and len(named) == 1 else named
    meant = named if mapping is None else mapping.get(named) if isinstance(named, str) else None
    expected = {"north": NORTH, NORTH.value: NORTH, "south": SOUTH, SOUTH.value: SOUTH, "t": SOUTH}
    signed = signer == "provider" and audience == AUDIENCE
    assert (caller.tenant.id if caller else None) == (expected.get(meant) if isinstance(meant, str) and signed else None)
