"""Questions made from the documents of a tenant, by rules."""
