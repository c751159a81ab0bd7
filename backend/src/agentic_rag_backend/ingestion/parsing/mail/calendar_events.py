"""Calendar files and invitations (iCalendar, RFC 5545): each event with its times, place and people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from agentic_rag_backend.errors import UnreadableDocument
from agentic_rag_backend.ingestion.parsing.base import ParsedDocument, Preview, shorten_text
from agentic_rag_backend.ingestion.parsing.building import TextBuilder

MAX_VALUES = 500
"""Values of one property of an event, such as attendees. Further ones are counted in a warning."""

_FOLDED = re.compile(r"\n[ \t]")
_LINE = re.compile(r'(?P<name>[A-Za-z0-9-]++)(?P<parameters>(?:;[A-Za-z0-9-]++=(?:"[^"\n]*+"|[^";:\n]++)*+)*+):(?P<value>.*)')
_PARAMETER = re.compile(r';([A-Za-z0-9-]+)=("[^"\n]*"|[^";:\n]*)')
_TIME = re.compile(r"(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})\d{2}(Z?))?")
_ESCAPED = re.compile(r"\\([\\;,nN])")
_COMPONENTS = frozenset({"VEVENT", "VTODO", "VJOURNAL"})
_LABELS: Mapping[str, str] = {
    "DTSTART": "Start", "DTEND": "End", "DURATION": "Duration", "DUE": "Due", "LOCATION": "Location", "ORGANIZER": "Organizer",
    "ATTENDEE": "Attendees", "STATUS": "Status", "RRULE": "Repeats", "RDATE": "Also on", "EXDATE": "Not on",
    "URL": "Link", "DESCRIPTION": "Description",
}  # fmt: skip
_PEOPLE, _TIMES = frozenset({"ORGANIZER", "ATTENDEE"}), frozenset({"DTSTART", "DTEND", "DUE"})
_DATES = frozenset({"RDATE", "EXDATE"})
"""Properties that have several times, or periods such as ``20240305T090000/PT1H``."""


class CalendarParser:
    """Parser of calendars."""

    def check(self, head: str, *, is_whole: bool) -> Preview:
        """Read the first event's summary."""
        event = next(_read_events(head), None)
        if event is None and is_whole:
            raise UnreadableDocument("the calendar contains no event")
        return Preview(title=_read_summary(event) if event else None, text="")

    def parse(self, text: str) -> ParsedDocument:
        """Return a section for each event: its summary, then a line for each property."""
        builder = TextBuilder(len(text))
        title = None
        for event in _read_events(text):
            title = title or _read_summary(event)
            builder.add_heading(2, _read_summary(event) or "Event")
            for name, values in event.items():
                builder.omissions.add(f"further values of {_LABELS.get(name, 'a property')}", count=len(values) - MAX_VALUES)
            builder.add_lines(
                [(f"{label}: {', '.join(event[name][:MAX_VALUES])}", {}) for name, label in _LABELS.items() if name in event]
            )
        return builder.build(title=title)

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; which lines are headings is not known."""
        return ParsedDocument(text=text)


def _read_summary(event: Mapping[str, list[str]]) -> str | None:
    return next(iter(event.get("SUMMARY", ())), None)


def _read_events(text: str) -> Iterator[dict[str, list[str]]]:
    """Yield the properties of each event in the order of the file. Alarms and time zones within it are left out."""
    event: dict[str, list[str]] | None = None
    inner = 0
    for line in _FOLDED.sub("", text).split("\n"):
        match = _LINE.match(line)
        if match is None:
            continue
        name, value = match["name"].upper(), match["value"].strip()
        if name in {"BEGIN", "END"} and value.upper() not in _COMPONENTS:
            inner += (1 if name == "BEGIN" else -1) if event is not None else 0
        elif name == "BEGIN":
            event, inner = {}, 0
        elif name == "END":
            if event:
                yield event
            event = None
        elif event is not None and inner <= 0 and (name in _LABELS or name == "SUMMARY") and value:
            times = [time.partition("/")[0].strip() for time in value.split(",")] if name in _DATES else [value]
            event.setdefault(name, []).extend(_format_value(name, match["parameters"], time) for time in times)


def _format_value(name: str, parameters: str, value: str) -> str:
    if name in _PEOPLE:
        address = value.partition(":")[2] if value.lower().startswith("mailto:") else value
        person = next((text.strip('"') for key, text in _PARAMETER.findall(parameters) if key.upper() == "CN"), "")
        return f"{person} <{address}>" if person and person != address else address
    if name in _TIMES | _DATES and (time := _TIME.fullmatch(value)):
        day = f"{time[1]}-{time[2]}-{time[3]}"
        zone = next((text.strip('"') for key, text in _PARAMETER.findall(parameters) if key.upper() == "TZID"), "")
        clock = f" {time[4]}:{time[5]}{' UTC' if time[6] else f' ({shorten_text(zone, 60)})' if zone else ''}" if time[4] else ""
        return day + clock
    line_break = "\n" if name == "DESCRIPTION" else ", "  # another property is one line
    return _ESCAPED.sub(lambda escape: line_break if escape[1] in "nN" else escape[1], value)
