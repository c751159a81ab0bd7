"""Verification of tokens (JWT) that an OpenID provider signed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import jwt

from agentic_rag_backend.errors import TokenExpired, TokenInvalid
from agentic_rag_backend.tenancy.oidc.claims import ClaimRules, TokenHolder, read_holder
from agentic_rag_backend.tenancy.oidc.provider_keys import ProviderKeys

_MEDIA_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
"""Values of ``typ``. Providers sign other tokens with the same keys, such as those that end sessions."""
_REQUIRED = ("exp", "iss", "aud", "sub")
_MALFORMED = (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError)
_REASONS: Mapping[type[Exception], str] = {
    jwt.InvalidSignatureError: "its signature does not match the provider's key",
    jwt.InvalidAudienceError: "its audience (aud) is none of OIDC_AUDIENCE",
    jwt.InvalidIssuerError: "its issuer (iss) is not OIDC_ISSUER",
    jwt.ImmatureSignatureError: "it is not valid yet (nbf, iat)",
    jwt.InvalidAlgorithmError: "its algorithm is not one of OIDC_ALGORITHMS",
    jwt.InvalidKeyError: "the provider's key is too short",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    """What a valid token is. ``leeway_s``: seconds that the clocks of provider and server may differ by."""

    issuer: str
    audiences: tuple[str, ...]
    algorithms: frozenset[str]
    leeway_s: float
    claims: ClaimRules


class TokenVerifier:
    """Accepts tokens that the provider has issued for this server.

    Args:
        keys: of the provider.
    """

    def __init__(self, rules: TokenRules, keys: ProviderKeys) -> None:
        self.rules = rules
        self._keys = keys

    async def verify_token(self, token: str) -> TokenHolder:
        """Return the holder of a token.

        Raises:
            TokenInvalid: it was not issued by the provider for this server, or is not valid yet.
            TokenExpired: it was valid earlier.
            Forbidden: it is valid, and names no tenant.
            IdentityProviderUnavailable: it cannot be checked.
        """
        try:
            header = jwt.get_unverified_header(token)
        except _MALFORMED:
            raise TokenInvalid("the token cannot be read: it must be a signed JSON Web Token") from None
        algorithm, media_type, key_id = header.get("alg"), header.get("typ", "JWT"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in self.rules.algorithms:
            raise _refuse_token(jwt.InvalidAlgorithmError())
        if not isinstance(media_type, str) or media_type.lower() not in _MEDIA_TYPES:
            raise TokenInvalid("the token is of another type (typ) than an access token")
        key = await self._keys.find_key(key_id, algorithm)
        if key is None:
            raise TokenInvalid("the token is not valid: the provider has no key with its key id (kid) and algorithm")
        return read_holder(self._read_claims(token, key, algorithm), self.rules.claims)

    async def close(self) -> None:
        """Release connections."""
        await self._keys.close()

    def _read_claims(self, token: str, key: jwt.PyJWK, algorithm: str) -> dict[str, Any]:
        """Return the claims of a token that the key has signed. The key's algorithm is fixed, whatever the token names."""
        rules = self.rules
        try:
            return jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=rules.audiences,
                issuer=rules.issuer,
                leeway=rules.leeway_s,
                options={"require": list(_REQUIRED), "enforce_minimum_key_length": True},
            )
        except jwt.ExpiredSignatureError:
            raise TokenExpired(f"the token expired at {_expiry_of(token)}; ask the provider for another") from None
        except _MALFORMED as error:
            raise _refuse_token(error) from None


def _refuse_token(error: Exception) -> TokenInvalid:
    reason = next((reason for kind, reason in _REASONS.items() if isinstance(error, kind)), "a claim is missing or malformed")
    if isinstance(error, jwt.MissingRequiredClaimError):
        reason = f"it has no claim {error.claim!r}"
    return TokenInvalid(f"the token is not valid: {reason}")


def _expiry_of(token: str) -> str:
    """Return the time at which a token whose signature matched expired."""
    claims = jwt.decode(token, options={"verify_signature": False})
    return f"{datetime.fromtimestamp(int(claims['exp']), UTC):%Y-%m-%dT%H:%M:%SZ}"
