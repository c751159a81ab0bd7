"""Credentials, flags and tenants, on a real catalogue."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from agentic_rag_backend.domain.size_limits import MAX_NAME_CHARACTERS
from agentic_rag_backend.domain.tenant import (
    MAX_LABEL_CHARACTERS,
    MAX_LABELS,
    KeyRequest,
    Principal,
    Scope,
    TenantChange,
    TenantId,
    TenantState,
)
from agentic_rag_backend.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    KeyExpired,
    KeyRevoked,
    NotFound,
    StoreUnavailable,
    Unauthenticated,
)
from agentic_rag_backend.jobs.relay import Relay
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.tenancy.authentication import MAX_KEY_CHARACTERS, Authenticator, new_secret, secret_hash
from agentic_rag_backend.tenancy.features import DUAL_LEVEL, Features, FlagDefault
from agentic_rag_backend.tenancy.key_uses import KeyUses
from agentic_rag_backend.tenancy.service import LONGEST_LIFE, LONGEST_OVERLAP, TenantService

AWAY = TenantId("t_" + "0" * 32)
"""One of the stores to erase: it fails once."""
OPERATOR = "operator-key-of-at-least-32-characters"
NIGHT_SHIFT = "another-operators-key-of-32-characters"


@pytest.fixture
def erased() -> list[TenantId]:
    return []


@pytest.fixture
def relay(catalogue: Catalogue) -> Relay:
    async def flush() -> None:
        """Nothing to flush."""

    return Relay(catalogue.outbox, cast(Any, None), flush=flush)


@pytest.fixture
def service(catalogue: Catalogue, erased: list[TenantId], relay: Relay, key_uses: KeyUses) -> TenantService:
    async def erase(tenant: TenantId) -> Mapping[str, int]:
        if AWAY in erased:
            erased.remove(AWAY)
            raise StoreUnavailable("the vector store does not answer")
        erased.append(tenant)
        return {"vectors": 3}

    return TenantService(catalogue.tenants, erase, relay, key_uses)


@pytest.fixture
def key_uses(catalogue: Catalogue) -> KeyUses:
    return KeyUses(catalogue.tenants)


@pytest.fixture
def authenticator(catalogue: Catalogue, key_uses: KeyUses) -> Authenticator:
    operators = {"operator": OPERATOR, "night-shift": NIGHT_SHIFT}
    return Authenticator(catalogue.tenants, operators=operators, key_uses=key_uses)


async def test_a_key_belongs_to_its_tenant_and_its_secret_is_kept_as_a_hash_only(
    service: TenantService, authenticator: Authenticator, catalogue: Catalogue, tmp_path: Path
) -> None:
    tenant = await service.create("acme")
    issued = await service.issue_key(tenant.id, KeyRequest("ci", [Scope.WRITE]))
    caller = await authenticator.authenticate(issued.secret)
    assert caller.tenant.id == tenant.id
    assert (caller.may_use(Scope.READ), caller.may_use(Scope.WRITE), caller.may_use(Scope.ADMIN)) == (True, True, False)
    assert not caller.operator
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("catalogue.db*"))
    assert issued.secret.encode() not in stored
    assert secret_hash(issued.secret).encode() in stored


async def test_a_revoked_key_is_useless_at_once(service: TenantService, authenticator: Authenticator) -> None:
    tenant = await service.create("acme")
    issued = await service.issue_key(tenant.id, KeyRequest("ci"))
    await service.revoke_key(tenant.id, issued.key.id)
    with pytest.raises(KeyRevoked, match="the key was revoked at 2"):
        await authenticator.authenticate(issued.secret)
    assert [key.revoked_at is not None for key in await service.list_keys(tenant.id)] == [True]


async def test_a_new_key_may_read_and_shows_its_beginning(service: TenantService, authenticator: Authenticator) -> None:
    tenant = await service.create("acme")
    issued = await service.issue_key(tenant.id, KeyRequest("ci"))
    assert (issued.key.scopes, issued.key.prefix) == (frozenset({Scope.READ}), issued.secret[:12])
    assert issued.secret.startswith("ark_")
    assert not (await authenticator.authenticate(issued.secret)).may_use(Scope.WRITE)


async def test_a_key_ends_when_it_expires(service: TenantService, authenticator: Authenticator) -> None:
    tenant = await service.create("acme")
    now = datetime.now(UTC)
    ends_at = now + timedelta(seconds=0.5)
    issued = await service.issue_key(tenant.id, KeyRequest("ci", expires_at=ends_at))
    assert (await authenticator.authenticate(issued.secret)).tenant.id == tenant.id
    while datetime.now(UTC) < ends_at:
        await asyncio.sleep(0.05)
    with pytest.raises(KeyExpired, match=f"the key expired at {ends_at:%Y-%m-%dT%H:%M:%SZ}"):
        await authenticator.authenticate(issued.secret, client="192.0.2.1")
    await service.issue_key(tenant.id, KeyRequest("ci"))  # the name is free again
    for wrong in (now, now - timedelta(days=1), now + LONGEST_LIFE + timedelta(days=1)):
        with pytest.raises(InvalidRequest, match="expires_at must be later than now"):
            await service.issue_key(tenant.id, KeyRequest("late", expires_at=wrong))


async def test_a_rotated_key_works_during_the_overlap(service: TenantService, authenticator: Authenticator) -> None:
    tenant = await service.create("acme")
    first = await service.issue_key(tenant.id, KeyRequest("ci", [Scope.WRITE]))
    second = await service.rotate_key(tenant.id, first.key.id, overlap=LONGEST_OVERLAP)
    assert (second.key.name, second.key.scopes, second.key.expires_at) == ("ci", first.key.scopes, None)
    third = await service.rotate_key(tenant.id, second.key.id, overlap=timedelta(0))
    assert [(await authenticator.authenticate(key.secret)).key_id for key in (first, third)] == [first.key.id, third.key.id]
    with pytest.raises(KeyExpired):
        await authenticator.authenticate(second.secret)
    for ended in (first, second):
        with pytest.raises(Conflict, match="rotate that key"):
            await service.rotate_key(tenant.id, ended.key.id, overlap=timedelta(0))
    for wrong in (timedelta(seconds=-1), LONGEST_OVERLAP + timedelta(seconds=1)):
        with pytest.raises(InvalidRequest, match="overlap_s must be from 0 to 2592000"):
            await service.rotate_key(tenant.id, third.key.id, overlap=wrong)


async def test_uses_are_written_later_and_once_a_minute(
    service: TenantService, authenticator: Authenticator, key_uses: KeyUses, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = await service.create("acme")
    issued = await service.issue_key(tenant.id, KeyRequest("ci"))

    async def last_used() -> datetime | None:
        (key,) = await catalogue.tenants.keys(tenant.id)
        return key.last_used_at

    writes, note_uses = [], catalogue.tenants.note_uses

    async def counted(used_at: Mapping[tuple[TenantId, str], datetime]) -> None:
        writes.append(used_at)
        if len(writes) == 1:
            raise StoreUnavailable("the database does not answer")
        await note_uses(used_at)

    monkeypatch.setattr(catalogue.tenants, "note_uses", counted)
    await authenticator.authenticate(issued.secret)
    assert await last_used() is None
    await key_uses.write_uses()  # fails, and keeps the use
    await key_uses.write_uses()
    first = await last_used()
    assert first is not None
    for _ in range(3):
        await authenticator.authenticate(issued.secret)
        await key_uses.write_uses()
    assert (len(writes), await last_used()) == (2, first)
    await note_uses({(tenant.id, issued.key.id): first + timedelta(minutes=1)})
    await note_uses({(tenant.id, issued.key.id): first + timedelta(seconds=30)})
    assert await last_used() == first + timedelta(minutes=1), "a late writer does not set it back"
    await service.revoke_key(tenant.id, issued.key.id)
    with pytest.raises(KeyRevoked):
        await authenticator.authenticate(issued.secret)
    await key_uses.write_uses()
    assert len(writes) == 2, "a refused key was not used"


async def test_operators_have_names(service: TenantService, authenticator: Authenticator) -> None:
    tenant = await service.create("acme")
    assert [authenticator.find_operator(key) for key in (OPERATOR, NIGHT_SHIFT, "x" * 40)] == ["operator", "night-shift", None]
    callers = [await authenticator.authenticate(key, acting_for="acme") for key in (OPERATOR, NIGHT_SHIFT)]
    assert [(caller.tenant.id, caller.key_id) for caller in callers] == [
        (tenant.id, "operator"),
        (tenant.id, "operator:night-shift"),
    ]


@pytest.mark.parametrize("secret", [None, "", "ark_unknown", "x" * (MAX_KEY_CHARACTERS + 1)])
async def test_what_is_no_key_is_refused(authenticator: Authenticator, secret: str | None) -> None:
    with pytest.raises(Unauthenticated):
        await authenticator.authenticate(secret)


async def test_only_the_operator_acts_for_a_tenant(service: TenantService, authenticator: Authenticator) -> None:
    first, second = await service.create("first"), await service.create("second")
    key = (await service.issue_key(first.id, KeyRequest("k"))).secret
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
    authenticator = Authenticator(catalogue.tenants, operators={})
    assert not authenticator.find_operator(OPERATOR)
    assert not authenticator.find_operator(None)
    with pytest.raises(Unauthenticated):
        await authenticator.authenticate(OPERATOR, acting_for=TenantId.new().value)


async def test_a_deleted_tenant_is_refused_and_erased_everywhere(
    service: TenantService, authenticator: Authenticator, erased: list[TenantId]
) -> None:
    tenant = await service.create("gone")
    key = (await service.issue_key(tenant.id, KeyRequest("k"))).secret
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
    key = (await service.issue_key(tenant.id, KeyRequest("k"))).secret
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
        await service.issue_key(tenant.id, KeyRequest("k", []))
    with pytest.raises(NotFound):
        await service.issue_key(TenantId.new(), KeyRequest("k"))
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


async def test_a_key_with_a_filter_reads_some_documents_and_does_nothing_else(
    service: TenantService, authenticator: Authenticator
) -> None:
    tenant = await service.create("restricted")
    filters = ({"team": ["sales"], "level": 1}, {"level": 1, "team": ["sales"]}, {"level": True, "team": ["sales"]})
    scopes = []
    for number, filter in enumerate(filters):
        issued = await service.issue_key(tenant.id, KeyRequest(f"key {number}", filter=filter))
        assert (await service.list_keys(tenant.id))[0].filter == filter
        scopes.append((await authenticator.authenticate(issued.secret)).tenant.id)
    assert scopes[0] == scopes[1] != scopes[2]
    assert {scope.whole for scope in scopes} == {tenant.id}
    refused: tuple[dict[str, Any], ...] = (
        {"filter": {}},
        {"filter": {"entity": "Mara Venn"}},
        {"filter": filters[0], "scopes": (Scope.READ, Scope.WRITE)},
    )
    for more in refused:
        with pytest.raises(InvalidRequest):
            await service.issue_key(tenant.id, KeyRequest("refused", **more))


async def test_a_tenant_is_renamed_labelled_suspended_and_listed_by_its_labels(service: TenantService) -> None:
    tenant, other = await service.create("before"), await service.create("other")
    changed = await service.change(tenant.id, TenantChange(name="after", labels={"plan": "trial"}, suspended=True))
    assert (changed.name, changed.labels, changed.state) == ("after", {"plan": "trial"}, TenantState.SUSPENDED)
    assert [item.id for item in (await service.list(limit=5, labels={"plan": "trial"})).items] == [tenant.id]
    assert [item.id for item in (await service.list(limit=5)).items] == [other.id, tenant.id]
    assert (await service.find("after")).id == (await service.get(tenant.id)).id
    assert await service.by_name("before") is None
    assert (await service.act_for(tenant.id)).scopes == {Scope.READ}


@pytest.mark.parametrize(
    "changes",
    [
        TenantChange(),
        TenantChange(name=""),
        TenantChange(labels={f"label{number}": "" for number in range(MAX_LABELS + 1)}),
        TenantChange(labels={"Plan": "trial"}),
        TenantChange(labels={"plan": "x" * (MAX_LABEL_CHARACTERS + 1)}),
        TenantChange(labels={"plan": "two\nlines"}),
    ],
)
async def test_changes_outside_the_limits_are_refused(service: TenantService, changes: TenantChange) -> None:
    tenant = await service.create("unchanged")
    with pytest.raises(InvalidRequest):
        await service.change(tenant.id, changes)
    assert await service.get(tenant.id) == tenant


async def test_the_first_key_is_issued_once(service: TenantService, authenticator: Authenticator) -> None:
    tenant = await service.create("first")
    issued = await service.issue_first_key(tenant.id, name="made at first start")
    assert issued is not None
    assert (await authenticator.authenticate(issued.secret)).scopes == {Scope.ADMIN}
    await service.revoke_key(tenant.id, issued.key.id)
    assert await service.issue_first_key(tenant.id, name="again") is None
