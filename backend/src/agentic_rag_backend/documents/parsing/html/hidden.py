"""Inline styles of HTML that hide text from a reader."""

from __future__ import annotations

import re

_DECLARATION = re.compile(r"(?<![a-z-])([a-z-]++)\s*+:([^;]*+)")
_ZERO = re.compile(r"[+-]?0*+(?:\.0*+)?(?:px|pt|em|rem|ex|%|vh|vw)?")
_FAR = re.compile(r"-\d{3,}(?:\.\d+)?(?:px|pt|em|rem)?")
_WHITE = re.compile(
    r"white|#fff(?:fff)?|rgba?\(255,255,255(?:,1(?:\.0+)?)?\)|transparent|rgba\([^)]*,0(?:\.0+)?\)|#[0-9a-f]{6}00"
)
_SIZES = ("height", "max-height", "width", "max-width")
MAX_STYLE_CHARACTERS = 2_000


def read_style(style: str) -> dict[str, str]:
    """Return the declarations of an inline style, with names and values in lower case and without spaces."""
    declarations = _DECLARATION.findall(style[:MAX_STYLE_CHARACTERS].lower())
    return {name: "".join(value.split()).removesuffix("!important") for name, value in declarations}


def hides_text(style: dict[str, str]) -> bool:
    """Return whether the style hides an element with all its text: it is not shown, has no size, or is far off the page."""
    return (
        style.get("display") == "none"
        or style.get("visibility") in {"hidden", "collapse"}
        or style.get("mso-hide") == "all"
        or _ZERO.fullmatch(style.get("opacity", "1")) is not None
        or _is_zero(style, "font-size")
        or ("hidden" in {style.get("overflow"), style.get("overflow-y")} and any(_is_zero(style, name) for name in _SIZES))
        or any(_FAR.fullmatch(style.get(name, "")) for name in ("text-indent", "left", "top", "right"))
    )


def is_white(style: dict[str, str]) -> bool:
    """Return whether text has the colour of the paper, or none. It is invisible unless there is a background."""
    return _WHITE.fullmatch(style.get("color", "")) is not None


def has_background(style: dict[str, str]) -> bool:
    """Return whether the style sets a background."""
    return bool({"background", "background-color", "background-image"} & style.keys())


def _is_zero(style: dict[str, str], name: str) -> bool:
    value = style.get(name, "")
    return bool(value) and _ZERO.fullmatch(value) is not None
