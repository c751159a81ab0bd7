"""Datasets of questions, and the runs over them."""
