"""A tenant's visible graph as a file for other programs."""
