"""Documents as files and texts: parsers, chunking strategies and recognition of pictures. No store."""
