"""Export and import of tenants as archives."""
