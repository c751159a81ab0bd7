"""The second half of an ingestion: writes a version and makes it visible, and settles names afterwards."""
