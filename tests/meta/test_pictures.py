"""The pictures of the console in the documentation: both themes of every view, and small files."""

from __future__ import annotations

from pathlib import Path

from infra.console_pictures import VIEWS

MAX_BYTES = 60 * 1024


def test_every_view_has_a_small_picture_in_both_themes(root: Path) -> None:
    folder = root / "docs" / "images" / "console"
    names = {f"{view}-{theme}.png" for view in VIEWS for theme in ("light", "dark")}
    assert {path.name for path in folder.iterdir()} == names
    assert all(path.stat().st_size <= MAX_BYTES for path in folder.iterdir())
