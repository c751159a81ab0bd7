"""Texts and values of XFA forms, whose pages a viewer would build from XML. The pages in the file ask to wait for that."""

from __future__ import annotations

import ctypes
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass

import pypdfium2
import pypdfium2.raw as pdfium
from lxml import etree

from agentic_rag_backend.documents.parsing.containers import refuse_document_type
from agentic_rag_backend.documents.parsing.pdf.forms.annotations import MAX_VALUE_CHARACTERS, TICKED, UNTICKED
from agentic_rag_backend.errors import UnreadableDocument

MAX_XFA_BYTES = 16 * 1024 * 1024
_INVISIBLE = frozenset({"hidden", "invisible", "inactive"})


def read_xfa(document: pypdfium2.PdfDocument) -> list[str]:
    """Return the paragraphs of an XFA form: its texts, and its fields as "caption: value". Empty if its XML cannot be read."""
    parts, size = [], 0
    for index in range(max(pdfium.FPDF_GetXFAPacketCount(document), 0)):
        part = _read_packet(document, index, MAX_XFA_BYTES - size)
        size += len(part)
        parts.append(part)
    content = b"".join(parts)
    try:
        refuse_document_type(content, "the XFA form")
        root = etree.fromstring(
            content, etree.XMLParser(recover=True, resolve_entities=False, no_network=True, remove_comments=True)
        )
    except (UnreadableDocument, etree.LxmlError, ValueError):
        return []
    if root is None:
        return []
    packets = {_name_of(packet): packet for packet in root if isinstance(packet.tag, str)}
    values = _Values.of(packets.get("datasets"))
    template = packets.get("template")
    paragraphs = list(_read_template(template, values)) if template is not None else []
    return [*paragraphs, *values.list_remaining()]


def _read_packet(document: pypdfium2.PdfDocument, index: int, limit: int) -> bytes:
    size = ctypes.c_ulong()
    if not pdfium.FPDF_GetXFAPacketContent(document, index, None, 0, size) or not 0 < size.value <= limit:
        return b""
    buffer = ctypes.create_string_buffer(size.value)
    pdfium.FPDF_GetXFAPacketContent(document, index, buffer, size.value, size)
    return buffer.raw[: size.value]


@dataclass(slots=True)
class _Values:
    """Values of fields by name, in the order of the data."""

    by_name: dict[str, deque[str]]

    @classmethod
    def of(cls, datasets: etree._Element | None) -> _Values:
        values = cls(defaultdict(deque))
        data = next((child for child in datasets if _name_of(child) == "data"), None) if datasets is not None else None
        for element in data.iter() if data is not None else ():
            text = _text_of(element)
            if isinstance(element.tag, str) and not len(element) and text:
                values.by_name[_name_of(element)].append(text)
        return values

    def take_value(self, name: str) -> str:
        """Remove the next value of a name and return it. Empty if there is none."""
        values = self.by_name.get(name)
        return values.popleft() if values else ""

    def list_remaining(self) -> Iterator[str]:
        """Yield the values that no field of the template has taken."""
        for name, values in self.by_name.items():
            yield from (f"{name}: {value}" for value in values)


def _read_template(element: etree._Element, values: _Values, choice: str | None = None) -> Iterator[str]:
    """Yield the texts and fields of an element. ``choice`` is the value of the group of radio buttons that it is."""
    for child in element:
        if not isinstance(child.tag, str) or child.get("presence") in _INVISIBLE:
            continue
        name = _name_of(child)
        if name == "draw":
            text = _text_of(_find_child(child, "value"))
        elif name == "field":
            text = _read_xfa_field(child, values, choice)
        else:
            yield from _read_template(child, values, values.take_value(_data_name(child)) if name == "exclGroup" else None)
            continue
        if text:
            yield text


def _read_xfa_field(element: etree._Element, values: _Values, choice: str | None) -> str:
    caption = _text_of(_find_child(_find_child(element, "caption"), "value")) or element.get("name") or ""
    value = (values.take_value(_data_name(element)) or _text_of(_find_child(element, "value"))) if choice is None else choice
    ui = _find_child(element, "ui")
    items = [[_text_of(item) for item in child] for child in element if _name_of(child) == "items"]
    if _find_child(ui, "button") is not None:
        return ""
    if _find_child(ui, "checkButton") is not None:
        return f"{TICKED if items and items[0] and value == items[0][0] else UNTICKED} {caption}"
    if len(items) == 2 and value in items[1]:  # the first list is shown, and the second one is stored
        value = dict(zip(items[1], items[0], strict=False)).get(value, value)
    return f"{caption.rstrip(': ')}: {value}" if value else caption


def _data_name(element: etree._Element) -> str:
    """Return the name of a field's element of the data."""
    bind = _find_child(element, "bind")
    reference = bind.get("ref", "") if bind is not None else ""
    return reference.rpartition(".")[2].partition("[")[0] or element.get("name") or ""


def _find_child(element: etree._Element | None, name: str) -> etree._Element | None:
    return next((child for child in element if _name_of(child) == name), None) if element is not None else None


def _name_of(element: etree._Element) -> str:
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def _text_of(element: etree._Element | None) -> str:
    """Return the text of an element on one line. Pictures, which are text in Base64, have none."""
    if element is None or any(_name_of(child) == "image" for child in element) or _is_picture(element):
        return ""
    return " ".join(" ".join(map(str, element.itertext())).split())[:MAX_VALUE_CHARACTERS]


def _is_picture(element: etree._Element) -> bool:
    return any(name.endswith("contentType") and value.startswith("image/") for name, value in element.items())
