"""Every regular expression of the package takes linear time for any text.

`re` holds the interpreter lock while it works, so one quadratic pattern over a tenant's text stops all tenants.

The gate measures the patterns whose digests are not in ``linear_patterns.txt``: those that were not measured before.
`make test-deep` measures all. After a change: ``python tests/meta/test_regular_expressions.py``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "fixtures"))

from regular_expressions import Found, modules_of, patterns_of, superlinear, worst_strings
from sampling import budget

import agentic_rag_backend
from agentic_rag_backend.language.questions.defined_names import pattern_of_definitions

MEASURED = Path(__file__).with_name("linear_patterns.txt")

MADE_WHILE_RUNNING: Mapping[str, str] = {
    "agentic_rag_backend.knowledge.extraction.model.grounding": r"東京大学",
    "agentic_rag_backend.knowledge.extraction.topics": r"(?<!\w)alpha[\W_]{1,4}beta[\W_]{1,4}gamma(?!\w)",
    "agentic_rag_backend.language.questions.defined_names": pattern_of_definitions("lock keeper").pattern,
    "agentic_rag_backend.stores.vector.qdrant.server": r"prefix_(chunks|nodes)_[0-9a-f]{16}",
}
"""By module, an example of a pattern that is computed at run time. New ones must be added here."""


def _linear(found: Found) -> str | None:
    return superlinear(found.run, lambda size: worst_strings(found.pattern, size), extrapolate=True)


def _patterns() -> tuple[list[Found], set[str]]:
    """Return the patterns of the package, and where patterns are computed at run time."""
    found: list[Found] = []
    made_up: set[str] = set()
    for module in modules_of(agentic_rag_backend):
        own, dynamic = patterns_of(module)
        found += own
        made_up |= {each.where for each in dynamic}
    found += [Found(where, re.compile(example, re.IGNORECASE)) for where, example in MADE_WHILE_RUNNING.items()]
    return found, made_up


@pytest.mark.sampled
def test_every_pattern_takes_linear_time() -> None:
    found, made_up = _patterns()
    assert len(found) > 50  # the search finds patterns
    assert made_up <= MADE_WHILE_RUNNING.keys(), "a pattern made up while running needs an example in MADE_WHILE_RUNNING"
    measured = set(MEASURED.read_text().split())
    digests = {each.digest for each in found}
    assert not measured - digests, f"{MEASURED.name} has patterns that are gone: run python tests/meta/{Path(__file__).name}"
    new = [each for each in found if budget(gate=0, deep=1) or each.digest not in measured]
    quadratic = {each.where: problem for each in new if (problem := _linear(each))}
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


def _record() -> int:
    """Measure the patterns that are not recorded, and record the linear ones."""
    found, _ = _patterns()
    measured = set(MEASURED.read_text().split()) if MEASURED.exists() else set()
    quadratic = {each.where: problem for each in found if each.digest not in measured and (problem := _linear(each))}
    print(*(f"{where}: {problem}" for where, problem in quadratic.items()), sep="\n")
    linear = {each.digest for each in found if each.where not in quadratic}
    MEASURED.write_text("".join(f"{digest}\n" for digest in sorted(linear)))
    return int(bool(quadratic))


if __name__ == "__main__":
    sys.exit(_record())
