"""The estimate of tokens, against counts of real byte-pair vocabularies."""

from __future__ import annotations

import pytest

from agentic_rag_backend.language.tokens import estimate_tokens, text_tokens

# Counted with cl100k_base, the vocabulary with the most tokens for scripts other than Latin.
COUNTED = {
    "English": (
        "All human beings are born free and equal in dignity and rights. They are endowed with reason and conscience and should "
        "act towards one another in a spirit of brotherhood. Everyone has the right to life, liberty and security of person.",
        46,
    ),
    "Chinese": ("人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。", 50),
    "Russian": (
        "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и должны "
        "поступать в отношении друг друга в духе братства. Каждый человек имеет право на жизнь, на свободу и на личную "
        "неприкосновенность.",
        111,
    ),
    "German": (
        "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt und sollen "
        "einander im Geist der Brüderlichkeit begegnen.",
        44,
    ),
    "table": (
        "| Season | Elvers counted | Volunteers |\n|---|---|---|\n| 2012 | 61,200 | 18 |\n| 2014 | 57,940 | 27 |\n"
        "| 2016 | 44,310 | 33 |\n",
        55,
    ),
}


@pytest.mark.parametrize("name", COUNTED)
def test_an_estimate_is_near_the_count(name: str) -> None:
    text, counted = COUNTED[name]
    assert 0.8 <= estimate_tokens(text) / counted <= 1.25


def test_scripts_differ() -> None:
    assert estimate_tokens("人" * 400) > 3 * estimate_tokens("word " * 80)


def test_no_text_has_no_tokens() -> None:
    assert estimate_tokens("") == text_tokens([]) == 0
    assert estimate_tokens("a") == 1
    assert text_tokens(["a", "b"]) == 2


def test_every_character_counts() -> None:
    for text in ("🎉" * 10, "\u0700" * 10, "!" * 10, "é" * 10, "\x00" * 10):
        assert estimate_tokens(text) >= 5, text
