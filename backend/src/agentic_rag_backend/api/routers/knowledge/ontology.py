"""The ontology of a tenant."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from agentic_rag_backend.api.dependencies import Administrator, Reader, Services
from agentic_rag_backend.api.requests.bodies import JsonRoute
from agentic_rag_backend.api.responses.envelopes import Envelope, wrap_data
from agentic_rag_backend.api.schemas.knowledge.ontology import OntologyBody, OntologyView

router = APIRouter(tags=["knowledge"], route_class=JsonRoute)


@router.get("/ontology", response_model=Envelope[OntologyView], summary="Types of entities and relationships")
async def get_ontology(request: Request, services: Services, caller: Reader) -> dict[str, Any]:
    """Return the types that a language model uses when it extracts from documents of this tenant."""
    return wrap_data(request, OntologyView.of(await services.admin.get_ontology(caller)))


@router.put("/ontology", response_model=Envelope[OntologyView], summary="Replace the ontology")
async def put_ontology(request: Request, services: Services, caller: Administrator, body: OntologyBody) -> dict[str, Any]:
    """Replace the ontology of this tenant. It applies to documents that are processed from now on.

    The deployment's own ontology makes the tenant follow the deployment again.
    """
    return wrap_data(request, OntologyView.of(await services.admin.replace_ontology(caller, body.ontology())))
