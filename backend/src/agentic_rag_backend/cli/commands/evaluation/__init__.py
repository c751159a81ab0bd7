"""Commands of evaluation: datasets, runs and reports."""
