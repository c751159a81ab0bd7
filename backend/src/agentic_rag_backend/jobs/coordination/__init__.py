"""Coordination of workers: turns and slots of tenants, membership of processes, and recovery after a kill."""
