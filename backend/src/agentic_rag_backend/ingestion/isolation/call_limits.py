"""The limits of one call, and the errors that report their violation to the document's owner."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentic_rag_backend.errors import ResourceLimit

STEP_BYTES = 10 * 1024 * 1024
"""The time limits apply per 10 MiB of a document, or part of them."""


CHECK_SHARE = 0.25
"""Share of the processor time of a call that the check at upload has, because a request waits for it."""


@dataclass(frozen=True, slots=True)
class OcrTime:
    """Time for the recognition of text in one document's pictures."""

    cpu_s: float
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """Resource limits of one call in a child process; see the settings of the same names."""

    cpu_s: float = 20.0
    timeout_s: float = 60.0
    memory_mb: int = 1024
    ocr: OcrTime | None = None
    checking: bool = False
    """Whether these are the limits of the check at upload."""

    def limits_for_size(self, size_bytes: int, ocr: OcrTime | None = None) -> CallLimits:
        """Return the limits for a document of this size, with the time ``ocr`` in addition."""
        steps = steps_of(size_bytes)
        return CallLimits(
            cpu_s=self.cpu_s * steps + (ocr.cpu_s if ocr is not None else 0),
            timeout_s=self.timeout_s * steps + (ocr.timeout_s if ocr is not None else 0),
            memory_mb=self.memory_mb,
            ocr=ocr,
        )

    def of_check(self, size_bytes: int) -> CallLimits:
        """Return the limits of the check at upload."""
        limits = self.limits_for_size(size_bytes)
        return replace(limits, cpu_s=limits.cpu_s * CHECK_SHARE, checking=True)

    def out_of_cpu(self) -> ResourceLimit:
        """Return the error of a call that exceeded its processor time."""
        work, share = ("checking", f", of which a check has {CHECK_SHARE:.0%}") if self.checking else ("processing", "")
        return ResourceLimit(
            f"{work} the document took more than {self.cpu_s:g} seconds of processor time ({self._name_settings('CPU_S')}{share})"
        )

    def out_of_time(self) -> ResourceLimit:
        """Return the error of a call that exceeded its time limit."""
        return ResourceLimit(
            f"processing the document took more than {self.timeout_s:g} seconds ({self._name_settings('TIMEOUT_S')})"
        )

    def out_of_memory(self) -> ResourceLimit:
        """Return the error of a call that exceeded its memory limit."""
        return ResourceLimit(f"processing the document took more than {self.memory_mb} MiB of memory (PARSE_MEMORY_MB)")

    def ended_by(self, signal_name: str) -> ResourceLimit:
        """Return the error of a call whose process died. The usual cause is refused memory."""
        return ResourceLimit(
            f"the process that processed the document ended by {signal_name}; its limits are {self.memory_mb} MiB of memory "
            f"(PARSE_MEMORY_MB) and {self.cpu_s:g} seconds of processor time ({self._name_settings('CPU_S')})"
        )

    def _name_settings(self, setting: str) -> str:
        return f"PARSE_{setting} and OCR_{setting}" if self.ocr is not None else f"PARSE_{setting}"


def steps_of(size_bytes: int) -> int:
    """Return how many times the time limits apply to a document of this size."""
    return max(1, -(-size_bytes // STEP_BYTES))
