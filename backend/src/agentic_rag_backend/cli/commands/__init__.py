"""Commands of tenants, over the HTTP contract."""
