"""PDF files: citations lead to a page and a box on it, and the page can be read and drawn."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import pytest
from pdf_files import Page, pdf_of
from PIL import Image
from scanned_files import require_tesseract, scan_of
from tests.e2e.api.conftest import Client, World

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIRST = ["The Harbour Authority began the tidal bar-", "rage in May 2019, below the old bridge."]
SECOND = ["The caisson for the barrage was delivered", "by Petra Lindqvist in March 2021."]


def file(rotate: int = 0) -> bytes:
    return pdf_of(Page().column(72, 700, FIRST), Page(rotate=rotate).column(72, 400, SECOND), Page(), info="/Title (Caisson)")


async def submitted(client: Client, content: bytes, name: str = "caisson.pdf") -> dict[str, Any]:
    found = await client.data("POST", "/documents", status=202, files={"file": (name, content, "application/pdf")})
    taken: dict[str, Any] = found["documents"][0]
    assert (await client.ended(taken["job_id"]))["state"] == "succeeded"
    return taken


async def test_a_citation_leads_to_a_page_and_a_box(world: World) -> None:
    client = world.alpha
    document = (await submitted(client, file()))["document_id"]
    shown = await client.data("GET", f"/documents/{document}")
    assert (shown["title"], shown["metadata"]["pages"]) == ("Caisson", 3)

    answer = await client.data("POST", "/answers", json={"query": "Who delivered the caisson for the barrage in March 2021?"})
    cited = next(item for item in answer["citations"] if item["document_id"] == document)
    assert "Petra Lindqvist" in answer["answer"]
    # A short quotation grows to the sentence before it, on the page before it.
    assert (cited["page"], [region["page"] for region in cited["regions"]]) == (1, [1, 1, 2, 2])
    left, bottom, right, top = zip(*(region["bbox"] for region in cited["regions"][2:]), strict=True)
    box = [min(left), min(bottom), max(right), max(top)]
    assert box[0] == pytest.approx(72, abs=0.5)
    assert 380 < box[1] < box[3] < 412

    page = await client.data("GET", f"/documents/{document}/pages/2")
    assert [line["text"] for line in page["lines"]] == SECOND
    assert page["content"] == " ".join(SECOND)
    assert (page["visible_box"], page["rotation"]) == ([0, 0, 612, 792], 0)
    first = await client.data("GET", f"/documents/{document}/pages/1")
    assert "tidal barrage in May 2019" in first["content"]
    blank = await client.data("GET", f"/documents/{document}/pages/3")
    assert (blank["content"], blank["lines"]) == ("", [])

    plain = await client.get(f"/documents/{document}/pages/2/image", params={"scale": 1})
    marked = await client.get(f"/documents/{document}/pages/2/image", params={"scale": 1, "highlight": ",".join(map(str, box))})
    assert plain.headers["content-type"] == "image/png"
    one, other = (Image.open(io.BytesIO(response.content)).convert("RGB") for response in (plain, marked))
    assert one.size == other.size == (612, 792)
    x, y = int(box[2]) - 1, int(792 - box[3])
    assert one.getpixel((x, y)) == (255, 255, 255)
    assert other.getpixel((x, y)) == (255, 236, 120)
    assert one.getpixel((300, 700)) == other.getpixel((300, 700)) == (255, 255, 255)


async def test_a_scanned_page_is_cited_with_its_box(world: World) -> None:
    require_tesseract()
    client = world.alpha
    lines = ["The sluice of the northern basin was", "rebuilt by Torvald Eskelin in August 1987."]
    page = pdf_of(Page().column(72, 700, lines, size=14, pitch=18), Page())
    content = await asyncio.to_thread(scan_of, page)  # whose imports take longer than a turn of the event loop may
    document = (await submitted(client, content, "sluice.pdf"))["document_id"]
    shown = await client.data("GET", f"/documents/{document}")
    assert (shown["state"], shown["metadata"]["ocr_pages"]) == ("ready", 1)
    assert "on page 1" in shown["metadata"]["warnings"][0]
    answer = await client.data("POST", "/answers", json={"query": "Who rebuilt the sluice of the northern basin in August 1987?"})
    assert "Torvald Eskelin" in answer["answer"]
    cited = next(item for item in answer["citations"] if item["document_id"] == document)
    assert cited["page"] == 1
    assert cited["bbox"] == pytest.approx((72, 678, 72 + len(lines[1]) * 8.4, 712), abs=6)
    assert (await client.data("GET", "/status"))["ocr"]["available"]


async def test_rotated_pages_are_drawn_as_they_are_seen(world: World) -> None:
    document = (await submitted(world.alpha, file(rotate=90)))["document_id"]
    page = await world.alpha.data("GET", f"/documents/{document}/pages/2")
    assert page["rotation"] == 90
    box = page["lines"][0]["bbox"]
    found = await world.alpha.get(
        f"/documents/{document}/pages/2/image", params={"scale": 1, "highlight": ",".join(map(str, box))}
    )
    image = Image.open(io.BytesIO(found.content)).convert("RGB")
    assert image.size == (792, 612)
    # A page that is rotated clockwise has its lower left corner at the upper left.
    assert image.getpixel((int(box[3]), int(box[0]) + 2)) == (255, 236, 120)


async def test_pages_that_do_not_exist(world: World) -> None:
    document = (await submitted(world.alpha, file()))["document_id"]
    other = (await world.alpha.data("GET", "/documents", params={"key": "tide"}))[0]["id"]
    for path, status in (
        (f"/documents/{document}/pages/4", 404),
        (f"/documents/{document}/pages/4/image", 404),
        (f"/documents/{document}/pages/0", 422),
        (f"/documents/{other}/pages/1", 404),
        (f"/documents/{other}/pages/1/image", 415),
        (f"/documents/{document}/pages/1/image?scale=9", 422),
        (f"/documents/{document}/pages/1/image?scale=nan", 422),
        (f"/documents/{document}/pages/1/image?highlight=1,2,3", 422),
        (f"/documents/{document}/pages/1/image?highlight=1,2,3,inf", 422),
    ):
        assert (await world.alpha.get(path)).status_code == status, path
    for path in ("", "/image"):
        assert (await world.beta.get(f"/documents/{document}/pages/1{path}")).status_code == 404


async def test_refused_files_say_why(world: World) -> None:
    for content, words in (
        (pdf_of(Page().picture()), "only images"),
        (b"%PDF-1.7\nnothing", "damaged"),
        (pdf_of(Page()), "no text"),
    ):
        response = await world.alpha.request("POST", "/documents", files={"file": ("scan.pdf", content, "application/pdf")})
        if response.status_code == 202:
            taken = response.json()["data"]["documents"][0]
            await world.alpha.ended(taken["job_id"])
            shown = await world.alpha.data("GET", f"/documents/{taken['document_id']}")
            assert shown["state"] == "unreadable"
            assert words in str(shown["failures"])
        else:
            assert words in response.text
