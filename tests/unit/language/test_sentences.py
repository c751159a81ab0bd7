"""Sentence boundaries, with exact offsets for any text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.language.sentences import MAX_SENTENCE_CHARACTERS, split_sentences


def test_boundaries() -> None:
    for text, expected in [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Dr. A. Smith met J. R. R. Tolkien. They talked.", ["Dr. A. Smith met J. R. R. Tolkien.", "They talked."]),
        ("He left the U.S. Navy in May. Then he rested.", ["He left the U.S. Navy in May.", "Then he rested."]),
        ("He moved to the U.S. The rest stayed.", ["He moved to the U.S.", "The rest stayed."]),
        ("It rose 3.5 percent. See No. 5 and Fig. 3.", ["It rose 3.5 percent.", "See No. 5 and Fig. 3."]),
        ("She works at Acme Inc. The firm grew.", ["She works at Acme Inc.", "The firm grew."]),
        ("Acme Inc. Europe grew.", ["Acme Inc. Europe grew."]),
        ('"Why?" he asked. "Because."', ['"Why?" he asked.', '"Because."']),
        ('He said "no." Then he left.', ['He said "no."', "Then he left."]),
        ("Founded by M. Voss et al. Later sold.", ["Founded by M. Voss et al. Later sold."]),
        ("# Title\nText of it.", ["Title", "Text of it."]),
        ("- one\n- two. Three.\n1. four", ["one", "two.", "Three.", "four"]),
        ("a line\nthat goes on.\n\nAnother one.", ["a line\nthat goes on.", "Another one."]),
        ("| a | b |\n| c | d |", ["| a | b |", "| c | d |"]),
        ("日本語です。次の文。", ["日本語です。", "次の文。"]),
        ("他说：“来吧！”然后走了。为什么？！没人知道。", ["他说：“来吧！”", "然后走了。", "为什么？！", "没人知道。"]),
        ("ما هذا؟ هذا بيت.", ["ما هذا؟", "هذا بيت."]),
        ("यह घर है। वह नदी है।", ["यह घर है।", "वह नदी है।"]),
        (
            "Am 3. Oktober im 19. Jahrhundert schloss er. Danach, z. B. am Hafen, Nr. 5, nicht.",
            ["Am 3. Oktober im 19. Jahrhundert schloss er.", "Danach, z. B. am Hafen, Nr. 5, nicht."],
        ),
        ("Er kam als 3. Danach ging er.", ["Er kam als 3.", "Danach ging er."]),
        ("It has piers.[12] The oldest fell.[3][4]", ["It has piers.[12]", "The oldest fell.[3][4]"]),
        ("", []),
        (" \n ", []),
    ]:
        assert [sentence.text for sentence in split_sentences(text)] == expected


@given(st.text(alphabet=st.sampled_from("aZ .!?\n#-|1)\"'é。\t"), max_size=200) | st.text(max_size=200))
def test_offsets_are_exact_and_ordered(text: str) -> None:
    end = 0
    for sentence in split_sentences(text):
        assert text[sentence.start : sentence.end] == sentence.text
        assert sentence.text == sentence.text.strip() != ""
        assert sentence.start >= end
        end = sentence.end


@given(st.text(alphabet="ab. \n", max_size=300))
def test_no_word_is_lost(text: str) -> None:
    kept = "".join(sentence.text for sentence in split_sentences(text))
    assert "".join(kept.split()) == "".join(text.split())


def test_a_run_without_an_ending_is_cut() -> None:
    text = "word " * 1000
    sentences = split_sentences(text)
    assert len(sentences) > 4
    assert max(len(sentence.text) for sentence in sentences) <= MAX_SENTENCE_CHARACTERS
    assert split_sentences("x" * 2500)[0].text == "x" * MAX_SENTENCE_CHARACTERS


def test_complete() -> None:
    for text, complete in [
        ("A whole one.", True),
        ('"Quoted."', True),
        ("cut off at the start.", False),
        ("Cut off at the end", False),
    ]:
        assert split_sentences(text)[0].complete is complete
