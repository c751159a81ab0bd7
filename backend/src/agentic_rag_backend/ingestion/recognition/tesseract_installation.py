"""The Tesseract of this machine: found once, when the first document or question needs it."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.ingestion.recognition.tesseract import TesseractOptions

PROGRAM = "tesseract"
HOW_TO_GET = "install Tesseract (Debian's package tesseract-ocr) and restart"
_ANSWER_S = 20.0
_VERSION = re.compile(r"^tesseract v?(\d+[\w.-]*)", re.MULTILINE)
_ORIENTATION = "osd"
"""Name of the model of orientation and script among the languages."""
_LEAST_VERSION = 4
"""Earlier ones have no neural networks."""


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
    _found: tuple[OcrStatus, TesseractOptions | None] | None = None

    async def read_status(self) -> OcrStatus:
        """Return whether text in pictures is recognised, and how."""
        return (await self._find_once())[0]

    async def choose_options(self) -> TesseractOptions | str:
        """Return the options of a document's recogniser, or the reason why there is none."""
        status, options = await self._find_once()
        return options if options is not None else status.reason or HOW_TO_GET

    async def require_installation(self) -> None:
        """Check that what the settings require is installed.

        Raises:
            ConfigurationError: OCR=tesseract, and Tesseract or a language is missing.
        """
        if self.settings.mode == "tesseract" and (reason := (await self.read_status()).reason) is not None:
            raise ConfigurationError(f"OCR=tesseract: {reason}")

    async def _find_once(self) -> tuple[OcrStatus, TesseractOptions | None]:
        if self._found is None:
            self._found = await asyncio.to_thread(_find_tesseract, self.settings)
        return self._found


def _find_tesseract(settings: OcrSettings) -> tuple[OcrStatus, TesseractOptions | None]:
    languages = tuple(settings.languages.split("+"))
    if settings.mode == "off":
        return OcrStatus(languages=languages, reason="OCR is switched off (OCR=off)"), None
    program = shutil.which(PROGRAM)
    if program is None:
        return OcrStatus(languages=languages, reason=f"the program '{PROGRAM}' is not in PATH; {HOW_TO_GET}"), None
    program = os.path.abspath(program)  # noqa: PTH100 - links stay, unlike with `resolve`
    version = _VERSION.search(_read_output(program, "--version"))
    installed = languages_of(_read_output(program, "--list-langs"))
    if version is None or int(re.split(r"\D", version[1])[0]) < _LEAST_VERSION:
        reason = f"{program} is not Tesseract {_LEAST_VERSION} or later; {HOW_TO_GET}"
        return OcrStatus(languages=languages, reason=reason), None
    status = OcrStatus(
        languages=languages,
        version=version[1],
        installed_languages=installed,
        reason=_describe_missing_languages(languages, installed),
    )
    if status.reason is not None:
        return status, None
    options = TesseractOptions(
        program=program,
        version=version[1],
        languages=settings.languages,
        turns=_ORIENTATION in installed,
        data_folder=os.environ.get("TESSDATA_PREFIX"),
        max_pages=settings.max_pages,
        cpu_s=settings.cpu_s,
        timeout_s=settings.timeout_s,
    )
    return status, options


def _describe_missing_languages(languages: Sequence[str], installed: Sequence[str]) -> str | None:
    missing_languages = [language for language in languages if language not in installed]
    if not missing_languages:
        return None
    package = f"tesseract-ocr-{missing_languages[0].replace('_', '-')}"
    return (
        f"Tesseract has no model of the language {', '.join(missing_languages)} (OCR_LANGUAGES); installed are "
        f"{', '.join(installed) or 'none'}; install it (Debian's package {package}) and restart"
    )


def languages_of(output: str) -> tuple[str, ...]:
    """Return the languages that ``tesseract --list-langs`` lists below its first line."""
    return tuple(name for line in output.splitlines()[1:] if (name := line.strip()))


def _read_output(program: str, option: str) -> str:
    """Return the output of the program; empty if it fails. Old versions write to the stream of errors."""
    try:
        process = subprocess.run(  # noqa: S603 - a program of this machine, without input
            [program, option], stdin=subprocess.DEVNULL, capture_output=True, timeout=_ANSWER_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (process.stdout or process.stderr).decode("utf-8", "replace")
