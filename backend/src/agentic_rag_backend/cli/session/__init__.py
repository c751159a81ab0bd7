"""Clients of commands: of a server over HTTP, or of the same application in this process."""
