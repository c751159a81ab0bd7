"""Relationships between names, and when they hold."""
