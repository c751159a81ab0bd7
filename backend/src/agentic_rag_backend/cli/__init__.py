"""Command line. Commands use the HTTP API of a server, or of the same application in this process."""
