"""The result of a job that commits a version."""

from __future__ import annotations

from typing import Any

from document_versions import version_of

from agentic_rag_backend.ingestion.commit.commitment import _report_failures

LEFT_OUT = "3 names are not in the graph"


def test_a_result_has_the_warnings_that_the_metadata_have_no_room_for() -> None:
    metadata: Any
    for submitted, metadata, shown in [
        ({}, {"warnings": [LEFT_OUT, "page 2 has no text"]}, [LEFT_OUT, "page 2 has no text"]),
        ({}, {"warnings": ["page 2 has no text"]}, [LEFT_OUT, "page 2 has no text"]),  # no room for the second one
        ({}, {}, [LEFT_OUT]),
        ({"warnings": "our own"}, {"warnings": "our own"}, [LEFT_OUT]),
    ]:
        version = version_of(metadata=metadata, submitted_metadata=submitted)
        assert _report_failures(version, [LEFT_OUT], ()) == {"failures": 0, "warnings": shown}
        assert _report_failures(version, (), ()).get("warnings", []) == [
            warning for warning in shown if warning in metadata.get("warnings", ())
        ]
