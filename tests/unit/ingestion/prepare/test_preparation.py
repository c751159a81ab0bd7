"""Metadata that a file gives: facts of its parser, and a limited number of warnings."""

from __future__ import annotations

from typing import Any

from document_versions import version_of
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.documents.metadata_checks import check_metadata
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.domain.document import DocumentVersion
from agentic_rag_backend.domain.size_limits import MAX_KEYS, MAX_METADATA_BYTES, OWNERS_BYTES, size_of
from agentic_rag_backend.ingestion.prepare.preparation import (
    MAX_WARNING_CHARACTERS,
    MAX_WARNINGS,
    MAX_WARNINGS_BYTES,
    _list_facts,
    _merge_metadata,
)


def version(metadata: dict[str, Any] | None = None) -> DocumentVersion:
    return version_of(metadata=metadata or {})


NAMES = st.text("abcdefgß漢", min_size=1, max_size=8)
LENGTHS = st.sampled_from([0, 1, 50, 300, 1500, 6000])
FIELDS = st.dictionaries(NAMES, st.builds(lambda letter, length: letter * length, st.sampled_from('x漢"'), LENGTHS), max_size=70)


def test_warnings_are_kept_in_the_metadata_up_to_limits() -> None:
    assert _list_facts(ParsedDocument(text="x", metadata={"pages": 2}), version()) == {"pages": 2}
    few = tuple(f"warning {number}" for number in range(MAX_WARNINGS))
    assert _list_facts(ParsedDocument(text="x", warnings=few), version()) == {"warnings": list(few)}
    many = _list_facts(ParsedDocument(text="x", warnings=(*few, "w" * 500, "one more")), version())["warnings"]
    assert many == [*few[:-1], "3 more warnings are not kept"]
    (long,) = _list_facts(ParsedDocument(text="x", warnings=("w" * 500,)), version())["warnings"]
    assert long == "w" * (MAX_WARNING_CHARACTERS - 1) + "…"
    wide = _list_facts(ParsedDocument(text="x", warnings=("漢" * 200,) * MAX_WARNINGS), version())["warnings"]
    assert wide == [
        *["漢" * 200] * (MAX_WARNINGS_BYTES // 600),
        f"{MAX_WARNINGS - MAX_WARNINGS_BYTES // 600} more warnings are not kept",
    ]


def test_long_headers_of_a_message_leave_room_for_its_owner() -> None:
    people = ", ".join(f"person{number}@example.org" for number in range(400))
    parsed = ParsedDocument(text="x", metadata={"to": people, "cc": people, "subject": "Fees"}, warnings=("one",))
    found = _merge_metadata(parsed, version())
    assert found["to"] == people[:999] + "…"
    assert found["subject"] == "Fees"
    assert found["warnings"] == ["metadata of the file that is too long is shortened or left out: to, cc", "one"]
    check_metadata({**found, "team": "harbour"})


def test_values_that_no_store_keeps_do_not_reach_the_metadata() -> None:
    parsed = ParsedDocument(text="x", metadata={"pages": 2, "a\0": 1, "b": {}}, warnings=("attachment a\0\ud800.zip: not read",))
    assert _merge_metadata(parsed, version()) == {"pages": 2, "warnings": ["attachment a\ufffd\ufffd.zip: not read"]}


@given(FIELDS, FIELDS, st.lists(st.text(max_size=300), max_size=12))
def test_metadata_of_file_and_owner_is_valid_together(owned: dict[str, str], fields: dict[str, str], warnings: list[str]) -> None:
    while owned and (len(owned) > MAX_KEYS or size_of(owned) > MAX_METADATA_BYTES):
        owned.popitem()
    found = _merge_metadata(ParsedDocument(text="x", metadata=fields, warnings=tuple(warnings)), version(owned))
    assert {name: found[name] for name in owned} == owned
    check_metadata(found)
    if size_of(owned) <= OWNERS_BYTES:
        assert size_of(found) <= MAX_METADATA_BYTES - OWNERS_BYTES + size_of(owned)
    if len({*fields, *owned, "warnings"}) <= MAX_KEYS and size_of(fields) + size_of(owned) <= MAX_METADATA_BYTES // 2:
        assert {name: found[name] for name in {*fields} - {*owned, "warnings"}} == {
            name: value for name, value in fields.items() if name not in {*owned, "warnings"}
        }
