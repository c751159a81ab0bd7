"""Letters of the fonts Symbol and Wingdings as Unicode."""

from __future__ import annotations

from collections.abc import Mapping

_SYMBOL = dict(
    zip(
        range(0x41, 0x5B), "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ", strict=True
    )
) | dict(zip(range(0x61, 0x7B), "αβχδεφγηιϕκλμνοπθρστυϖωξψζ", strict=True)) | {
    0xA3: "≤", 0xA5: "∞", 0xAB: "↔", 0xAC: "←", 0xAD: "↑", 0xAE: "→", 0xAF: "↓", 0xB0: "°", 0xB1: "±", 0xB3: "≥", 0xB4: "×",
    0xB6: "∂", 0xB7: "•", 0xB8: "÷", 0xB9: "≠", 0xBA: "≡", 0xBB: "≈", 0xCE: "∈", 0xD1: "∇", 0xD6: "√", 0xD7: "⋅", 0xE5: "∑",
    0xF2: "∫",
}  # fmt: skip
_WINGDINGS = {
    0x6C: "•", 0x6F: "[ ]", 0x71: "[ ]", 0x72: "[ ]", 0x78: "[x]", 0xA8: "[ ]", 0xE0: "→", 0xFB: "[x]", 0xFC: "✓", 0xFD: "[x]",
    0xFE: "[x]",
}  # fmt: skip
_FONTS: Mapping[str, Mapping[int, str]] = {"symbol": _SYMBOL, "wingdings": _WINGDINGS}


def read_symbol(font: str, code: str) -> str:
    """Return the text of a symbol. Empty: the font or the letter is not known.

    Args:
        code: hexadecimal number of the letter. Fonts of symbols begin at F000.
    """
    try:
        number = int(code, 16)
    except ValueError:
        return ""
    if font.lower() in _FONTS:
        return _FONTS[font.lower()].get(number & 0xFF, "")
    return chr(number) if 0x20 <= number < 0xE000 and not 0xD800 <= number < 0xE000 else ""
