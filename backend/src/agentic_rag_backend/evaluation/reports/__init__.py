"""Summaries of runs, their intervals and gates, and their reports."""
