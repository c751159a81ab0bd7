"""Immutable values that all layers use. Imports the standard library only."""
