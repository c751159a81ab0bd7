"""XLS: workbooks in the binary format of Excel 5 to 2003."""

from __future__ import annotations

import io
import struct

from python_calamine import CalamineWorkbook

from agentic_rag_backend.documents.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.office import package
from agentic_rag_backend.documents.parsing.office.ole_container import OleContainer
from agentic_rag_backend.documents.parsing.office.sheets.biff import read_sheets
from agentic_rag_backend.documents.parsing.office.sheets.workbooks import SheetSource, add_workbook, report_calamine_errors
from agentic_rag_backend.domain.ole_directory import list_top_entries
from agentic_rag_backend.errors import UnreadableDocument

STREAMS = ("Workbook", "Book")
_ENCRYPTED = b"\x2f\x00"
"""The record that begins the encryption."""


class XlsParser:
    """Parser of binary workbooks. Values have the form of the sheets; hidden parts are left out."""

    def check(self, head: bytes, *, is_whole: bool) -> Preview:
        """Look for the workbook in the directory of the container."""
        entries = list_top_entries(head)
        if is_whole and not (entries or frozenset()).intersection(STREAMS):
            raise UnreadableDocument("the file is not a workbook (.xls): it contains none")
        return Preview(title=None, text="")

    def parse(self, content: bytes) -> ParsedDocument:
        """Return the sheets one after the other."""
        container = OleContainer(content)
        streams = container.list_children(0)
        numbers = [streams[name] for name in STREAMS if name in streams]
        stream = container.read_stream(numbers[0]) if numbers else b""
        if not stream:
            raise UnreadableDocument("the workbook is damaged: its stream cannot be read")
        with report_calamine_errors(), package.report_damage("workbook"):
            try:
                sheets = read_sheets(stream)
            except struct.error:
                raise UnreadableDocument("the workbook is damaged: a record is too short") from None
            builder = TextBuilder(len(content))
            workbook = CalamineWorkbook.from_filelike(io.BytesIO(content))
            names = workbook.sheet_names if len(workbook.sheet_names) == len(sheets) else []
            sources = {name: SheetSource(properties=sheet) for name, sheet in zip(names, sheets, strict=False)}
            hidden = add_workbook(builder, workbook, sources)
        return builder.build(metadata={"hidden_sheets": hidden} if hidden else {})

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; which lines are the names of sheets is not known."""
        return ParsedDocument(text=text)
