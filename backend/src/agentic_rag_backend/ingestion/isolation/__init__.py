"""Reads documents in child processes with limits of time and memory.

``client`` runs in the serving process. It starts ``server``, a single-threaded process that imports everything that reading
needs. The server forks ``worker`` processes, which run the functions of ``calls``, one call at a time.
"""
