"""Documents: versions, chunks, computed results, and the life of a document."""
