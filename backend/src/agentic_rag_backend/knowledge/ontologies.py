"""The ontologies of tenants. A tenant that has set none uses the deployment's."""

from __future__ import annotations

from dataclasses import dataclass

from agentic_rag_backend.domain.ontology import Ontology
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.tenants.tenant_directory import TenantDirectory


@dataclass(frozen=True, slots=True)
class EffectiveOntology:
    """The ontology of a tenant. ``is_default`` if it is the deployment's."""

    ontology: Ontology
    is_default: bool


@dataclass(frozen=True, slots=True)
class Ontologies:
    """Reads and sets ontologies.

    Args:
        default: the deployment's ontology.
    """

    directory: TenantDirectory
    default: Ontology

    async def of(self, tenant: TenantId) -> EffectiveOntology:
        """Return the ontology of a tenant."""
        tenant_ontology = await self.directory.ontology(tenant)
        return EffectiveOntology(tenant_ontology or self.default, tenant_ontology is None)

    async def put(self, tenant: TenantId, ontology: Ontology) -> EffectiveOntology:
        """Set the ontology of a tenant. The deployment's ontology is followed again, also when it changes.

        It applies to versions that are processed from now on.
        """
        tenant_ontology = None if ontology == self.default else ontology
        await self.directory.set_ontology(tenant, tenant_ontology)
        return EffectiveOntology(ontology, tenant_ontology is None)
