"""The embedded vector store: the Qdrant engine in this process."""
