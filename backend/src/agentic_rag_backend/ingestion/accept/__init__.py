"""Uploads: their checks and their originals."""
