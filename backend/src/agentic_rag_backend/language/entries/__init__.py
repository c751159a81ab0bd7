"""Entries of a text: rows of tables and lists, each value with its label, with exact offsets."""
