"""The words of languages, one file a language."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from importlib.resources import files

import pytest

from agentic_rag_backend.language.languages import STOP_WORDS
from agentic_rag_backend.language.vocabulary.lexicon import Language, language_of_code

LEXICA = {path.name.removesuffix(".toml"): path for path in (files("agentic_rag_backend.language") / "lexica").iterdir()}
FURTHER = {"irregular", "synonyms", "same_units"}
"""Keys of files that are no fields: they make up `common_forms` and `units`."""


@pytest.mark.parametrize("code", sorted(LEXICA))
def test_every_key_of_a_file_is_used(code: str) -> None:
    values = tomllib.loads(LEXICA[code].read_text(encoding="utf-8"))
    assert set(values) <= {field.name for field in fields(Language)} | FURTHER
    assert language_of_code(code).negations


def test_every_language_that_is_recognised_has_a_file() -> None:
    assert set(STOP_WORDS) <= set(LEXICA)


def test_forms_of_one_word_are_equal_and_function_words_keep_theirs() -> None:
    german = language_of_code("de")
    assert german.form_of("gegründet") == german.form_of("gründete")
    assert german.form_of("Petersens") == german.form_of("Petersen")
    assert german.form_of("dürfte") in german.hedges
    assert german.form_of("dürfen") not in german.hedges
    assert german.form_of("Weser") != german.form_of("Wesel")


def test_an_english_form_follows_irregular_verbs_and_synonyms() -> None:
    english = language_of_code("en")
    assert english.form_of("led") == "lead"
    assert english.form_of("bought") == english.form_of("purchased")
    assert english.opposites[english.form_of("accepted")] >= {english.form_of("rejected")}


def test_a_language_without_a_file_has_no_words() -> None:
    assert language_of_code("fi").code == "fi"
    assert not language_of_code("fi").negations
    assert language_of_code(None).code == "en"
