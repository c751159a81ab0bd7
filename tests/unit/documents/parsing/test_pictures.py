"""Pictures of text as documents."""

from __future__ import annotations

import io
from typing import Any

import pytest
from PIL import Image

from agentic_rag_backend.documents.parsing import pictures
from agentic_rag_backend.documents.parsing.registry import parser_of
from agentic_rag_backend.documents.recognition.base import NotRecognised, Picture, RecognisedWord
from agentic_rag_backend.domain.media_types import JPEG, PNG, TIFF, WEBP, media_type_of
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument


class Recogniser:
    """Recogniser that finds one line in each picture, or fails."""

    name = "Test"
    stopped = None

    def __init__(self, problem: str = "") -> None:
        self.problem = problem
        self.sizes: list[tuple[int, int]] = []

    def words(self, picture: Picture) -> list[RecognisedWord]:
        self.sizes.append((picture.width, picture.height))
        if self.problem:
            raise NotRecognised(self.problem)
        number = len(self.sizes)
        return [
            RecognisedWord("Moorings", (40, 40, 140, 80), 0.9),
            RecognisedWord(f"N{number}", (150, 40, 220, 80), 0.9, ends_line=True)
        ]  # fmt: skip


def picture(kind: str, mode: str = "RGB", **options: Any) -> bytes:
    target = io.BytesIO()
    Image.new(mode, (600, 300)).save(target, kind, **options)
    return target.getvalue()


def test_a_picture_is_a_recognised_page() -> None:
    second = Image.new("RGB", (600, 300))
    for media_type, content, text in (
        (PNG, picture("PNG", "RGBA"), "Moorings N1"),
        (PNG, picture("PNG", "P"), "Moorings N1"),
        (JPEG, picture("JPEG", "CMYK"), "Moorings N1"),
        (WEBP, picture("WEBP"), "Moorings N1"),
        (TIFF, picture("TIFF", "1", save_all=True, append_images=[second]), "Moorings N1\n\nMoorings N2"),
    ):
        assert media_type_of(None, None, content) == media_type
        assert parser_of(media_type).check(content, is_whole=True).title is None
        parsed = parser_of(media_type, recogniser=Recogniser()).parse(content)
        assert parsed.text == text
        assert parsed.metadata["ocr_pages"] == len(parsed.regions) == parsed.regions[-1].page
        assert parsed.title is None


def test_pictures_without_recognised_text_are_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    content = picture("PNG")
    with pytest.raises(UnreadableDocument, match="no text is recognised in pictures"):
        parser_of(PNG).parse(content)
    with pytest.raises(UnreadableDocument, match="no text was recognised in the picture: OCR is off"):
        parser_of(PNG, recogniser=Recogniser("OCR is off")).parse(content)
    for damaged in (content[:40], b"\x89PNG", content[:60] + b"x" * 60):
        with pytest.raises(UnreadableDocument, match="damaged"):
            parser_of(PNG, recogniser=Recogniser()).parse(damaged)
    monkeypatch.setattr(pictures, "MAX_PIXELS", 100)
    with pytest.raises(ResourceLimit, match="600 × 300 pixels; the limit is 100"):
        parser_of(PNG).check(content, is_whole=True)
