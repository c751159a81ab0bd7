"""The ports of communities and trees on SQL, whose summaries belong to generations."""
