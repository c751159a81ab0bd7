"""Statements of visible documents that cannot both be true."""
