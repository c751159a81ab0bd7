"""Identity: which names of which documents are the same entity. The result does not depend on the order of documents."""
