"""Credentials, flags and tenants, on a real catalogue."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from agentic_rag_backend.domain.size_limits import MAX_NAME_CHARACTERS
from agentic_rag_backend.domain.tenant import Principal, Scope, TenantId, TenantState
from agentic_rag_backend.errors import Conflict, Forbidden, InvalidRequest, NotFound, StoreUnavailable, Unauthenticated
from agentic_rag_backend.jobs.relay import Relay
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.tenancy.authentication import MAX_KEY_CHARACTERS, Authenticator, new_secret, secret_hash
from agentic_rag_backend.tenancy.features import DUAL_LEVEL, Features, FlagDefault
from agentic_rag_backend.tenancy.service import TenantService

AWAY = TenantId("t_" + "0" * 32)
"""One of the stores to erase: it fails once."""
OPERATOR = "operator-key-of-at-least-32-characters"


@pytest.fixture
def erased() -> list[TenantId]:
    return []


@pytest.fixture
def relay(catalogue: Catalogue) -> Relay:
    async def flush() -> None:
        """Nothing to flush."""

    return Relay(catalogue.outbox, cast(Any, None), flush=flush)


@pytest.fixture
def service(catalogue: Catalogue, erased: list[TenantId], relay: Relay) -> TenantService:
    async def erase(tenant: TenantId) -> Mapping[str, int]:
        if AWAY in erased:
            erased.remove(AWAY)
            raise StoreUnavailable("the vector store does not answer")
        erased.append(tenant)
        return {"vectors": 3}

    return TenantService(catalogue.tenants, erase, relay)


@pytest.fixture
def authenticator(catalogue: Catalogue) -> Authenticator:
    return Authenticator(catalogue.tenants, operator_key=OPERATOR)


async def test_a_key_belongs_to_its_tenant_and_its_secret_is_kept_as_a_hash_only(
    service: TenantService, authenticator: Authenticator, catalogue: Catalogue, tmp_path: Path
) -> None:
    tenant = await service.create("acme")
    issued = await service.issue_key(tenant.id, name="ci", scopes=[Scope.WRITE])
    caller = await authenticator.authenticate(issued.secret)
    assert caller.tenant.id == tenant.id
    assert (caller.may_use(Scope.READ), caller.may_use(Scope.WRITE), caller.may_use(Scope.ADMIN)) == (True, True, False)
    assert not caller.operator
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("catalogue.db*"))
    assert issued.secret.encode() not in stored
    assert secret_hash(issued.secret).encode() in stored


async def test_a_revoked_key_is_useless_at_once(service: TenantService, authenticator: Authenticator) -> None:
    tenant = await service.create("acme")
    issued = await service.issue_key(tenant.id, name="ci")
    await service.revoke_key(tenant.id, issued.key.id)
    with pytest.raises(Unauthenticated):
        await authenticator.authenticate(issued.secret)
    assert [key.revoked_at is not None for key in await service.list_keys(tenant.id)] == [True]


@pytest.mark.parametrize("secret", [None, "", "ark_unknown", "x" * (MAX_KEY_CHARACTERS + 1)])
async def test_what_is_no_key_is_refused(authenticator: Authenticator, secret: str | None) -> None:
    with pytest.raises(Unauthenticated):
        await authenticator.authenticate(secret)


async def test_only_the_operator_acts_for_a_tenant(service: TenantService, authenticator: Authenticator) -> None:
    first, second = await service.create("first"), await service.create("second")
    key = (await service.issue_key(first.id, name="k")).secret
    with pytest.raises(Forbidden):
        await authenticator.authenticate(key, acting_for=second.id.value)
    caller = await authenticator.authenticate(OPERATOR, acting_for=second.id.value)
    assert (caller.tenant.id, caller.operator) == (second.id, True)
    with pytest.raises(InvalidRequest, match="X-Tenant-Id"):
        await authenticator.authenticate(OPERATOR)
    for unknown in ("", "nonsense", TenantId.new().value):
        with pytest.raises(NotFound):
            await authenticator.authenticate(OPERATOR, acting_for=unknown)
    assert (await authenticator.local_principal(first.id)).tenant.id == first.id


async def test_without_an_operator_key_nobody_is_the_operator(catalogue: Catalogue) -> None:
    authenticator = Authenticator(catalogue.tenants, operator_key=None)
    assert not authenticator.is_operator(OPERATOR)
    assert not authenticator.is_operator(None)
    with pytest.raises(Unauthenticated):
        await authenticator.authenticate(OPERATOR, acting_for=TenantId.new().value)


async def test_a_deleted_tenant_is_refused_and_erased_everywhere(
    service: TenantService, authenticator: Authenticator, erased: list[TenantId]
) -> None:
    tenant = await service.create("gone")
    key = (await service.issue_key(tenant.id, name="k")).secret
    removal = await service.delete(tenant.id)
    counts = removal.counts
    assert (erased, removal.done) == ([tenant.id], True)
    assert counts["vectors"] == 3
    assert counts["tenants"] == 1
    with pytest.raises(Unauthenticated):
        await authenticator.authenticate(key)
    with pytest.raises(NotFound):
        await service.get(tenant.id)
    assert await service.by_name("gone") is None


async def test_a_deletion_that_a_store_interrupts_goes_on_by_itself(
    catalogue: Catalogue, service: TenantService, relay: Relay, authenticator: Authenticator, erased: list[TenantId]
) -> None:
    tenant = await service.create("half gone")
    key = (await service.issue_key(tenant.id, name="k")).secret
    erased.append(AWAY)
    removal = await service.delete(tenant.id)
    assert (removal.done, dict(removal.counts)) == (False, {})
    with pytest.raises(Unauthenticated):
        await authenticator.authenticate(key)
    assert (await service.get(tenant.id)).state is TenantState.DELETING

    async def leads() -> bool:
        return True

    going_on = asyncio.create_task(relay.run(leads))
    async with asyncio.timeout(30):
        while await catalogue.outbox.tenants(limit=1):
            await asyncio.sleep(0.01)
    going_on.cancel()
    assert erased == [tenant.id]
    with pytest.raises(NotFound):
        await service.get(tenant.id)


@pytest.mark.parametrize("name", ["", "   ", "x" * (MAX_NAME_CHARACTERS + 1), "bell\a", "two\nlines"])
async def test_a_name_outside_its_limits_is_refused(service: TenantService, name: str) -> None:
    with pytest.raises(InvalidRequest, match=str(MAX_NAME_CHARACTERS)):
        await service.create(name)
    assert (await service.list(limit=10)).items == ()


async def test_a_name_is_taken_once(service: TenantService) -> None:
    await service.create("acme")
    with pytest.raises(Conflict):
        await service.create("acme")


async def test_a_key_needs_a_scope_and_a_tenant(service: TenantService) -> None:
    tenant = await service.create("acme")
    with pytest.raises(InvalidRequest, match="scope"):
        await service.issue_key(tenant.id, name="k", scopes=[])
    with pytest.raises(NotFound):
        await service.issue_key(TenantId.new(), name="k")
    with pytest.raises(NotFound):
        await service.list_keys(TenantId.new())


def test_secrets_differ_and_carry_256_bits() -> None:
    made = {new_secret() for _ in range(100)}
    assert len(made) == 100
    assert all(secret.startswith("ark_") and len(secret) >= 4 + 43 for secret in made)


FEATURES = Features({DUAL_LEVEL: FlagDefault(False, "default", False, "both levels")})


def test_a_tenants_flag_wins_over_the_deployments() -> None:
    for defaults, tenant_flags, value, source in [
        (FlagDefault(False, "default", False, ""), {}, False, "default"),
        (FlagDefault(True, "environment", False, ""), {}, True, "environment"),
        (FlagDefault(True, "environment", False, ""), {DUAL_LEVEL: False}, False, "tenant"),
        (FlagDefault(False, "default", False, ""), {DUAL_LEVEL: True}, True, "tenant"),
    ]:
        features = Features({DUAL_LEVEL: defaults})
        (flag,) = features.list_effective(tenant_flags)
        assert (flag.value, flag.source, flag.default) == (value, source, False)
        assert features.is_on(DUAL_LEVEL, tenant_flags) is value


@pytest.mark.parametrize("changes", [{}, {"NO_SUCH_FLAG": True}, {DUAL_LEVEL: "yes"}, {DUAL_LEVEL: 1}])
def test_bad_changes_of_flags_are_refused(changes: Mapping[str, object]) -> None:
    with pytest.raises(InvalidRequest):
        FEATURES.check_changes(changes)


SHARE = Features({"SHARE": FlagDefault(0.6, "default", 0.6, "a share")})


@pytest.mark.parametrize("value", [0, 1, 0.25])
def test_a_share_is_a_number(value: float) -> None:
    assert SHARE.check_changes({"SHARE": value}) == {"SHARE": value}
    assert SHARE.read_share("SHARE", {"SHARE": value}) == value
    (flag,) = SHARE.list_effective({"SHARE": value})
    assert (flag.value, flag.default, flag.source) == (value, 0.6, "tenant")


@pytest.mark.parametrize("value", [True, False, "0.5", -0.1, 1.1, float("nan"), [0.5]])
def test_what_is_no_share_is_refused(value: object) -> None:
    with pytest.raises(InvalidRequest, match="SHARE takes a number from 0 to 1 or null"):
        SHARE.check_changes({"SHARE": value})


def test_a_share_that_is_not_set_is_the_deployments() -> None:
    assert SHARE.read_share("SHARE", {}) == SHARE.read_share("SHARE", {"SHARE": "broken"}) == 0.6


def test_a_flag_can_be_set_and_unset() -> None:
    assert FEATURES.check_changes({DUAL_LEVEL: True}) == {DUAL_LEVEL: True}
    assert FEATURES.check_changes({DUAL_LEVEL: None}) == {DUAL_LEVEL: None}


@pytest.mark.parametrize(
    ("held", "asked", "allowed"),
    [
        ({Scope.READ}, Scope.READ, True),
        ({Scope.READ}, Scope.WRITE, False),
        ({Scope.WRITE}, Scope.READ, True),
        ({Scope.ADMIN}, Scope.WRITE, True),
        (set(), Scope.READ, False),
    ],
)
async def test_scopes_include_the_lesser_ones(service: TenantService, held: set[Scope], asked: Scope, allowed: bool) -> None:
    tenant = await service.create("acme")
    assert Principal(tenant=tenant, scopes=frozenset(held), key_id="k").may_use(asked) is allowed
