"""Routes of a tenant's knowledge: its graph, ontology, contradictions, communities and tree."""
