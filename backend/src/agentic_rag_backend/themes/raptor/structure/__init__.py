"""The structure of a tree: clusters of passages, and the nodes above them."""
