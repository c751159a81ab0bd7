"""Tokens of chat templates: no tokenizer finds them in a prompt, and replies have them again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.language.prompt_marks import (
    StreamRestorer,
    neutralise_fences,
    neutralise_marks,
    restore_all,
    restore_marks,
)

TOKENS = (
    *(
        "<|im_start|>",
        "<|start_header_id|>",
        "<|eot_id|>",
        "<|system|>",
        "<|START_OF_TURN_TOKEN|>",
        "<|/user|>",
        '<|"|>',
        "<|turn>",
    ),
    *("<turn|>", "<｜User｜>", "<｜begin▁of▁sentence｜>", "<start_of_turn>", "</s>", "<bos>", "<<SYS>>", "<</SYS>>", "<think>"),
    *("[|system|]", "[|endofturn|]", "<extra_id_0>", "<SPECIAL_10>", "<seed:bos>", "<end_of_utterance>", "<fim_prefix>"),
    *("]~b]ai", "]~!b[", "[e~["),
    *("<tool_calls>", "<function=", "<arg_key>", "[BOS]", "[UNK]"),
    *("[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/SYSTEM_PROMPT]", "[gMASK]", "<unused12>", "<BOS_TOKEN>"),
)
LOOK_ALIKES = (
    *("</pass\U000e0020age>", "<\U000e0001/passage>", "</pass\U000e0101age>", "</pass\ufff9age>", "</pass\u115fage>"),
    *(
        "</pass\u17b4age>",
        "<\u3164/passage>",
        "<\u2800/passage>",
        "‹/ｐａｓｓａｇｅ>",
        "</ＰASSAGE>",
        "<\\/passage>",
        "<//passage>",
    ),
    *("‹⧸passage>", "≺/passage≻", "⧼/passage⧽", "⦑/passage", "«/passage»"),
)
PLAIN = (
    "a <|> b",
    "f <| g x",
    "x < y and y > z",
    "⟨x⟩ is the mean, ⟨0| a bra",
    "[3] [x] [INSTRUMENT]",
    "<b>bold</b>",
    "<passages of>",
)
PIECES = st.sampled_from((*TOKENS, *PLAIN, "<", "[", "⟨", "⟦", "|", ">", "]", "</passage>", "< / Question >", "a ", "é", "\n"))
texts = st.lists(st.one_of(PIECES, st.text(max_size=5)), max_size=12).map("".join)


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_is_neutralised_and_restored(token: str) -> None:
    text = f"It says {token}, twice{token}."
    neutral = neutralise_marks(text)
    assert token not in neutral
    assert len(neutral) == len(text)
    assert restore_marks(neutral) == text


@pytest.mark.parametrize("text", PLAIN)
def test_other_text_stays(text: str) -> None:
    assert (neutralise_marks(text), restore_marks(text)) == (text, text)


@pytest.mark.parametrize("tag", LOOK_ALIKES)
def test_look_alikes_of_a_fence_are_neutralised(tag: str) -> None:
    neutral = neutralise_fences(f"before {tag} after")
    assert neutral == f"before ⟨{tag[1:]} after"


@given(texts)
def test_no_text_has_a_token_or_changes_its_length(text: str) -> None:
    neutral = neutralise_marks(neutralise_fences(text))
    assert not [token for token in TOKENS if token in neutral]
    assert len(neutral) == len(text)
    assert neutralise_marks(neutralise_fences(neutral)) == neutral


@given(texts.filter(lambda text: not {"⟨", "⟦"} & {*text}))
def test_a_restored_text_is_the_original(text: str) -> None:
    assert restore_marks(neutralise_marks(neutralise_fences(text))) == text


@given(texts, st.lists(st.integers(1, 6), min_size=1, max_size=8))
def test_a_stream_is_restored_like_the_whole(text: str, sizes: list[int]) -> None:
    neutral = neutralise_marks(neutralise_fences(text))
    restorer, restored, start = StreamRestorer(), [], 0
    while start < len(neutral):
        size = sizes[start % len(sizes)]
        restored.append(restorer.feed_piece(neutral[start : start + size]))
        start += size
    assert "".join(restored) + restorer.finish_text() == restore_marks(neutral)


def test_values_of_an_object_are_restored() -> None:
    reply = {"⟨|im_end|>": ["⟨|im_end|>", 1, None, {"quote": "⟦INST] a"}]}
    assert restore_all(reply) == {"⟨|im_end|>": ["<|im_end|>", 1, None, {"quote": "[INST] a"}]}
