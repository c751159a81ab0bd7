"""Marks that a language model or its server reads as structure: the tokens of chat templates, and the fences of prompts.

A server that applies a chat template may turn the text ``<|im_start|>system`` of a document into the beginning of a system turn.
`neutralise_marks` replaces the first bracket of such a mark by another one, which no tokenizer knows: ``⟨|im_start|>``.
`restore_marks` is the inverse for replies, so that a model can quote a document. Both keep the length of a text, and so its
offsets.
"""

from __future__ import annotations

import re
from typing import Any

FENCES = (
    *("passage", "passages", "theme", "question", "turn", "entities", "parts"),
    *("facts", "points", "answer", "checks", "about", "sentences"),
)
"""Names of the fences of prompts; see `prompts.fence`."""
_HIDDEN = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
"""Characters without a width, or without a sign. A model may read a tag of a fence that contains them."""
_GAP = rf"[\s{_HIDDEN}]*"
# <|name|>: ChatML, Llama 3 and 4, Phi, Qwen, GPT-OSS, Command R. <｜name｜>: DeepSeek. The others: Llama 2, Mistral, Gemma,
# GLM, EXAONE, Nemotron and others.
_ANGLED = (
    r"[|｜][\w▁/\" -]{1,64}[|｜]?>|[\w/-]{1,64}[|｜]>"
    r"|/?(?:s|bos|eos|pad|unk|sop|eop|eod|eoa|BOS_TOKEN|EOS_TOKEN|PAD_TOKEN|unused\d{1,4}|(?:start|end)_of_(?:turn|image|text)"
    r"|end_of_utterance|extra_id_\d{1,4}|SPECIAL_\d{1,4}|seed:\w{1,32}|fim_(?:prefix|middle|suffix|pad)|sep|mask|eot|image"
    r"|think|tools|tool_calls?|tool_response|arg_(?:key|value))>|function="
    r"|[<⟨]?/?SYS>"
)
_SQUARE = (
    r"/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|CALL_ID|ARGS|THINK|MODEL_SETTINGS"
    r"|IMG|IMG_BREAK|IMG_END|AUDIO|BEGIN_AUDIO|PREFIX|MIDDLE|SUFFIX|gMASK|sMASK|MASK|BOS|EOS|PAD|UNK)\]"
    r"|\|\w{1,64}\|\]|e~\["
)
_CLOSED = r"~!?b[\[\]]"
"""MiniMax: ``]~b]``, ``]~!b[``, and ``[e~[`` above."""
_NEUTRAL = {"<": "⟨", "[": "⟦", "]": "⟧"}
_ORIGINAL = {neutral: bracket for bracket, neutral in _NEUTRAL.items()}
_MARK = re.compile(rf"<(?={_ANGLED})|\[(?={_SQUARE})|\](?={_CLOSED})")
_ANGLES = "<＜﹤‹«〈《⟪❮❬˂ᐸ≺⦑⧼"
"""Brackets that look like ``<``."""


def _fence_of(names: str) -> str:
    return rf"(?={_GAP}(?:[/∕⁄／⧸\\]{_GAP})*(?:{names})\b)"


def _spelling_pattern(name: str) -> str:
    """Return a pattern of a name in ordinary or full-width letters, with hidden characters between them."""
    return rf"[{_HIDDEN}]*".join(f"[{letter}{chr(ord(letter) + _FULL_WIDTH)}]" for letter in name)


_FULL_WIDTH = ord("ａ") - ord("a")
_NAMES = "|".join(map(_spelling_pattern, FENCES))
_FENCE = re.compile(f"[{_ANGLES}]{_fence_of(_NAMES)}", re.IGNORECASE)
_NEUTRAL_MARK = re.compile(rf"⟨(?={_ANGLED})|⟦(?={_SQUARE})|⟧(?={_CLOSED})|⟨(?i:{_fence_of(_NAMES)})")
_LONGEST = 80
"""Characters after which a mark that a reply has begun is known."""
_OPEN = re.compile(rf"[⟨⟦⟧][^>\]]{{0,{_LONGEST}}}\Z")


def neutralise_marks(text: str) -> str:
    """Return ``text`` in which no tokenizer finds the token of a chat template."""
    return _MARK.sub(lambda match: _NEUTRAL[match[0]], text)


def neutralise_fences(text: str) -> str:
    """Return ``text`` in which no tag has the name of a fence."""
    return _FENCE.sub(_NEUTRAL["<"], text)


def restore_marks(text: str) -> str:
    """Return ``text`` with the marks of the original."""
    return _NEUTRAL_MARK.sub(lambda match: _ORIGINAL[match[0]], text)


def restore_all(value: Any) -> Any:
    """Return a JSON value with restored texts. Names of members stay as they are."""
    if isinstance(value, str):
        return restore_marks(value)
    if isinstance(value, dict):
        return {name: restore_all(item) for name, item in value.items()}
    return [restore_all(item) for item in value] if isinstance(value, list) else value


class StreamRestorer:
    """Restores a text that arrives in pieces. The pieces that it returns are together the restored text."""

    def __init__(self) -> None:
        self._pending = ""

    def feed_piece(self, piece: str) -> str:
        """Return the text that is known now. The beginning of a mark waits for its end."""
        text = self._pending + piece
        opened = _OPEN.search(text)
        end = opened.start() if opened else len(text)
        self._pending = text[end:]
        return restore_marks(text[:end])

    def finish_text(self) -> str:
        """Return the rest of the text."""
        remainder, self._pending = self._pending, ""
        return restore_marks(remainder)
