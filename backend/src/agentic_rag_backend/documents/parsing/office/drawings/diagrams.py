"""Diagrams of Office (SmartArt) as lists: their texts in order, indented by level."""

from __future__ import annotations

from lxml import etree

MAX_DIAGRAM_LEVELS = 10
"""Levels of a diagram that are indented."""


def read_diagram(root: etree._Element) -> str:
    """Return the texts in the data of a diagram (``dataModel``), a line each. Empty: it has none."""
    texts = {
        point.get("modelId"): " ".join("".join(text.text or "" for text in point.iter("{*}t")).split())
        for point in root.iterfind("{*}ptLst/{*}pt")
        if point.get("type", "node") in {"node", "asst", "doc"}
    }
    children: dict[str | None, list[tuple[int, str | None]]] = {}
    below: set[str | None] = set()
    for connection in root.iterfind("{*}cxnLst/{*}cxn"):
        order, child = connection.get("srcOrd", "0"), connection.get("destId")
        if connection.get("type", "parOf") == "parOf" and child in texts and child not in below:
            below.add(child)
            children.setdefault(connection.get("srcId"), []).append(
                (int(order) if order.isdecimal() and len(order) < 9 else 0, child)
            )
    lines: list[str] = []
    waiting = [(point, 0) for point in reversed(texts) if point not in below]
    while waiting:
        point, level = waiting.pop()
        if texts[point]:
            lines.append(f"{'  ' * min(level, MAX_DIAGRAM_LEVELS)}- {texts[point]}")
        inner = sorted(children.get(point, ()), key=lambda child: child[0], reverse=True)
        waiting.extend((child, level + bool(texts[point])) for _, child in inner)
    return "\n".join(lines)
