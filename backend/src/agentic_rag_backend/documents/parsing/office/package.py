"""Office Open XML packages: the parts with text, in a new package that libraries can open safely."""

from __future__ import annotations

import contextlib
import io
import posixpath
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from lxml import etree

from agentic_rag_backend.documents.metadata_checks import keep_valid_fields
from agentic_rag_backend.documents.parsing.base import Preview
from agentic_rag_backend.documents.parsing.containers import ZipContainer, refuse_document_type, xml_problem, xml_tree
from agentic_rag_backend.errors import UnreadableDocument

MAX_PROPERTY_CHARACTERS = 500

_CONTENT_TYPES = "[Content_Types].xml"
_PROPERTIES = "docProps/core.xml"
_NAMESPACES = {
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "cp": "http://schemas.openxmlformats.org/package/2006/metadata/core-properties",
}
_FIELDS = {
    "author": "dc:creator",
    "created": "dcterms:created",
    "modified": "dcterms:modified",
    "subject": "dc:subject",
    "keywords": "cp:keywords",
    "language": "dc:language",
}
_DAMAGE = (
    ArithmeticError, AssertionError, AttributeError, LookupError, NotImplementedError, OSError, RecursionError, SyntaxError,
    TypeError, ValueError, etree.LxmlError, zipfile.BadZipFile,
)  # fmt: skip
_SAME_AS: Mapping[bytes, bytes] = {
    b"vnd.ms-word.document.macroEnabled.main": b"vnd.openxmlformats-officedocument.wordprocessingml.document.main",
    b"vnd.openxmlformats-officedocument.wordprocessingml.template.main":
        b"vnd.openxmlformats-officedocument.wordprocessingml.document.main",
    b"vnd.ms-powerpoint.presentation.macroEnabled.main":
        b"vnd.openxmlformats-officedocument.presentationml.presentation.main",
    b"vnd.openxmlformats-officedocument.presentationml.slideshow.main":
        b"vnd.openxmlformats-officedocument.presentationml.presentation.main",
}  # fmt: skip
"""Content types of documents with macros, templates and slide shows, and the type of the same document without."""
_STRICT: Mapping[bytes, bytes] = {
    b"http://purl.oclc.org/ooxml/officeDocument/": b"http://schemas.openxmlformats.org/officeDocument/2006/",
    b"http://purl.oclc.org/ooxml/wordprocessingml/": b"http://schemas.openxmlformats.org/wordprocessingml/2006/",
    b"http://purl.oclc.org/ooxml/presentationml/": b"http://schemas.openxmlformats.org/presentationml/2006/",
    b"http://purl.oclc.org/ooxml/spreadsheetml/": b"http://schemas.openxmlformats.org/spreadsheetml/2006/",
    b"http://purl.oclc.org/ooxml/drawingml/": b"http://schemas.openxmlformats.org/drawingml/2006/",
}
"""Namespaces of Strict Office Open XML (ISO/IEC 29500), and those of the transitional form that libraries read."""


@contextlib.contextmanager
def report_damage(kind: str) -> Iterator[None]:
    """Turn the errors that a library raises for a damaged file into `UnreadableDocument`."""
    try:
        yield
    except etree.XMLSyntaxError as error:
        raise xml_problem(error.code, str(error), f"the XML of the {kind}") from None
    except _DAMAGE as error:
        raise UnreadableDocument(f"the {kind} is damaged: {type(error).__name__}: {str(error)[:200]}") from None


def check_package(head: bytes, main_part: str, *, is_whole: bool) -> Preview:
    """Return the title of a package. A part of a ZIP file cannot be opened, so that only a whole file is checked."""
    if not is_whole:
        return Preview(title=None, text="")
    container = ZipContainer(head)
    require_main_part(container, main_part)
    return Preview(title=core_properties(container)[0], text="")


def require_main_part(container: ZipContainer, main_part: str) -> None:
    """Refuse a package without its main part."""
    if "xl/workbook.bin" in container:
        raise UnreadableDocument("the file is a binary workbook (.xlsb); save it as .xlsx")
    if main_part not in container:
        raise UnreadableDocument(f"the file is damaged: it has no member {main_part!r}")


def copy_package(container: ZipContainer) -> bytes:
    """Return a ZIP file with the XML of ``container``, stored without compression.

    Pictures, macros, embedded files and every relationship with them, with missing parts and with other hosts are left out.
    """
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name in filter(is_text, container.names):
            content = container.read_member(name)
            refuse_document_type(content, name)
            archive.writestr(name, _adapt_member(container, name, content))
    return target.getvalue()


def is_text(name: str) -> bool:
    """Return whether a member of that name is XML."""
    return name.lower().endswith((".xml", ".rels"))


def core_properties(container: ZipContainer) -> tuple[str | None, dict[str, Any]]:
    """Return the title of a package and its other core properties as metadata. A damaged list of them is empty."""
    if _PROPERTIES not in container:
        return None, {}
    try:
        root = container.read_tree(_PROPERTIES)
    except UnreadableDocument:
        return None, {}
    fields = {name: _read_property(root, path) for name, path in _FIELDS.items()}
    return _read_property(root, "dc:title") or None, keep_valid_fields({name: value for name, value in fields.items() if value})


def _read_property(root: etree._Element, path: str) -> str:
    return " ".join((root.findtext(path, namespaces=_NAMESPACES) or "").split())[:MAX_PROPERTY_CHARACTERS]


def _adapt_member(container: ZipContainer, name: str, content: bytes) -> bytes:
    if b"http://purl.oclc.org/ooxml/" in content:
        content = _replace_names(content, _STRICT)
    if name == _CONTENT_TYPES:
        return _replace_names(content, _SAME_AS)
    return _kept_relationships(container, name, content) if name.endswith(".rels") else content


def _replace_names(content: bytes, replacements: Mapping[bytes, bytes]) -> bytes:
    for old, new in replacements.items():
        content = content.replace(old, new)
    return content


def _kept_relationships(container: ZipContainer, name: str, content: bytes) -> bytes:
    """Return a list of relationships with only those between parts that are copied."""
    root = xml_tree(content, name)
    folder = posixpath.dirname(posixpath.dirname(name))
    for relationship in list(root):
        target = (relationship.get("Target") or "").partition("#")[0]
        path = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
        if relationship.get("TargetMode") == "External" or path not in container or not is_text(path):
            root.remove(relationship)
    return bytes(etree.tostring(root))
