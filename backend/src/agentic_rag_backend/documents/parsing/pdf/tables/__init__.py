"""Tables of a page, found by their ruled lines."""
