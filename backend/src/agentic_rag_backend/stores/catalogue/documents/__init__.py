"""The documents port on SQL: versions, chunks, computed results, and the life of a document."""
