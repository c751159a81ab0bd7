"""Telemetry of a process: log events (`logs`) and metrics for Prometheus (`metrics`)."""

from agentic_rag_backend.telemetry.logs import configure_logging

__all__ = ["configure_logging"]
