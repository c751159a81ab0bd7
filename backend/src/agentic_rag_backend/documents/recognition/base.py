"""The port of text recognition: pictures in, words with their boxes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

PixelBox = tuple[int, int, int, int]
"""Left, top, right and bottom in pixels from the upper left corner. Right and bottom are outside of the box."""


class NotRecognised(Exception):
    """The text of a picture was not recognised. The message is the reason, ``code`` is that of a document's failure."""

    code = "ocr_failed"


class RecognitionLimit(NotRecognised):
    """A limit of the document is reached, so no more of its pictures are recognised. The message names the setting."""

    code = "resource_limit"


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of ``width`` × ``height`` pixels. ``pixels`` has a byte a pixel, 0 is black, row by row from the top."""

    width: int
    height: int
    dpi: int
    pixels: bytes


@dataclass(frozen=True, slots=True)
class RecognisedWord:
    """A word of a picture. ``confidence`` is in [0, 1]. ``ends_line`` says whether it is the last word of its line."""

    text: str
    box: PixelBox
    confidence: float
    ends_line: bool = False


def confidence_of(words: Sequence[RecognisedWord]) -> float:
    """Return the mean confidence of ``words``, at least one."""
    return fmean(word.confidence for word in words)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecognitionOptions:
    """An installed program, and the limits of one document.

    Args:
        program: path of the program.
        version: such as "5.3.0".
        languages: names of its models joined by "+", such as "eng+deu".
        turns: whether its model of orientation is installed, so that pages that lie on their side can be read.
        data_folder: TESSDATA_PREFIX of the serving process; None: the program's own folder.
        max_pages: pictures of a document.
        cpu_s: processor seconds for all of them.
        timeout_s: seconds for all of them.
    """

    program: str
    version: str
    languages: str
    turns: bool = False
    data_folder: str | None = None
    max_pages: int = 1000
    cpu_s: float = 600.0
    timeout_s: float = 3600.0


class Recogniser(Protocol):
    """Recognises the text of one document's pictures, within limits for the whole document. Pure and blocking, as a parser."""

    @property
    def name(self) -> str | None:
        """Program, version and languages, such as "Tesseract 5.3.0, eng". None: no text is ever recognised."""

    @property
    def stopped(self) -> NotRecognised | None:
        """Reason why no more pictures of the document are recognised. None while they are."""

    def words(self, picture: Picture) -> Sequence[RecognisedWord]:
        """Return the words in reading order.

        Raises:
            NotRecognised: the program failed with this picture, or a limit is reached.
        """


class NoRecogniser:
    """`Recogniser` that recognises nothing. ``reason`` says why, and how to change it."""

    name = None

    def __init__(self, reason: str = "no OCR") -> None:
        self.stopped = NotRecognised(f"text in pictures is not recognised: {reason}")

    def words(self, picture: Picture) -> Sequence[RecognisedWord]:
        """Raise `NotRecognised`."""
        raise self.stopped
