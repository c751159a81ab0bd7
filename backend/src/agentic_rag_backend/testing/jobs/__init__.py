"""Contracts of the job queue, of leases and of worker directories."""
