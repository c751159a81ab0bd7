"""Tokens of an OpenID provider, which callers send instead of keys."""
