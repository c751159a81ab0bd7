"""Sessions of commands: over HTTP to a server, or to the same application in this process."""
