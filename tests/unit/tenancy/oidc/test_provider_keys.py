"""Keys of an OpenID provider: when they are fetched, shared, renewed and refused."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from token_issuer import DISCOVERY, KEYS, Issuer, make_key, public_entry

from agentic_rag_backend.errors import IdentityProviderUnavailable
from agentic_rag_backend.tenancy.oidc.key_set import MAX_KEYS, KeySet
from agentic_rag_backend.tenancy.oidc.provider_keys import (
    FAILURE_PAUSE_S,
    MAX_DOCUMENT_BYTES,
    REFRESHED_AFTER_S,
    UNKNOWN_KEY_PAUSE_S,
    ProviderKeys,
)

MAX_AGE_S = 3600.0
BOTH = [DISCOVERY, KEYS]


class Clock:
    """A clock that the test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest_asyncio.fixture
async def keys(issuer: Issuer, clock: Clock) -> AsyncIterator[ProviderKeys]:
    made = ProviderKeys(issuer.address, local=False, max_age_s=MAX_AGE_S, create_client=issuer.create_client, clock=clock)
    yield made
    await made.close()


async def test_keys_are_fetched_once_for_all_requests(issuer: Issuer, keys: ProviderKeys) -> None:
    matches = await asyncio.gather(*(keys.find_key("first", "RS256") for _ in range(50)))
    assert all(key is not None for key in matches)
    assert issuer.asked == BOTH
    assert await keys.find_key("first", "ES256") is None  # a key of another type


async def test_a_new_key_is_fetched_when_a_token_names_it(issuer: Issuer, keys: ProviderKeys, clock: Clock) -> None:
    assert await keys.find_key("first", "RS256")
    issuer.rotate("second", 1)
    matches = await asyncio.gather(*(keys.find_key("second", "RS256") for _ in range(20)))
    assert all(key is not None for key in matches)
    assert await keys.find_key("first", "RS256") is None  # no longer published
    assert issuer.asked == BOTH * 2


async def test_made_up_key_ids_cause_one_fetch_a_minute(issuer: Issuer, keys: ProviderKeys, clock: Clock) -> None:
    assert await keys.find_key("first", "RS256")
    for number in range(300):
        assert await keys.find_key(f"made-up-{number}", "RS256") is None
        clock.now += 1
    assert len(issuer.asked) / 2 == 1 + 300 / UNKNOWN_KEY_PAUSE_S
    assert await keys.find_key("first", "RS256")


async def test_a_first_token_with_a_made_up_key_id_causes_one_fetch(issuer: Issuer, keys: ProviderKeys) -> None:
    assert await keys.find_key("made-up", "RS256") is None
    assert issuer.asked == BOTH


async def test_keys_in_use_are_renewed_in_the_background(issuer: Issuer, keys: ProviderKeys, clock: Clock) -> None:
    assert await keys.find_key("first", "RS256")
    clock.now += REFRESHED_AFTER_S
    issuer.rotate("second", 1)
    assert await keys.find_key("first", "RS256")  # the request does not wait
    while len(issuer.asked) < 4:
        await asyncio.sleep(0)
    await asyncio.sleep(0.01)
    assert await keys.find_key("second", "RS256")
    assert issuer.asked == BOTH * 2


async def test_while_the_provider_is_away_known_keys_work_for_a_bounded_time(
    issuer: Issuer, keys: ProviderKeys, clock: Clock
) -> None:
    assert await keys.find_key("first", "RS256")
    issuer.status = 0
    began_at = clock.now
    while clock.now - began_at < MAX_AGE_S - 60:
        clock.now += 60
        assert await keys.find_key("first", "RS256")
        await asyncio.sleep(0.001)
    clock.now = began_at + MAX_AGE_S
    with pytest.raises(IdentityProviderUnavailable):
        await keys.find_key("first", "RS256")
    issuer.status = 200
    with pytest.raises(IdentityProviderUnavailable) as refused:  # it is not asked again at once
        await keys.find_key("first", "RS256")
    assert 0 < (refused.value.retry_after_s or 0) <= FAILURE_PAUSE_S
    clock.now += FAILURE_PAUSE_S
    assert await keys.find_key("first", "RS256")


async def test_a_provider_that_is_away_is_asked_every_few_seconds(issuer: Issuer, keys: ProviderKeys, clock: Clock) -> None:
    issuer.status = 503
    for _ in range(100):
        with pytest.raises(IdentityProviderUnavailable, match="OIDC_ISSUER"):
            await keys.find_key("first", "RS256")
        clock.now += 0.1
    assert len(issuer.asked) <= 100 * 0.1 / FAILURE_PAUSE_S + 1


async def test_a_waiting_request_that_ends_does_not_end_the_fetch(issuer: Issuer, keys: ProviderKeys) -> None:
    first = asyncio.create_task(keys.find_key("first", "RS256"))
    await asyncio.sleep(0)
    second = asyncio.create_task(keys.find_key("first", "RS256"))
    await asyncio.sleep(0)
    first.cancel()
    assert await second is not None
    assert issuer.asked == BOTH


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (DISCOVERY, b""),
        (DISCOVERY, b"<html>"),
        (DISCOVERY, []),
        (DISCOVERY, {"issuer": "https://other.test", "jwks_uri": f"https://issuer.test{KEYS}"}),
        (DISCOVERY, {"issuer": "https://issuer.test/", "jwks_uri": f"https://issuer.test{KEYS}"}),
        (DISCOVERY, {"issuer": "https://issuer.test"}),
        *(
            (DISCOVERY, {"issuer": "https://issuer.test", "jwks_uri": address})
            for address in (
                *(
                    "http://issuer.test/keys",
                    "http://127.0.0.1:8000/keys",
                    "file:///etc/passwd",
                    "//x",
                    "https://",
                    "https://x:y",
                ),
                *("https://user:secret@issuer.test/keys", "gopher://x/", "http://169.254.169.254/latest/meta-data"),
            )
        ),
        (KEYS, b"[]"),
        (KEYS, {"keys": "none"}),
        (KEYS, b"[" * 100_000),
        (KEYS, b" " * (MAX_DOCUMENT_BYTES + 1)),
        (KEYS, gzip.compress(b"{}")),
    ],
)
async def test_documents_of_another_form_give_no_keys(issuer: Issuer, keys: ProviderKeys, path: str, body: Any) -> None:
    issuer.documents[path] = body
    with pytest.raises(IdentityProviderUnavailable):
        await keys.find_key("first", "RS256")
    assert len(issuer.asked) == BOTH.index(path) + 1


async def test_redirects_are_not_followed(issuer: Issuer, keys: ProviderKeys) -> None:
    issuer.status = 302
    with pytest.raises(IdentityProviderUnavailable):
        await keys.find_key("first", "RS256")
    assert issuer.asked == [DISCOVERY]


async def test_a_provider_that_hangs_is_left_after_its_time(
    issuer: Issuer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(60)
        raise AssertionError

    monkeypatch.setattr("agentic_rag_backend.tenancy.oidc.provider_keys.FETCH_TIMEOUT_S", 0.05)
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(hang))
    keys = ProviderKeys(issuer.address, local=False, max_age_s=MAX_AGE_S, create_client=lambda: client, clock=clock)
    with pytest.raises(IdentityProviderUnavailable):
        await keys.find_key("first", "RS256")
    await keys.close()


def test_only_keys_that_verify_signatures_are_used() -> None:
    rsa, curve = make_key("RSA"), make_key("EC")
    secret = {"kty": "oct", "k": "c2VjcmV0", "kid": "shared", "alg": "RS256"}
    keys = KeySet(
        {
            "keys": [
                secret,
                "no entry",
                public_entry(rsa, kid="encrypts", use="enc"),
                public_entry(rsa, kid="wraps", key_ops=["wrapKey"]),
                public_entry(rsa, kid="fixed", alg="PS256"),
                public_entry(rsa, kid="twice"),
                public_entry(make_key("RSA", 1), kid="twice"),
                {"kty": "RSA", "kid": "broken", "n": "!", "e": "AQAB"},
                public_entry(curve, kid="curve"),
                public_entry(make_key("EC384"), kid="other curve"),
                public_entry(make_key("OKP"), kid="edwards"),
            ]
        }
    )
    found = {
        (entry, algorithm)
        for entry in ("shared", "encrypts", "wraps", "fixed", "twice", "broken", "curve", "other curve", "edwards", "none")
        for algorithm in ("RS256", "PS256", "ES256", "ES384", "EdDSA")
        if keys.find_key(entry, algorithm) is not None
    }
    assert found == {("fixed", "PS256"), ("curve", "ES256"), ("other curve", "ES384"), ("edwards", "EdDSA")}
    assert keys.find_key(None, "ES256") is not None  # the only one that fits
    assert keys.find_key(None, "RS256") is None
    assert len(KeySet({"keys": [json.loads("{}")] * (MAX_KEYS + 1)})) == MAX_KEYS
