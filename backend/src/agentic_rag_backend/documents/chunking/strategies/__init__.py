"""The chunking strategies, one a module."""
