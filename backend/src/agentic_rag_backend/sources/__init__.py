"""Sources of documents: files named by paths, rows of tables, and the detection of similar documents."""
