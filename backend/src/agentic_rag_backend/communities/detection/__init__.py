"""From a tenant's visible graph to a hierarchy of communities with stable ids."""
