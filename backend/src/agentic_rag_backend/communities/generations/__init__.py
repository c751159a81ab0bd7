"""Generations of communities in the stores: write, restore, and remove statements of deleted documents."""
