"""Frozen values that every layer speaks in; standard library only."""
