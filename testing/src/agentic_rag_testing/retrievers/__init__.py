"""The contract of retrievers, and the documents that it searches."""
