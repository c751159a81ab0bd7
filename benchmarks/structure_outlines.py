"""Makes Word documents with known headings and lists, of the kinds that programs write, from a seed."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from docx import Document
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import nsdecls, qn

SEEDS = 5
"""Documents of each kind."""
_WORDS = [
    "harbour",
    "turbine",
    "ledger",
    "anchor",
    "bridge",
    "market",
    "copper",
    "valley",
    "signal",
    "garden",
    "mirror",
    "timber",
]


@dataclass(frozen=True)
class Part:
    """A heading with its level, a list item with its label (``-`` for a bullet), or a paragraph with neither."""

    text: str
    level: int = 0
    label: str = ""


@dataclass
class Outline:
    """A document and the parts that a reader must find in it, in order."""

    kind: str
    seed: int
    parts: list[Part] = field(default_factory=list)
    document: Any = field(default_factory=Document)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{self.kind} {self.seed}")
        self._numbers = iter(self.chance.sample(range(100, 999), 200))

    def words(self) -> str:
        """Return a phrase that the document has once."""
        return f"{self.chance.choice(_WORDS).title()} {self.chance.choice(_WORDS)} {next(self._numbers)}"

    def text(self) -> None:
        """Add a paragraph."""
        part = Part(f"The {self.words()} stands behind the {self.words()}.")
        self.parts.append(part)
        self.document.add_paragraph(part.text)

    def heading(self, level: int, style: str, label: str = "") -> Any:
        """Add a heading. Return its paragraph."""
        part = Part(self.words(), level=level, label=label)
        self.parts.append(part)
        return self.document.add_paragraph(part.text, style=style)

    def item(self, label: str, style: str = "List Paragraph", number: tuple[int, int] | None = None) -> None:
        """Add a list item. ``number`` is its list and its depth there."""
        part = Part(f"the {self.words()}", label=label)
        self.parts.append(part)
        paragraph = self.document.add_paragraph(part.text, style=style)
        if number:
            paragraph._p.get_or_add_pPr().append(_numbering(*number))

    def levels(self) -> list[int]:
        """Return levels of headings as an author would write them: none is more than one below the one before."""
        levels = [1]
        for _ in range(5 + self.chance.randrange(5)):
            levels.append(self.chance.randint(1, min(levels[-1] + 1, 4)))
        return levels

    def add_list(self, levels: list[tuple[str, str]], *, restart_of: int | None = None) -> int:
        """Define a list and return its number. A level is its format and its text, such as ``lowerLetter`` and ``(%1)``."""
        root = self.document.part.numbering_part.element
        identifier = 900 + len(root)
        if restart_of is None:
            written = "".join(
                f'<w:lvl w:ilvl="{depth}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/><w:lvlText w:val="{text}"/></w:lvl>'
                for depth, (kind, text) in enumerate(levels)
            )
            abstract = f'<w:abstractNum {nsdecls("w")} w:abstractNumId="{identifier}">{written}</w:abstractNum>'
            root.insert(0, parse_xml(abstract))
            override, of = "", identifier
        else:
            override = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride>'
            of = next(
                int(num.find(qn("w:abstractNumId")).get(qn("w:val")))
                for num in root.findall(qn("w:num"))
                if num.get(qn("w:numId")) == str(restart_of)
            )
        number = f'<w:num {nsdecls("w")} w:numId="{identifier}"><w:abstractNumId w:val="{of}"/>{override}</w:num>'
        root.append(parse_xml(number))
        return identifier

    def content(self) -> bytes:
        """Return the file."""
        target = io.BytesIO()
        self.document.save(target)
        return target.getvalue()


def _numbering(number: int, depth: int) -> Any:
    return parse_xml(f'<w:numPr {nsdecls("w")}><w:ilvl w:val="{depth}"/><w:numId w:val="{number}"/></w:numPr>')


def _built_in(outline: Outline) -> None:
    outline.heading(1, "Title")
    for level in outline.levels():
        outline.heading(level, f"Heading {level}")
        outline.text()


def _outline_levels(outline: Outline) -> None:
    for level in outline.levels():
        paragraph = outline.heading(level, "Normal")
        mark = OxmlElement("w:outlineLvl")
        mark.set(qn("w:val"), str(level - 1))
        paragraph._p.get_or_add_pPr().append(mark)
        outline.text()


def _derived_styles(outline: Outline) -> None:
    for level in (1, 2, 3, 4):
        style = outline.document.styles.add_style(f"Company {level}", WD_STYLE_TYPE.PARAGRAPH)
        style.base_style = outline.document.styles[f"Heading {level}"]
    for level in outline.levels():
        outline.heading(level, f"Company {level}")
        outline.text()


def _local_names(outline: Outline) -> None:
    name = ("Überschrift", "Titre", "Título", "Kop", "Nagłówek")[outline.seed]
    for level in (1, 2, 3, 4):
        style = outline.document.styles.add_style(f"{name} {level}", WD_STYLE_TYPE.PARAGRAPH)
        mark = OxmlElement("w:outlineLvl")
        mark.set(qn("w:val"), str(level - 1))
        style.element.get_or_add_pPr().append(mark)
    for level in outline.levels():
        outline.heading(level, f"{name} {level}")
        outline.text()


def _numbered_headings(outline: Outline) -> None:
    forms = [("decimal", ".".join(f"%{part}" for part in range(1, depth + 1)) + "." * (depth == 1)) for depth in range(1, 5)]
    if outline.seed % 2:
        forms[0] = ("upperRoman", "Chapter %1:")
        forms[1:] = [("decimal", text.removeprefix("%1.")) for _, text in forms[1:]]
    number = outline.add_list(forms)
    for level in (1, 2, 3, 4):
        style = outline.document.styles[f"Heading {level}"]
        style.element.get_or_add_pPr().append(_numbering(number, level - 1))
    counts = [0] * 4
    for level in outline.levels():
        counts[level - 1 :] = [counts[level - 1] + 1, *[0] * (4 - level)]
        kind, label = forms[level - 1]
        for place, count in enumerate(counts, 1):
            label = label.replace(f"%{place}", _ROMAN[count] if kind == "upperRoman" else str(count))
        outline.heading(level, f"Heading {level}", label)
        outline.text()


_ROMAN = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI")


def _bullets(outline: Outline) -> None:
    number = outline.add_list([("bullet", "•"), ("bullet", "o"), ("bullet", "\uf0a7")])
    for _ in range(2):
        outline.text()
        for _ in range(4 + outline.chance.randrange(4)):
            outline.item("-", number=(number, outline.chance.randrange(3)))
    outline.text()


def _numbers(outline: Outline) -> None:
    forms = (
        [("decimal", "%1."), ("lowerLetter", "(%2)"), ("lowerRoman", "%3)")],
        [("lowerLetter", "(%1)"), ("decimal", "%2.")],
        [("decimal", "Art. %1"), ("decimal", "%1.%2")],
        [("upperLetter", "%1."), ("lowerLetter", "%2)")],
        [("decimalZero", "%1"), ("lowerRoman", "(%2)")],
    )[outline.seed]
    number = outline.add_list(list(forms))
    for round_number in range(3):
        if round_number == 2:
            number = outline.add_list([], restart_of=number)
        first = 0 if round_number == 2 else 3 * round_number
        for top in range(first + 1, first + 4):
            outline.item(_label(forms, (top,)), number=(number, 0))
            if outline.chance.random() < 0.6:
                for inner in (1, 2):
                    outline.item(_label(forms, (top, inner)), number=(number, 1))
        outline.text()


def _label(forms: Any, counts: tuple[int, ...]) -> str:
    label = forms[len(counts) - 1][1]
    for depth, count in enumerate(counts):
        kind = forms[depth][0]
        letters = {
            "lowerLetter": "abcdefghij"[count - 1],
            "upperLetter": "ABCDEFGHIJ"[count - 1],
            "lowerRoman": _ROMAN[count].lower(),
            "decimalZero": f"{count:02}",
        }
        label = label.replace(f"%{depth + 1}", letters.get(kind, str(count)))
    return str(label)


def _list_styles(outline: Outline) -> None:
    outline.heading(1, "Heading 1")
    for number in range(1, 4 + outline.seed):
        outline.item(f"{number}.", style="List Number")
        if outline.chance.random() < 0.5:
            outline.item("-", style="List Bullet 2")
    outline.text()
    for _ in range(3):
        outline.item("-", style="List Bullet")


KINDS: Mapping[str, Callable[[Outline], None]] = {
    "built-in styles, Title": _built_in,
    "outline levels": _outline_levels,
    "derived styles": _derived_styles,
    "local style names": _local_names,
    "numbered headings": _numbered_headings,
    "bullets": _bullets,
    "numbers, nested, restarted": _numbers,
    "list styles": _list_styles,
}


def make_outlines() -> list[Outline]:
    """Return the documents of every kind."""
    outlines = []
    for kind, fill in KINDS.items():
        for seed in range(SEEDS):
            outline = Outline(kind, seed)
            fill(outline)
            outlines.append(outline)
    return outlines
