"""Communities and trees, whose summaries belong to generations."""
