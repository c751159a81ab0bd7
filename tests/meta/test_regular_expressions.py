"""Every regular expression of the package takes linear time for any text.

`re` holds the interpreter lock while it works, so one quadratic pattern over a tenant's text stops all tenants.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from regular_expressions import Found, modules_of, patterns_of, superlinear, worst_strings

import agentic_rag_backend

MADE_WHILE_RUNNING: Mapping[str, str] = {
    "agentic_rag_backend.knowledge.extraction.grounding": r"東京大学",
    "agentic_rag_backend.knowledge.extraction.topics": r"(?<!\w)alpha[\W_]{1,4}beta[\W_]{1,4}gamma(?!\w)",
    "agentic_rag_backend.prompts.loader": r"<(?=\s*(?:/\s*)?(?:passage|question)\b)",
    "agentic_rag_backend.stores.vector.qdrant.server": r"prefix_(chunks|nodes)_[0-9a-f]{16}",
}
"""By module, an example of a pattern that is computed at run time. New ones must be added here."""
NOT_OVER_USER_TEXT = ("agentic_rag_backend.testing",)
"""Modules for tests, which no server runs."""


def _linear(found: Found) -> str | None:
    return superlinear(found.run, lambda size: worst_strings(found.pattern, size), extrapolate=True)


def test_every_pattern_takes_linear_time() -> None:
    quadratic, made_up, count = {}, set(), 0
    for module in modules_of(agentic_rag_backend):
        if module.__name__.startswith(NOT_OVER_USER_TEXT):
            continue
        found, dynamic = patterns_of(module)
        made_up |= {each.where for each in dynamic}
        for each in found:
            count += 1
            if problem := _linear(each):
                quadratic[each.where] = problem
    assert made_up <= MADE_WHILE_RUNNING.keys(), "a pattern made up while running needs an example in MADE_WHILE_RUNNING"
    for where in MADE_WHILE_RUNNING:
        if problem := _linear(Found(where, re.compile(MADE_WHILE_RUNNING[where], re.IGNORECASE))):
            quadratic[where] = problem
    assert count > 50  # the search finds patterns
    assert not quadratic, "\n".join(f"{where}: {problem}" for where, problem in sorted(quadratic.items()))


@pytest.mark.parametrize(
    "pattern",
    [
        # The deep ones take seconds each.
        pytest.param(r"(?:^|[ \t]+)#+[ \t]*$", marks=pytest.mark.deep),  # found the ends of headings in the first release
        pytest.param(r"!?\[([^\]\n]*)\]\([^)\n]*\)", marks=pytest.mark.deep),  # found its links
        r"[.!?…]+[)\]\"'”’»]*(?:\[\d{1,4}\])*(?=\s)",  # found its ends of sentences
        r"\n[ \t]*\n\s*x",
        pytest.param(r"<(?=\s*/?\s*(?:passage|question)\b)", marks=pytest.mark.deep),  # found its fences in prompts
        r"(a+)+b",
    ],
)
def test_a_pattern_that_is_not_linear_is_noticed(pattern: str) -> None:
    assert _linear(Found("planted", re.compile(pattern))) is not None
