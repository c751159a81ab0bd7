"""Verifiers of claims, by words or by a model."""
