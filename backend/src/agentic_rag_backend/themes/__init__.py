"""The two hierarchies of summaries: communities of the graph, and trees of passages (RAPTOR)."""
