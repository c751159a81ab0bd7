"""The ports of jobs, leases, workers and the outbox on SQL."""
