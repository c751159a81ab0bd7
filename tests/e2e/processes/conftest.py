"""What the tests of several processes ask for."""

from __future__ import annotations

from site_of_processes import site

__all__ = ["site"]
