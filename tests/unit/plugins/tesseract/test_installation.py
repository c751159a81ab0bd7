from __future__ import annotations

from pathlib import Path

import pytest

from agentic_rag_backend.documents.recognition.base import RecognitionOptions
from agentic_rag_backend.documents.recognition.ocr import Ocr, OcrSettings
from agentic_rag_backend.errors import ConfigurationError

SCRIPT = """#!/bin/sh
echo run >> "$0.log"
case "$1" in
--version) printf 'tesseract %s\\n leptonica-1.82.0\\n' ;;
--list-langs) printf 'List of available languages in "/models" (2):\\neng\\nosd\\n' ;;
esac
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only folder of PATH, with a Tesseract in it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("TESSDATA_PREFIX", raising=False)
    install(tmp_path, "5.3.0")
    return tmp_path


def install(folder: Path, version: str) -> None:
    program = folder / "tesseract"
    program.write_text(SCRIPT.replace("%s", version), encoding="ascii")
    program.chmod(0o755)


async def test_the_program_is_asked_once_for_version_and_languages(folder: Path) -> None:
    ocr = Ocr(OcrSettings(max_pages=7, cpu_s=8, timeout_s=9))
    for _ in range(2):
        assert await ocr.choose_options() == RecognitionOptions(
            program=str(folder / "tesseract"), version="5.3.0", languages="eng", turns=True, max_pages=7, cpu_s=8, timeout_s=9
        )
    status = await ocr.read_status()
    assert (status.available, status.version, status.installed_languages) == (True, "5.3.0", ("eng", "osd"))
    assert (folder / "tesseract.log").read_text().count("run") == 2
    await Ocr(OcrSettings(mode="tesseract")).require_installation()


async def test_the_reason_says_how_to_get_it(folder: Path) -> None:
    missing = await Ocr(OcrSettings(languages="eng+chi_sim+deu")).read_status()
    assert missing.reason is not None
    assert "no model of the language chi_sim, deu (OCR_LANGUAGES); installed are eng, osd;" in missing.reason
    assert "tesseract-ocr-chi-sim" in missing.reason
    off = await Ocr(OcrSettings(mode="off")).choose_options()
    assert off == "OCR is switched off (OCR=off)"
    install(folder, "3.05")
    assert "not Tesseract 4 or later" in str(await Ocr().choose_options())
    (folder / "tesseract").write_text("#!/bin/sh\nexit 1\n")
    assert "not Tesseract 4 or later" in str(await Ocr().choose_options())
    (folder / "tesseract").unlink()
    absent = Ocr()
    assert "the program 'tesseract' is not in PATH; install Tesseract" in str(await absent.choose_options())
    await absent.require_installation()
    with pytest.raises(ConfigurationError, match="OCR=tesseract: the program 'tesseract' is not in PATH"):
        await Ocr(OcrSettings(mode="tesseract")).require_installation()
