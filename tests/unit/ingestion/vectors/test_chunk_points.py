from __future__ import annotations

from agentic_rag_backend.ingestion.vectors.chunk_points import add_name_words


def test_words_of_the_name_of_a_file_are_searched() -> None:
    for key, text in (
        ("tide-tables_2024.pdf", "Tides of Wexcombe\ntide tables 2024"),
        ("mail.eml#1/Tides of Wexcombe.docx", "Tides of Wexcombe"),
        ("notes/Hafen Gebühr.xlsx", "Tides of Wexcombe\nHafen Gebühr"),
        ("", "Tides of Wexcombe"),
        ("doc-17", "Tides of Wexcombe"),
        (".bashrc", "Tides of Wexcombe"),
        ("See you at 4. Ann (late)", "Tides of Wexcombe"),
    ):
        assert add_name_words("Tides of Wexcombe", key) == text
