"""A tenant's chunk–entity graph in memory: its construction, its updates and the walk over it."""
