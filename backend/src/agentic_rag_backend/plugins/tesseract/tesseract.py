"""Recogniser that runs the program Tesseract, one process a picture, fed by pipes: no file is written."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Sequence

from agentic_rag_backend.documents.recognition.base import (
    NotRecognised,
    Picture,
    RecognisedWord,
    RecognitionLimit,
    RecognitionOptions,
    confidence_of,
)
from agentic_rag_backend.plugins.tesseract.exchange import Ended, OutOfTime, TooMuchOutput, exchange_bytes
from agentic_rag_backend.plugins.tesseract.tsv import words_of

PICTURE_TIMEOUT_S = 180.0
"""Seconds for one picture. A full page takes two to three on a free core, and thirty on a busy machine."""
SURE = 0.7
"""Mean confidence of an upright page. Below it, the page may be upside down or on its side, which is then tried."""
MOST_FAILURES = 3
"""Failures in a row after which no more pictures of a document are tried."""
_ERROR_CHARACTERS = 120
_UPRIGHT, _ANY_ORIENTATION = "3", "1"
"""Modes of page segmentation: automatic, without and with the detection of orientation, which takes an eighth more time."""


class Tesseract:
    """`Recogniser` of one document."""

    def __init__(self, options: RecognitionOptions) -> None:
        self._options = options
        self._until: float | None = None
        self._used_s = 0.0
        self._pictures = 0
        self._failures = 0
        self._broken: NotRecognised | None = None

    @property
    def name(self) -> str:
        """Program, version and languages."""
        return f"Tesseract {self._options.version}, {self._options.languages}"

    @property
    def stopped(self) -> NotRecognised | None:
        """Reason why no more pictures are recognised."""
        if self._broken is not None:
            return self._broken
        if self._pictures >= self._options.max_pages:
            return RecognitionLimit(
                f"text is recognised on at most {self._options.max_pages} pages of a document (OCR_MAX_PAGES)"
            )
        return self._out_of_time()

    def _out_of_time(self) -> RecognitionLimit | None:
        if self._left_s() <= 0:
            return self._make_limit_error()
        if self._used_s >= self._options.cpu_s:
            limit = f"{self._options.cpu_s:g} seconds of processor time (OCR_CPU_S)"
            return RecognitionLimit(f"the recognition of text took more than {limit}")
        return None

    def words(self, picture: Picture) -> Sequence[RecognisedWord]:
        """Return the words in Tesseract's reading order, without noise."""
        if (reason := self.stopped) is not None:
            raise reason
        self._pictures += 1
        if self._until is None:
            self._until = time.monotonic() + self._options.timeout_s
        try:
            words = self._read_words(picture)
        except NotRecognised as error:
            self._failures += 1
            if self._failures >= MOST_FAILURES:
                self._broken = NotRecognised(f"Tesseract failed {MOST_FAILURES} times in a row; the last time: {error}")
            raise
        self._failures = 0
        return words

    def _read_words(self, picture: Picture) -> Sequence[RecognisedWord]:
        words = words_of(self._run_tesseract(picture, _UPRIGHT))
        if not self._options.turns or not words or confidence_of(words) >= SURE or self._out_of_time():
            return words
        turned = words_of(self._run_tesseract(picture, _ANY_ORIENTATION))
        return turned if turned and confidence_of(turned) > confidence_of(words) else words

    def _run_tesseract(self, picture: Picture, segmentation: str) -> bytes:
        left_s, used_s = self._left_s(), _programs_s()
        head = b"P5 %d %d 255\n" % (picture.width, picture.height)
        try:
            process = exchange_bytes(
                self._make_command(picture.dpi, segmentation),
                (head, picture.pixels),
                _make_environment(self._options.data_folder),
                timeout_s=min(left_s, PICTURE_TIMEOUT_S),
            )
        except OutOfTime:
            if left_s <= PICTURE_TIMEOUT_S:
                raise self._make_limit_error() from None
            raise NotRecognised(f"Tesseract took more than {PICTURE_TIMEOUT_S:g} seconds for one page") from None
        except TooMuchOutput:
            raise NotRecognised("Tesseract wrote more than 16 MiB for one page") from None
        except OSError as error:
            raise NotRecognised(f"Tesseract cannot be started: {error.strerror}") from None
        finally:
            self._used_s += _programs_s() - used_s
        if process.code:
            raise NotRecognised(_describe_problem(process))
        return process.output

    def _make_command(self, dpi: int, segmentation: str) -> list[str]:
        options = ["-l", self._options.languages, "--dpi", str(dpi), "--psm", segmentation, "-c", "tessedit_create_tsv=1"]
        return [self._options.program, "stdin", "stdout", *options]

    def _left_s(self) -> float:
        return self._options.timeout_s if self._until is None else self._until - time.monotonic()

    def _make_limit_error(self) -> RecognitionLimit:
        return RecognitionLimit(f"the recognition of text took more than {self._options.timeout_s:g} seconds (OCR_TIMEOUT_S)")


def _programs_s() -> float:
    """Return the processor seconds of the programs that this process ran. On a busy machine, they say more than a clock."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _make_environment(data_folder: str | None) -> dict[str, str]:
    """Return the variables of the program. Threads of OpenMP would only compete with those of other documents."""
    variables = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "OMP_THREAD_LIMIT": "1"}
    return variables if data_folder is None else {**variables, "TESSDATA_PREFIX": data_folder}


def _describe_problem(process: Ended) -> str:
    if process.code < 0:
        return f"Tesseract was ended by {signal.Signals(-process.code).name}"
    lines = process.errors.decode("utf-8", "replace").split("\n")
    first_line = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"Tesseract ended with exit status {process.code}" + (f": {first_line[:_ERROR_CHARACTERS]}" if first_line else "")
