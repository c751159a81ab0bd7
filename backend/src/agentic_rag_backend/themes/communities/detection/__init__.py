"""Divides a tenant's visible graph into a hierarchy of communities with stable ids."""
