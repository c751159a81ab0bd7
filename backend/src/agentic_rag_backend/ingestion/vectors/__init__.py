"""What ingestion writes to the vector store."""
