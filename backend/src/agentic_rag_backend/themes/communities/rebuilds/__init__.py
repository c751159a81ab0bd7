"""Rebuilds of communities: schedule, options, and steps."""
