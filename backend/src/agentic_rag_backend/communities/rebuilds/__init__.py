"""Rebuilds of communities: when one is due, what it is asked to do, and its steps."""
