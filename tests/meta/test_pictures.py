"""The pictures of the console in the documentation (`make pictures`): each view in both themes, in small files."""

from __future__ import annotations

import re
from pathlib import Path

MAX_BYTES = 60 * 1024


def test_every_view_has_a_small_picture_in_both_themes(root: Path) -> None:
    pictures = {path.name: path.stat().st_size for path in (root / "docs" / "images" / "console").iterdir()}
    listed = re.findall(r"^    \"([\w-]+)\":", (root / "infra" / "console_pictures.py").read_text(encoding="utf-8"), re.MULTILINE)

    assert len(listed) >= 10
    assert pictures.keys() == {f"{view}-{theme}.png" for view in listed for theme in ("light", "dark")}
    assert {name: size for name, size in pictures.items() if size > MAX_BYTES} == {}
