"""Coordination of workers: locks and slots of tenants, membership of processes, and recovery after a kill."""
