"""Jobs, leases, workers and the outbox."""
