"""Extraction by a language model: its requests, its replies, and what of them the passage has."""
