"""Formulas of RTF: their groups have the names of Office's formulas (OMML) with an "m" before them, such as ``\\\\mnum``."""

from __future__ import annotations

from lxml import etree

from agentic_rag_backend.documents.parsing.office.walking import local_name
from agentic_rag_backend.documents.parsing.office.word.formulas import MATH

_PROPERTIES = frozenset({"mchr", "mbegChr", "msepChr", "mendChr", "mtype"})
FORMULA_WORDS = _PROPERTIES | {
    "moMath", "mr", "macc", "maccPr", "mbar", "mbarPr", "mborderBox", "mbox", "mctrlPr", "md", "mdeg", "mden", "mdPr", "me",
    "meqArr", "meqArrPr", "mf", "mfName", "mfPr", "mfunc", "mfuncPr", "mgroupChr", "mgroupChrPr", "mlim", "mlimLow", "mlimLowPr",
    "mlimUpp", "mlimUppPr", "mm", "mmPr", "mmr", "mnary", "mnaryPr", "mnum", "mphant", "mphantPr", "mrad", "mradPr", "msPre",
    "msPrePr", "msSub", "msSubPr", "msSubSup", "msSubSupPr", "msSup", "msSupPr", "msub", "msup",
}  # fmt: skip
"""Control words that begin a part of a formula."""


def make_formula_part(parent: etree._Element | None, word: str) -> etree._Element:
    """Return a new part of a formula, within ``parent`` if there is one."""
    name = MATH + word[1:]
    return etree.Element(name) if parent is None else etree.SubElement(parent, name)


def add_formula_text(part: etree._Element, text: str) -> None:
    """Add text to a part: the value of a property, or what is shown. Other texts in properties are left out."""
    if "m" + local_name(part) in _PROPERTIES:
        part.set(MATH + "val", part.get(MATH + "val", "") + text.strip())
    elif not local_name(part).endswith("Pr"):
        etree.SubElement(part, MATH + "t").text = text.translate(_CONTROLS)


_CONTROLS = dict.fromkeys(range(32))
