"""Contract suites of retrieval."""
