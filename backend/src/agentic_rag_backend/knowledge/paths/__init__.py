"""Paths between entities over several relationships."""
