"""Recognition of text in pictures: the settings, and the program of this machine, found when a document or question needs it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from agentic_rag_backend.documents.recognition.base import RecognitionOptions
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.plugins import load_plugin


@dataclass(frozen=True, slots=True, kw_only=True)
class OcrStatus:
    """Whether this process recognises text in pictures.

    Args:
        languages: languages of the setting OCR_LANGUAGES.
        installed_languages: languages whose models are installed; empty if there is no Tesseract.
        reason: why nothing is recognised, and how to change it. None: text is recognised.
    """

    languages: tuple[str, ...]
    version: str | None = None
    installed_languages: tuple[str, ...] = ()
    reason: str | None = None

    @property
    def available(self) -> bool:
        """Whether text in pictures is recognised."""
        return self.reason is None


@dataclass(frozen=True, slots=True, kw_only=True)
class OcrSettings:
    """The settings OCR, OCR_LANGUAGES, OCR_MAX_PAGES, OCR_CPU_S and OCR_TIMEOUT_S."""

    mode: str = "auto"
    languages: str = "eng"
    max_pages: int = 1000
    cpu_s: float = 600.0
    timeout_s: float = 3600.0


@dataclass(slots=True)
class Ocr:
    """Recognition of text in this deployment: its settings, and what is installed. The programs are asked once."""

    settings: OcrSettings = field(default_factory=OcrSettings)
    _found: tuple[OcrStatus, RecognitionOptions | None] | None = None

    async def read_status(self) -> OcrStatus:
        """Return whether text in pictures is recognised, and how."""
        return (await self._find_once())[0]

    async def choose_options(self) -> RecognitionOptions | str:
        """Return the options of a document's recogniser, or the reason why there is none."""
        status, options = await self._find_once()
        return options if options is not None else status.reason or "no OCR"

    async def require_installation(self) -> None:
        """Check that what the settings require is installed.

        Raises:
            ConfigurationError: OCR=tesseract, and Tesseract or a language is missing.
        """
        if self.settings.mode == "tesseract" and (reason := (await self.read_status()).reason) is not None:
            raise ConfigurationError(f"OCR=tesseract: {reason}")

    async def _find_once(self) -> tuple[OcrStatus, RecognitionOptions | None]:
        if self._found is None:
            self._found = await asyncio.to_thread(_find_program, self.settings)
        return self._found


def _find_program(settings: OcrSettings) -> tuple[OcrStatus, RecognitionOptions | None]:
    if settings.mode == "off":
        return OcrStatus(languages=tuple(settings.languages.split("+")), reason="OCR is switched off (OCR=off)"), None
    result: tuple[OcrStatus, RecognitionOptions | None] = load_plugin("find_ocr")(settings)
    return result
