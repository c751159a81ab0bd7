"""Searches and answers."""
