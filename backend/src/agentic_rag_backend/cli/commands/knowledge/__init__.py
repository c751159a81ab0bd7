"""Commands for the knowledge graph, its communities, and the tree over passages."""
