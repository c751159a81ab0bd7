"""Requests that retrieve: as callers write them, their defaults, and the query that is made of them."""
