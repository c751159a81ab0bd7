"""Shares of a claim's words that quotes must cover, in every language."""

from __future__ import annotations

MIN_SUPPORT = 0.6
"""Least share of a claim's weighted words that the quotes under it must cover together."""
MIN_CLAUSE_SUPPORT = 0.4
"""Least share of the words of each clause that the quotes must cover."""
MIN_STATEMENT_SUPPORT = 0.5
"""Least share of the words that are no names or numbers: two names alone state nothing."""
MIN_OWN_SHARE = 0.25
"""A cited passage that covers less than this share of the claim does not support it. Its marker is dropped."""
