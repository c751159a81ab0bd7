"""Words that make an event or a thing another one, such as "another flood" or "rebuilt in 1950"."""

from __future__ import annotations

from agentic_rag_backend.language.words import all_forms

DISTINGUISHING = all_forms(
    "again another second third fourth next previous former last old new original other both also later earlier reopened rebuilt "
    "re-opened re-built refounded renovated restored reelected planned expected proposed intended should will would forecast "
    "estimated target until since north south east west northern southern eastern western upper lower inner outer main"
)
"""Words that make an event or a thing another one: "another flood", "rebuilt in 1950", "will open"."""
BESIDE = 3
"""Words between such a word and the event or thing, at most. Farther away it is about something else."""
