"""Identity of the client of a request, for limits per client."""

from __future__ import annotations

import ipaddress

from fastapi import Request

_IPV6_NETWORK = 64
"""Size of the IPv6 network that one client usually has."""
_MAX_CHARACTERS = 64


def client_of(address: str) -> str:
    """Return the identity of a client: its IPv4 address, or its IPv6 network."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:_MAX_CHARACTERS]  # a Unix socket has no IP address, and a proxy may send any text
    if parsed.version == 6 and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((parsed, _IPV6_NETWORK), strict=False))
    return str(parsed.ipv4_mapped if parsed.version == 6 else parsed)


def client_of_request(request: Request) -> str | None:
    """Return the identity of a request's client, None if it is unknown. A proxy of TRUSTED_PROXIES names the client."""
    return client_of(request.client.host) if request.client is not None else None
