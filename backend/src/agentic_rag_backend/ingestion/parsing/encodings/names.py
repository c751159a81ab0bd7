"""Names of the encodings that text can have, as the WHATWG Encoding Standard writes them, and Python's codec of each."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass

UTF8 = "utf-8"
MAX_NAME_CHARACTERS = 40
_NAME = re.compile(rf"[A-Za-z0-9_.:-]{{1,{MAX_NAME_CHARACTERS}}}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding. ``detected``: whether it is a candidate for text that declares none."""

    name: str
    codec: str
    detected: bool = False


_ENCODINGS = (
    Encoding(UTF8, "utf-8"),
    Encoding("utf-16le", "utf-16-le", detected=True),
    Encoding("utf-16be", "utf-16-be", detected=True),
    Encoding("utf-32le", "utf-32-le"),
    Encoding("utf-32be", "utf-32-be"),
    *(Encoding(f"windows-{page}", f"cp{page}", detected=True) for page in range(1250, 1258)),
    Encoding("windows-1258", "cp1258"),
    Encoding("windows-874", "cp874", detected=True),
    Encoding("iso-8859-2", "iso8859-2", detected=True),
    *(Encoding(f"iso-8859-{part}", f"iso8859-{part}") for part in (3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
    Encoding("koi8-r", "koi8-r", detected=True),
    Encoding("koi8-u", "koi8-u", detected=True),
    Encoding("ibm866", "cp866", detected=True),
    *(Encoding(f"ibm{page}", f"cp{page}") for page in (437, 850, 852)),
    Encoding("macintosh", "mac-roman"),
    Encoding("x-mac-cyrillic", "mac-cyrillic"),
    Encoding("shift_jis", "cp932", detected=True),
    Encoding("euc-jp", "euc_jis_2004", detected=True),
    Encoding("iso-2022-jp", "iso2022_jp"),
    Encoding("gb18030", "gb18030", detected=True),
    Encoding("big5", "big5hkscs", detected=True),
    Encoding("euc-kr", "cp949", detected=True),
)
ENCODINGS: Mapping[str, Encoding] = {encoding.name: encoding for encoding in _ENCODINGS}
_BY_CODEC: Mapping[str, Encoding] = {codecs.lookup(encoding.codec).name: encoding for encoding in _ENCODINGS}
_LARGER: Mapping[str, str] = {
    "ascii": "windows-1252",
    "iso8859-1": "windows-1252",
    "iso8859-9": "windows-1254",
    "iso8859-11": "windows-874",
    "tis-620": "windows-874",
    "shift_jis": "shift_jis",
    "euc_jp": "euc-jp",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5",
    "cp950": "big5",
    "euc_kr": "euc-kr",
    "utf-16": "utf-16le",
    "utf-32": "utf-32le",
}
"""Python's codecs that the standard reads as a larger encoding, which contains them."""


def find_encoding(label: str) -> Encoding | None:
    """Return the encoding that a declaration names. None if the name is not known, or is no encoding of documents.

    Python also knows codecs, such as ``punycode``, that take quadratic time. They are not in the table.
    """
    plain = label.strip().lower()
    if not _NAME.fullmatch(plain):
        return None
    if plain in ENCODINGS:
        return ENCODINGS[plain]
    try:
        codec = codecs.lookup(plain).name
    except LookupError:
        return None
    return ENCODINGS[_LARGER[codec]] if codec in _LARGER else _BY_CODEC.get(codec)
