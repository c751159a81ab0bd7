"""The Tesseract of this machine: its version, its languages, and what is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence

from agentic_rag_backend.documents.recognition.base import RecognitionOptions
from agentic_rag_backend.documents.recognition.ocr import OcrSettings, OcrStatus

PROGRAM = "tesseract"
HOW_TO_GET = "install Tesseract (Debian's package tesseract-ocr) and restart"
_ANSWER_S = 20.0
_VERSION = re.compile(r"^tesseract v?(\d+[\w.-]*)", re.MULTILINE)
_ORIENTATION = "osd"
"""Name of the model of orientation and script among the languages."""
_LEAST_VERSION = 4
"""Earlier ones have no neural networks."""


def find_tesseract(settings: OcrSettings) -> tuple[OcrStatus, RecognitionOptions | None]:
    """Return whether text is recognised with these settings, and the options of a recogniser. None: there is none."""
    languages = tuple(settings.languages.split("+"))
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
    options = RecognitionOptions(
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
