"""Tuning: proposes values for a tenant, learned on one half of the cases and checked on the other."""
