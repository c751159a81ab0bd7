"""What a process reports about itself: log events (`logs`) and figures for Prometheus (`metrics`)."""

from agentic_rag_backend.telemetry.logs import configure_logging

__all__ = ["configure_logging"]
