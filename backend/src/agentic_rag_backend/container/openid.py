"""The verifier of an OpenID provider's tokens, from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentic_rag_backend.settings import Settings
from agentic_rag_backend.settings_oidc import allows_loopback, parse_algorithms, parse_claim_values, parse_list, parse_scopes
from agentic_rag_backend.tenancy.oidc.claims import ClaimRules

if TYPE_CHECKING:
    from agentic_rag_backend.tenancy.oidc.token_verifier import TokenVerifier


def create_verifier(settings: Settings) -> TokenVerifier | None:
    """Return the verifier of OIDC_ISSUER's tokens. None if it is unset. The provider is asked when the first token arrives."""
    issuer = settings.oidc_issuer
    if issuer is None:
        return None
    # The library of signatures is slow to import, and most deployments have no provider.
    from agentic_rag_backend.tenancy.oidc.provider_keys import ProviderKeys
    from agentic_rag_backend.tenancy.oidc.token_verifier import TokenRules, TokenVerifier

    claims = ClaimRules(
        tenant_claim=settings.oidc_tenant_claim,
        tenants=parse_claim_values(settings.oidc_tenants, "OIDC_TENANTS") or None,
        scopes_claim=settings.oidc_scopes_claim,
        scopes=parse_scopes(settings.oidc_scopes),
    )
    rules = TokenRules(
        issuer=issuer,
        audiences=parse_list(settings.oidc_audience),
        algorithms=frozenset(parse_algorithms(settings.oidc_algorithms)),
        leeway_s=settings.oidc_leeway_s,
        claims=claims,
    )
    return TokenVerifier(rules, ProviderKeys(issuer, local=allows_loopback(issuer), max_age_s=settings.oidc_keys_max_age_s))
