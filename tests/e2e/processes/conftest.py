"""Fixtures of the tests with several processes."""

from __future__ import annotations

from site_of_processes import site

__all__ = ["site"]
