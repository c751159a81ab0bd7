"""Prompts: one Markdown file each, with a version in its header.

A file starts with a header between ``---`` lines (``name``, ``version``, ``description``) and has two sections,
``# System`` and ``# User``. Placeholders are written ``{{name}}``. Document text is untrusted: it enters a prompt only
through `fence`, inside a ``user`` turn, and the instructions declare fenced text to be data.
"""

from agentic_rag_backend.prompts.loader import Prompt, built_in, built_in_names, fence, parse, read_file, without_markers

__all__ = ["Prompt", "built_in", "built_in_names", "fence", "parse", "read_file", "without_markers"]
