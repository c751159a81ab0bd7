"""The vector store of the server profile: a Qdrant server."""
