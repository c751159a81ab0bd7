"""A tenant's chunk–entity graph in memory: what it is made of, how it is kept current, and how it is walked."""
