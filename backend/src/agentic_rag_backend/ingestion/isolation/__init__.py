"""Reading documents in child processes with limits of time and memory.

``client`` lives in the process that serves; it starts ``server``, a single-threaded process that imports what reading needs and
forks ``worker`` processes, each of which runs the functions of ``calls``, one call at a time.
"""
