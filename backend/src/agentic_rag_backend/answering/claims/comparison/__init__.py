"""Comparisons of a claim with its quotes: names, numbers, denials, opposites."""
