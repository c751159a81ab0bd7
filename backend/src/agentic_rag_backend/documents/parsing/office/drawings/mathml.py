"""Formulas in MathML as text on one line, in the form of `office.word.formulas`."""

from __future__ import annotations

from collections.abc import Sequence

from lxml import etree

from agentic_rag_backend.documents.parsing.office.walking import local_name
from agentic_rag_backend.documents.parsing.office.word.formulas import INVISIBLE, bracket_operand

_SCRIPTS = {
    "msub": ("_",), "msup": ("^",), "msubsup": ("_", "^"), "munder": ("_",), "mover": ("^",), "munderover": ("_", "^"),
}  # fmt: skip
_LEAVES = frozenset({"mi", "mn", "mo", "mtext", "ms"})


def write_mathml(element: etree._Element) -> str:
    """Return the text of a formula, or of a part of one. The depth is that of the XML, which its parser limits."""
    name, children = local_name(element), [child for child in element if local_name(child)]
    if name in _LEAVES:
        return " ".join("".join(element.itertext()).translate(INVISIBLE).split())
    if name.startswith("annotation") or name == "mspace":
        return ""
    if name == "mfrac" and len(children) == 2:
        return "/".join(bracket_operand(write_mathml(child)) for child in children)
    if name in _SCRIPTS and len(children) == 1 + len(_SCRIPTS[name]):
        return _write_scripts(children, _SCRIPTS[name])
    if name == "mroot" and len(children) == 2:
        return f"root({write_mathml(children[1])}, {write_mathml(children[0])})"
    if name == "msqrt":
        return f"√{bracket_operand(_write_row(children))}"
    if name == "mfenced":
        inner = (element.get("separators", ",").strip()[:1] or ",").join(map(write_mathml, children))
        return f"{element.get('open', '(')}{inner}{element.get('close', ')')}"
    if name == "mtable":
        return "; ".join(", ".join(map(write_mathml, row)) for row in children)
    return _write_row(children)


def _write_row(children: Sequence[etree._Element]) -> str:
    return "".join(map(write_mathml, children))


def _write_scripts(children: Sequence[etree._Element], marks: Sequence[str]) -> str:
    base, *scripts = map(write_mathml, children)
    written = (mark + bracket_operand(script) for mark, script in zip(marks, scripts, strict=True) if script.strip())
    # The operand of a sum or an integral follows its bounds.
    return bracket_operand(base) + "".join(written) + (" " if base in {"∑", "∏", "∫"} else "")
