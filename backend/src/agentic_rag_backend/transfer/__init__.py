"""A tenant as an archive: out of one deployment, into another."""
