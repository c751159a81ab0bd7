"""Settings of an OpenID provider: its address, the algorithms of its signatures, and the meaning of values of claims."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from agentic_rag_backend.domain.identity_provider import SIGNING_ALGORITHMS, check_provider_address, is_loopback_name
from agentic_rag_backend.domain.tenant import Scope

_SHOWN_CHARACTERS = 200


def check_issuer(value: str) -> str:
    """Return the issuer as it is: tokens must name it in the same spelling.

    Raises:
        ValueError: its documents may not be read.
    """
    try:
        check_provider_address(value, local=True)
    except ValueError as error:
        raise ValueError(f"OIDC_ISSUER cannot be used: {error}; got {value[:_SHOWN_CHARACTERS]!r}") from None
    return value


def allows_loopback(issuer: str) -> bool:
    """Return whether the provider itself is on this machine."""
    return is_loopback_name(urlsplit(issuer).hostname or "")


def parse_list(value: str) -> tuple[str, ...]:
    """Return the values that commas separate, without repetitions."""
    return tuple(dict.fromkeys(part for text in value.split(",") if (part := text.strip())))


def parse_algorithms(value: str) -> tuple[str, ...]:
    """Return the algorithms of OIDC_ALGORITHMS.

    Raises:
        ValueError: none is named, or one is unknown or uses a secret that the server would share with the provider.
    """
    names = parse_list(value)
    for name in names:
        if name not in SIGNING_ALGORITHMS:
            raise ValueError(
                f"OIDC_ALGORITHMS may hold {', '.join(SIGNING_ALGORITHMS)}, whose keys are public; "
                f"got {name[:_SHOWN_CHARACTERS]!r}"
            )
    if not names:
        raise ValueError("OIDC_ALGORITHMS must name at least one algorithm")
    return names


def parse_claim_values(value: str, setting: str) -> dict[str, str]:
    """Return the meaning of each value of a claim, from VALUE=MEANING pairs. The last = of a pair separates.

    Raises:
        ValueError: an entry is not such a pair, or a value occurs twice.
    """
    meanings: dict[str, str] = {}
    for entry in parse_list(value):
        claimed, separator, meaning = (part.strip() for part in entry.rpartition("="))
        if not separator or not claimed or not meaning:
            raise ValueError(f"{setting} must hold VALUE=MEANING pairs, separated by commas; got {entry[:_SHOWN_CHARACTERS]!r}")
        if claimed in meanings:
            raise ValueError(f"{setting} must hold each value once; got {claimed[:_SHOWN_CHARACTERS]!r} twice")
        meanings[claimed] = meaning
    return meanings


def parse_scopes(value: str) -> dict[str, Scope]:
    """Return the scope of each value of the scopes' claim, from OIDC_SCOPES.

    Raises:
        ValueError: see `parse_claim_values`, or a meaning is not a scope.
    """
    pairs = parse_claim_values(value, "OIDC_SCOPES")
    names: Sequence[str] = [scope.value for scope in Scope]
    for meaning in pairs.values():
        if meaning not in names:
            raise ValueError(f"OIDC_SCOPES must map to {', '.join(names)}; got {meaning[:_SHOWN_CHARACTERS]!r}")
    return {claimed: Scope(meaning) for claimed, meaning in pairs.items()}
