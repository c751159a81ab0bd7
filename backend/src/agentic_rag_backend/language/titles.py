"""Titles of documents that nobody gave."""

from __future__ import annotations

import re

EXCERPT_MARK = "…"
"""Ends a title that was taken from a line of the text, because neither the owner nor the file gives one."""

UNTITLED = "Untitled document"
"""Title of a document whose text has no line that the check at upload can read."""


MAX_EXTENSION_CHARACTERS = 5


def words_of_name(key: str) -> list[str]:
    """Return the words of a file's name, each once, without the folder and the extension.

    Args:
        key: the caller's key, which is the name of an uploaded file by default. Without an extension, it is no name.
    """
    stem, _, extension = key.rpartition("/")[2].rpartition(".")
    is_name = stem and extension.isalnum() and len(extension) <= MAX_EXTENSION_CHARACTERS
    return list(dict.fromkeys(split_words(stem))) if is_name else []


def split_words(text: str) -> list[str]:
    """Return the runs of letters and digits."""
    return "".join(character if character.isalnum() else " " for character in text).split()


def is_excerpt(title: str) -> bool:
    """Return whether a title is the beginning of a text, or missing. It names nothing, and has no subject and no date."""
    return title.rstrip().endswith(EXCERPT_MARK) or title == UNTITLED


_PLACEHOLDER = re.compile(
    r"\(?(?:anonymous|no title|no subject|none|null|unknown|unnamed|untitled|unbenannt|ohne titel|kein betreff|sans titre"
    r"|sin título|senza titolo|sem título)(?:[ _-]*(?:document|dokument|presentation|spreadsheet))?\)?"
    r"|(?:new |neues |nouveau )?(?:(?:microsoft )?(?:word|office|powerpoint|excel)[ -]*)?"
    r"(?:document|dokument|doc|presentation|präsentation|présentation|workbook|book|mappe|arbeitsmappe|classeur|worksheet|sheet"
    r"|tabelle|feuille|slide|folie|diapositive|diapositiva|chapter|kapitel|chapitre|capítulo|section|page|seite|cover|scan|image)"
    r"|microsoft (?:word|powerpoint|excel) - .*"
    r"|.*\.(?:docx?|tex|dvi|pdf|indd|qxd|rtf|od[tps]|pptx?|xlsx?|ps|eps|html?|tiff?|jpe?g|png)",
    re.IGNORECASE,
)


def is_placeholder(title: str) -> bool:
    """Return whether a program gives this title to every file, such as "Untitled" or "Chapter 1", or lost its letters."""
    text = " ".join(title.split())
    if not any(map(str.isalnum, text)):
        return True
    without_number = text.rstrip(" )").rstrip("0123456789").rstrip(" _#.(-")
    return _PLACEHOLDER.fullmatch(text) is not None or _PLACEHOLDER.fullmatch(without_number) is not None
