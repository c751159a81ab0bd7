"""Routes that measure and tune: datasets and runs, scores, experiments, proposals."""
