"""Requests: access checks, bodies, preconditions, idempotency, and parameters that several routes share."""
