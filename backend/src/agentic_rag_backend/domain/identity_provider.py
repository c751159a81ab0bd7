"""What tokens of an OpenID provider may look like: algorithms of signatures, and addresses of providers."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

SIGNING_ALGORITHMS: Mapping[str, tuple[str, str | None]] = {
    **{f"{family}{bits}": ("RSA", None) for family in ("RS", "PS") for bits in (256, 384, 512)},
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""Type and curve of the key of each algorithm (JWA). With all of them, the key that verifies is public and signs nothing."""


def check_provider_address(address: str, *, local: bool) -> None:
    """Return if the address may be asked for a provider's documents.

    Args:
        local: whether it may be on this machine, without TLS.

    Raises:
        ValueError: it may not. The message says why.
    """
    parts = urlsplit(address)
    host = parts.hostname or ""
    _ = parts.port  # raises ValueError
    if not host or parts.username is not None or parts.query or parts.fragment:
        raise ValueError("it must be an address without a user, a query and a fragment")
    if parts.scheme == "https" or (parts.scheme == "http" and local and is_loopback_name(host)):
        return
    raise ValueError("it must begin with https://, or with http:// on this machine (localhost, 127.0.0.1)")


def is_loopback_name(host: str) -> bool:
    """Return whether a host's name or address is that of this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
