"""The command line: each command speaks the HTTP contract, to a server or to the same application in this process."""
