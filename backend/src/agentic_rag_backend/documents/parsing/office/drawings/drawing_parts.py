"""Parts of packages with a chart or a diagram, and the elements of a text or slide that show them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from lxml import etree

from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.containers import xml_tree
from agentic_rag_backend.documents.parsing.office.drawings.charts import read_chart
from agentic_rag_backend.documents.parsing.office.drawings.diagrams import read_diagram
from agentic_rag_backend.documents.parsing.office.walking import local_name
from agentic_rag_backend.errors import UnreadableDocument

_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
RELATIONSHIP_ID = _R + "id"
_ATTRIBUTES: Mapping[str, str] = {"chart": RELATIONSHIP_ID, "relIds": _R + "dm"}


def drawing_id(element: etree._Element) -> str | None:
    """Return the id of the relationship with the chart or diagram that an element shows; None if it shows none."""
    attribute = _ATTRIBUTES.get(local_name(element))
    return None if attribute is None else element.get(attribute)


def read_root(part: Any) -> etree._Element | None:
    """Return the root element of a part; None if it is not XML that can be read. A damaged side part loses only itself."""
    if getattr(part, "_element", None) is not None:
        return part._element
    try:
        return xml_tree(part.blob, str(part.partname))
    except UnreadableDocument:
        return None


def write_drawing(
    builder: TextBuilder, root: etree._Element | None, place: str = "", *, sheets: Set[str] = frozenset(), **where: Any
) -> None:
    """Add the data of a chart, or the texts of a diagram. A drawing without them, or one that is damaged, is counted.

    Args:
        root: root element of its part; None if it cannot be read.
        place: where the drawing is, for `Omissions.add`.
        sheets: names of the sheets whose cells are in the text. Values of charts that are in these cells are not repeated.
        where: the fields of `Region` of its text.
    """
    name = "" if root is None else local_name(root)
    if root is not None and name == "chartSpace":
        read_chart(root, sheets).write_chart(builder, place, **where)
    elif root is not None and name == "dataModel" and (text := read_diagram(root)):
        builder.add_paragraph(text, **where)
    else:
        builder.omissions.add("diagrams" if name == "dataModel" else "drawings that cannot be read", place)
