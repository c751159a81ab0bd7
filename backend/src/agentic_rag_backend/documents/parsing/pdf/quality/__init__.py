"""Whether the text of a page can be seen, and whether it can be read."""
