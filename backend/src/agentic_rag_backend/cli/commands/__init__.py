"""Commands that use the HTTP API."""
