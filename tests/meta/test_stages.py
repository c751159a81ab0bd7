"""Stages of jobs that only a glossary of the code explains are named in the guide, and each name there is a stage."""

from __future__ import annotations

import re
from pathlib import Path

import agentic_rag_backend.ingestion.reconciliation as reconciliation

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "repair.md"


def test_the_stages_of_a_comparison_are_documented() -> None:
    sources = Path(str(reconciliation.__file__)).parent.glob("*.py")
    stages = {stage for source in sources for stage in re.findall(r'progress\(\s*"(\w+)"', source.read_text())}
    listed = re.search(r"The stages of the job are (.*?)\.", GUIDE.read_text(), re.DOTALL)
    assert listed is not None
    assert set(re.findall(r"`(\w+)`", listed[1])) == stages
