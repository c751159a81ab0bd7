"""The text of a message: the form of each part that says more, flowed lines joined, without encrypted blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from email.message import EmailMessage, MIMEPart
from typing import Any, cast

from agentic_rag_backend.domain.media_types import CALENDAR, EML, HTML, TEXT, media_type_of
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.ingestion.parsing.base import ParsedDocument, sniff_content
from agentic_rag_backend.ingestion.parsing.mail.mail_attachments import describe_refusal, name_unreadable
from agentic_rag_backend.ingestion.parsing.mail.message import charset_of, content_of, has_damage, is_attachment_part

MIN_COVERAGE = 0.75
"""Share of a form's groups of letters that are in another form which says the same. In stubs and blank texts, it is smaller."""
MIN_SHARE = 0.5
"""A form with other words and a smaller share of the letters of the form before it does not say more."""
COMPARED_CHARACTERS = 200_000
_GROUP_CHARACTERS = 4
_ALTERNATIVE = "multipart/alternative"
_ENCRYPTED = re.compile(r"-----BEGIN PGP MESSAGE-----.*?(?:-----END PGP MESSAGE-----|\Z)", re.DOTALL)
_SIGNATURE = re.compile(
    r"-----BEGIN PGP SIGNED MESSAGE-----\n(?:Hash: [^\n]*\n)*|-----BEGIN PGP SIGNATURE-----.*?(?:-----END PGP SIGNATURE-----|\Z)",
    re.DOTALL,
)
_QUOTES = re.compile(r">*")


@dataclass(slots=True)
class MessageText:
    """The texts of a message in their order, the events of its invitations, and warnings about omissions.

    ``other_forms`` is the number of forms that say something else than the form that was read.
    """

    texts: list[ParsedDocument] = field(default_factory=list)
    events: list[ParsedDocument] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    other_forms: int = 0


def read_texts(message: EmailMessage) -> MessageText:
    """Return the text of a message whose depth and number of parts were checked."""
    result = MessageText()
    for forms in _list_forms(message):
        readings = [reading for form in forms if (reading := _read_form(form, result))]
        if readings:
            chosen = _choose_form(readings)
            result.texts += chosen
            groups = _count_groups(chosen)
            result.other_forms += sum(
                _measure_coverage(reading, groups) < MIN_COVERAGE for reading in readings if reading is not chosen
            )
    return result


def _list_forms(part: MIMEPart) -> Iterator[list[list[MIMEPart]]]:
    """Yield the texts of a message, each as its forms. A reader sees one of them. A form is a list of parts."""
    if part.get_content_type() == _ALTERNATIVE and part.is_multipart():
        forms: list[list[MIMEPart]] = []
        for child in _children_of(part):
            texts = list(_list_forms(child))
            if child.get_content_type() == _ALTERNATIVE or len(texts) == 1:
                forms += [form for text_forms in texts for form in text_forms]
            elif texts:
                forms.append([part for text_forms in texts for part in text_forms[-1]])
        yield forms
    elif part.is_multipart():
        for child in _children_of(part):
            if child.get_content_type() != EML:
                yield from _list_forms(child)
    elif not is_attachment_part(part):
        yield [[part]]


def _children_of(part: MIMEPart) -> Sequence[MIMEPart]:
    return [cast(MIMEPart, child) for child in cast(list[Any], part.get_payload())]


def _read_form(form: list[MIMEPart], result: MessageText) -> list[ParsedDocument]:
    """Return the texts of a form. Events are separate texts. Other content becomes a warning."""
    texts = []
    for part in form:
        parsed = _read_part(part, result.warnings)
        if parsed is not None and part.get_content_type() == CALENDAR:
            result.events.append(parsed)
        elif parsed is not None:
            texts.append(parsed)
    return texts


def _read_part(part: MIMEPart, warnings: list[str]) -> ParsedDocument | None:
    """Return the text of a part; None if it is blank or cannot be read."""
    from agentic_rag_backend.ingestion.parsing.registry import parser_of  # which imports this package by its names

    declared = part.get_content_type()
    is_malformed = part.get_content_maintype() == "multipart"  # without parts: its boundary is missing
    if part.get_content_maintype() not in {"text", "multipart"}:
        warnings.append(f"part of type {declared[:80]}: not read: {name_unreadable(declared, '') or 'it is not text'}")
        return None
    content = content_of(part)
    if is_malformed or has_damage(part):
        warnings.append(f"the message is damaged: its part of type {declared[:80]} is read as far as it can be")
    if not content.strip():
        return None
    try:
        media_type = _choose_type(declared, content)
        parsed = parser_of(media_type, charset_of(part)).parse(content)
    except AgenticRagError as error:
        if not error.message.endswith("contains no text"):
            warnings.append(f"part of type {declared[:80]}: not read: {describe_refusal(error, declared, '')}")
        return None
    # The charset of a part is passed to the parser as that of an upload.
    reported = (warning.replace("the upload declares", "the message declares") for warning in parsed.warnings)
    warnings += [warning for warning in reported if warning not in warnings]
    return _clean_plain_text(part, parsed, warnings) if media_type == TEXT else parsed


def _choose_type(declared: str, content: bytes) -> str:
    if declared == CALENDAR:
        return CALENDAR
    by_content = media_type_of(declared if declared in {HTML, TEXT} else TEXT, None, sniff_content(content))
    return HTML if HTML in {by_content, declared.replace("x-amp-", "")} else TEXT


def _clean_plain_text(part: MIMEPart, parsed: ParsedDocument, warnings: list[str]) -> ParsedDocument | None:
    """Return plain text with flowed lines joined, without encrypted blocks and signatures."""
    text = parsed.text
    if "-----BEGIN PGP" in text:
        text, count = _ENCRYPTED.subn("", _SIGNATURE.sub("", text))
        if count:
            warnings.append(f"not in the text: encrypted messages, PGP ({count})")
    if _read_parameter(part, "format") == "flowed":
        text = join_flowed_lines(text, delete_space=_read_parameter(part, "delsp") == "yes")
    return replace(parsed, text=text) if text.strip() else None


def _read_parameter(part: MIMEPart, name: str) -> str:
    try:
        return str(part.get_param(name, "")).lower()
    except (ValueError, LookupError, TypeError, AttributeError):
        return ""


def join_flowed_lines(text: str, *, delete_space: bool = False) -> str:
    """Return text whose lines were wrapped for transport (RFC 3676): a line that ends with a space goes on in the next one.

    Args:
        delete_space: the space at the end was added by the wrapping, and is removed.
    """
    paragraphs: list[list[str]] = []
    goes_on, depth = False, 0
    for line in text.split("\n"):
        marks = cast(re.Match[str], _QUOTES.match(line))[0]
        content = line[len(marks) :].removeprefix(" ")  # a sender adds a space to lines that begin with one
        is_signature = content == "-- "
        if goes_on and len(marks) == depth and not is_signature:
            paragraphs[-1].append(content)
        else:
            paragraphs.append([f"{marks} " if marks else "", content])
        goes_on, depth = content.endswith(" ") and not is_signature, len(marks)
        if goes_on and delete_space:
            paragraphs[-1][-1] = content[:-1]
    return "\n".join("".join(paragraph).rstrip() for paragraph in paragraphs)


def _choose_form(forms: Sequence[list[ParsedDocument]]) -> list[ParsedDocument]:
    """Return the form that says more: an earlier and plainer one, unless a later one has words that it lacks."""
    chosen, groups = forms[0], _count_groups(forms[0])
    for form in forms[1:]:
        later_groups = _count_groups(form)
        if len(later_groups) >= MIN_SHARE * len(groups) and _measure_coverage(form, groups) < MIN_COVERAGE:
            chosen, groups = form, later_groups
    return chosen


def _count_groups(texts: Sequence[ParsedDocument]) -> frozenset[str]:
    """Return the groups of letters of a form. Their order, line breaks and marks do not matter."""
    letters = "".join(filter(str.isalnum, "".join(parsed.text for parsed in texts)[:COMPARED_CHARACTERS].lower()))
    return frozenset(letters[start : start + _GROUP_CHARACTERS] for start in range(max(1, len(letters) - _GROUP_CHARACTERS + 1)))


def _measure_coverage(form: Sequence[ParsedDocument], groups: frozenset[str]) -> float:
    """Return the share of a form's groups of letters that are among ``groups``."""
    own_groups = _count_groups(form)
    return len(own_groups & groups) / len(own_groups)
