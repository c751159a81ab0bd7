"""A workbook from its upload to the chunk on which a row is found."""

from __future__ import annotations

import io

import openpyxl
from tests.integration.ingestion.conftest import World

from agentic_rag_backend.domain.job import JobState


async def test_a_row_is_found_with_its_sheet_and_cells(world: World) -> None:
    workbook = openpyxl.Workbook()
    workbook.active.title = "Staff"
    for row in (["Name", "Phone"], ["Ada Lovelace", "555 0100"], ["Charles Babbage", "555 0101"]):
        workbook.active.append(row)
    content = io.BytesIO()
    workbook.save(content)
    submitted = await world.submit(content.getvalue(), key="staff", file_name="staff.xlsx")
    assert (await world.ended(submitted.job)).state is JobState.SUCCEEDED
    chunks = (await world.catalogue.documents.chunks(world.tenant, submitted.document.id, limit=10)).items
    regions = [region for held in chunks for region in held.chunk.location.regions if region.cells == "A2:B2"]
    assert [region.sheet for region in regions] == ["Staff"]
