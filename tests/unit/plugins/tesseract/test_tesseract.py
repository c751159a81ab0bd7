"""Programs in Tesseract's place, which do what a damaged or hostile one might."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agentic_rag_backend.documents.recognition.base import NotRecognised, Picture, RecognitionLimit, RecognitionOptions
from agentic_rag_backend.plugins.tesseract import exchange, tesseract
from agentic_rag_backend.plugins.tesseract.tesseract import Tesseract

PICTURE = Picture(400, 300, 300, bytes(120_000))
"""Larger than the buffer of a pipe."""
TABLE = (
    r"printf 'level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n"
    r"5\t1\t1\t1\t1\t1\t10\t20\t40\t12\t96\t%s\n' "
)

Written = Callable[[str], RecognitionOptions]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def write(script: str) -> RecognitionOptions:
        program = tmp_path / "tesseract"
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
        program.chmod(0o755)
        return RecognitionOptions(program=str(program), version="5.3.0", languages="eng+deu", max_pages=10)

    return write


def test_the_picture_is_sent_and_the_words_are_returned(written: Written) -> None:
    options = replace(written(f'{TABLE} "$(wc -c):$*:$OMP_THREAD_LIMIT:$HOME:$TESSDATA_PREFIX"'), data_folder="/models")
    [word] = Tesseract(options).words(PICTURE)
    size = len("P5 400 300 255\n") + 120_000
    assert word.text == f"{size}:stdin stdout -l eng+deu --dpi 300 --psm 3 -c tessedit_create_tsv=1:1::/models"
    assert Tesseract(options).name == "Tesseract 5.3.0, eng+deu"


def test_a_page_that_is_hard_to_read_is_tried_in_other_orientations(written: Written) -> None:
    unsure = TABLE.replace(r"\t96\t", r"\t42\t")
    options = written(f'case "$*" in *"--psm 1"*) {TABLE} turned;; *) {unsure} upright;; esac')
    assert [word.text for word in Tesseract(replace(options, turns=True, max_pages=1)).words(PICTURE)] == ["turned"]
    assert [word.text for word in Tesseract(options).words(PICTURE)] == ["upright"]
    options = written(f'case "$*" in *"--psm 1"*) exit 1;; *) {TABLE} sure;; esac')
    assert [word.text for word in Tesseract(replace(options, turns=True)).words(PICTURE)] == ["sure"]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("kill -9 $$", "Tesseract was ended by SIGKILL"),
        ("echo text", "Tesseract wrote something else than its table of words"),
        ("echo first >&2; echo 'no model' >&2; exit 3", "Tesseract ended with exit status 3: no model"),
        ("exec sleep 60", "more than 0.3 seconds for one page"),
        ("cat > /dev/null; exec sleep 60", "more than 0.3 seconds for one page"),
        ("sleep 60 & exit 0", "more than 0.3 seconds for one page"),
        ("head -c 9000 /dev/zero", "more than 16 MiB for one page"),
    ],
)
def test_a_picture_fails_with_the_reason(written: Written, script: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tesseract, "PICTURE_TIMEOUT_S", 0.3 if "sleep" in script else 30.0)
    monkeypatch.setattr(exchange, "MAX_OUTPUT_BYTES", 8000)
    recogniser = Tesseract(written(script))
    with pytest.raises(NotRecognised, match=reason) as failed:
        recogniser.words(PICTURE)
    assert failed.value.code == "ocr_failed"
    assert recogniser.stopped is None


def test_a_program_that_always_fails_is_not_tried_again(written: Written) -> None:
    options = written('echo run >> "$0.log"; exit 1')
    recogniser = Tesseract(options)
    for _ in range(5):
        with pytest.raises(NotRecognised):
            recogniser.words(PICTURE)
    assert str(recogniser.stopped) == "Tesseract failed 3 times in a row; the last time: Tesseract ended with exit status 1"
    assert Path(f"{options.program}.log").read_text().count("run") == 3
    gone = Tesseract(replace(options, program=f"{options.program}.none"))
    with pytest.raises(NotRecognised, match="cannot be started: No such file"):
        gone.words(PICTURE)


def test_the_limits_of_a_document_are_named(written: Written) -> None:
    options = written(f"{TABLE} word")
    two = Tesseract(replace(options, max_pages=2))
    two.words(PICTURE)
    assert two.stopped is None
    two.words(PICTURE)
    with pytest.raises(RecognitionLimit, match=r"at most 2 pages of a document \(OCR_MAX_PAGES\)") as ended:
        two.words(PICTURE)
    assert ended.value.code == "resource_limit"
    burning = Tesseract(replace(written(f"i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; {TABLE} word"), cpu_s=0.005))
    burning.words(PICTURE)
    with pytest.raises(RecognitionLimit, match=r"more than 0.005 seconds of processor time \(OCR_CPU_S\)"):
        burning.words(PICTURE)
    begin = time.monotonic()
    late = Tesseract(replace(written("exec sleep 60"), timeout_s=0.2))
    for _ in range(2):
        with pytest.raises(RecognitionLimit, match=r"more than 0.2 seconds \(OCR_TIMEOUT_S\)"):
            late.words(PICTURE)
    assert late.stopped is not None
    assert time.monotonic() - begin < 30
