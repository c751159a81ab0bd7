"""The types of names."""
